//! Ports of a device.
//!
//! # Safety
//!
//! The library writes into structures of ours, each of the size that it is told or that its interface fixes.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::Errno;
use crate::context::Open;
use crate::error::{Error, Operation};
use crate::gid::{self, Gid, GidEntry};
use crate::sys::{self, LinkLayer, Mtu, PortState, ibv_gid_entry, ibv_port_attr};

/// A port, as it was when it was asked for.
#[derive(Debug)]
pub struct Port {
    open: Arc<Open>,
    number: u8,
    attributes: ibv_port_attr,
}

impl Port {
    pub(crate) fn query(open: Arc<Open>, number: u8) -> Result<Self, Error> {
        let mut attributes = ibv_port_attr::default();
        // SAFETY: the context is open, and the attributes can be written.
        let returned =
            unsafe { sys::query_port(open.functions, open.raw.as_ptr(), number, &raw mut attributes) };
        Errno::check(returned).map_err(|errno| Error::of(Operation::QueryPort, errno))?;
        Ok(Self { open, number, attributes })
    }

    /// Counted from 1.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Everything that the library says of it.
    pub fn attributes(&self) -> &ibv_port_attr {
        &self.attributes
    }

    /// `ACTIVE` where it takes part in the network.
    pub fn state(&self) -> PortState {
        self.attributes.state
    }

    /// What a packet can carry, as the network has it now.
    pub fn active_mtu(&self) -> Mtu {
        self.attributes.active_mtu
    }

    /// Its address in an InfiniBand subnet; 0 on Ethernet.
    pub fn lid(&self) -> u16 {
        self.attributes.lid
    }

    /// Whether its packets are Ethernet's: then queue pairs are addressed by GID.
    pub fn is_ethernet(&self) -> bool {
        self.attributes.link_layer == LinkLayer::ETHERNET
    }

    /// Passes the port on where it takes part in the network.
    ///
    /// # Errors
    ///
    /// [`Error::PortDown`] where it does not.
    pub fn require_active(&self) -> Result<&Self, Error> {
        match self.state() {
            PortState::ACTIVE => Ok(self),
            state => Err(Error::PortDown { port: self.number, state }),
        }
    }

    /// One entry of the table of addresses.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchGid`] where there is none, [`Error::Refused`] where the device is gone.
    pub fn gid(&self, index: u32) -> Result<GidEntry, Error> {
        let mut entry = ibv_gid_entry::default();
        let Open { functions, raw, .. } = &*self.open;
        // SAFETY: the context is open, and the entry can be written.
        let returned = unsafe {
            sys::query_gid_ex(functions, raw.as_ptr(), self.number.into(), index, &raw mut entry, 0)
        };
        match Errno::check(returned) {
            Ok(()) => {}
            Err(Errno(libc::ENODATA | libc::EINVAL)) => {
                return Err(Error::NoSuchGid { port: self.number, index });
            }
            Err(errno) => return Err(Error::of(Operation::QueryGid, errno)),
        }
        Ok(GidEntry {
            gid: Gid(entry.gid.bytes()),
            index,
            port: self.number,
            kind: entry.gid_type,
            interface: entry.ndev_ifindex,
        })
    }

    /// The table of addresses, less its empty places.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn gids(&self) -> Result<Vec<GidEntry>, Error> {
        let entries =
            (0..u32::try_from(self.attributes.gid_tbl_len).unwrap_or(0)).map(|index| self.gid(index));
        let is_there = |entry: &Result<GidEntry, Error>| !matches!(entry, Err(Error::NoSuchGid { .. }));
        entries.filter(is_there).collect()
    }

    /// The address to take for RoCE v2: one of a network interface, IPv4 before IPv6, never a link-local one.
    ///
    /// # Errors
    ///
    /// [`Error::NoGid`] where there is none, [`Error::Refused`] where the device is gone.
    pub fn choose_gid(&self) -> Result<GidEntry, Error> {
        gid::choose(&self.gids()?).copied().ok_or(Error::NoGid { port: self.number })
    }
}
