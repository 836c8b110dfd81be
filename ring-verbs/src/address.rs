//! Ways to another port.
//!
//! # Safety
//!
//! An address handle is destroyed after every request that names it: each holds it by a reference count.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::Errno;
use crate::completion::Source;
use crate::domain::{Domain, ProtectionDomain};
use crate::error::{Error, Operation};
use crate::gid::{Gid, GidEntry};
use crate::sys::{WcFlags, ibv_ah, ibv_ah_attr, ibv_context, ibv_gid, ibv_wc};

/// From a port of ours to one of the peer's, with what packets on it carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    gid: Gid,
    gid_index: u8,
    port: u8,
    lid: u16,
    service_level: u8,
    hop_limit: u8,
    traffic_class: u8,
    flow_label: u32,
    is_global: bool,
}

impl Route {
    /// From the address that `local` names to `remote`. Packets may take 64 hops; service level, traffic class and flow
    /// label are 0.
    ///
    /// # Panics
    ///
    /// If the entry's index is above 255, where no request can name it.
    pub fn new(local: &GidEntry, remote: Gid) -> Self {
        let Ok(gid_index) = u8::try_from(local.index) else {
            panic!("a route cannot name the entry {} of the table: 255 is the last", local.index)
        };
        Self {
            gid: remote,
            gid_index,
            port: local.port,
            lid: 0,
            service_level: 0,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            is_global: true,
        }
    }

    /// Inside an InfiniBand subnet, without addresses of ports: from `port` to the peer's `lid`.
    pub fn within_subnet(port: u8, lid: u16) -> Self {
        Self {
            gid: Gid::default(),
            gid_index: 0,
            port,
            lid,
            service_level: 0,
            hop_limit: 0,
            traffic_class: 0,
            flow_label: 0,
            is_global: false,
        }
    }

    /// The peer's address in its InfiniBand subnet, in addition. By default 0, as on Ethernet.
    pub fn lid(mut self, lid: u16) -> Self {
        self.lid = lid;
        self
    }

    /// 0 to 15; on Ethernet its lower three bits are the priority. By default 0.
    pub fn service_level(mut self, level: u8) -> Self {
        self.service_level = level;
        self
    }

    /// How many routers packets may pass. By default 64.
    pub fn hop_limit(mut self, hops: u8) -> Self {
        self.hop_limit = hops;
        self
    }

    /// The byte of IP's header with DSCP in its upper six bits, which switches choose queues by. By default 0.
    pub fn traffic_class(mut self, class: u8) -> Self {
        self.traffic_class = class;
        self
    }

    /// 20 bits that are the same for packets which must stay in order. RoCE v2 makes the UDP source port of them, by
    /// which networks choose among equal ways. By default 0: the device chooses.
    pub fn flow_label(mut self, label: u32) -> Self {
        self.flow_label = label & 0xf_ffff;
        self
    }

    pub(crate) fn to_raw(self) -> ibv_ah_attr {
        let mut raw = ibv_ah_attr::default();
        raw.grh.dgid = ibv_gid { raw: self.gid.0 };
        raw.grh.flow_label = self.flow_label;
        raw.grh.sgid_index = self.gid_index;
        raw.grh.hop_limit = self.hop_limit;
        raw.grh.traffic_class = self.traffic_class;
        raw.dlid = self.lid;
        raw.sl = self.service_level;
        raw.is_global = self.is_global.into();
        raw.port_num = self.port;
        raw
    }
}

/// A way that the device knows: what a datagram is sent along.
///
/// ```no_run
/// use ring_verbs::{AddressHandle, Context, Gid, ProtectionDomain, Request, Route};
///
/// let context = Context::open("rxe0")?;
/// let domain = ProtectionDomain::new(&context)?;
/// let local = context.port(1)?.choose_gid()?;
/// let peer = Gid::from(std::net::IpAddr::from([192, 0, 2, 2]));
/// let handle = AddressHandle::new(&domain, &Route::new(&local, peer))?;
/// let (queue_pair, key) = (17, 0x1111_1111); // as the peer has told
/// let request = Request::send_to(&handle, queue_pair, key);
/// # Ok::<(), ring_verbs::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AddressHandle {
    pub(crate) handle: Arc<Handle>,
}

impl AddressHandle {
    /// Has the device know a route.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a route that the device cannot take.
    pub fn new(domain: &ProtectionDomain, route: &Route) -> Result<Self, Error> {
        Self::from_raw(domain, route.to_raw())
    }

    /// The way back to the sender of a datagram that came to `port`: what its completion says of it, and the first 40
    /// bytes of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the header is none, or the address that it came to is not in the port's table any
    /// more.
    pub fn to_sender(
        domain: &ProtectionDomain,
        port: u8,
        source: &Source,
        header: &[u8; 40],
    ) -> Result<Self, Error> {
        let mut wc = ibv_wc {
            src_qp: source.queue_pair,
            slid: source.lid,
            sl: source.service_level,
            dlid_path_bits: source.path_bits,
            ..ibv_wc::default()
        };
        if source.has_global_header {
            wc.wc_flags = WcFlags::GRH;
        }
        let open = &domain.domain.open;
        let mut header = AlignedHeader(*header);
        let mut raw = ibv_ah_attr::default();
        let init = open.functions.ibv_init_ah_from_wc;
        // SAFETY: the context is open, the completion and the header are there, and the attributes can be written.
        let returned =
            unsafe { init(open.raw.as_ptr(), port, &raw mut wc, (&raw mut header).cast(), &raw mut raw) };
        Errno::check(returned).map_err(|errno| Error::of(Operation::CreateAddressHandle, errno))?;
        Self::from_raw(domain, raw)
    }

    fn from_raw(domain: &ProtectionDomain, mut raw: ibv_ah_attr) -> Result<Self, Error> {
        let functions = domain.domain.open.functions;
        // SAFETY: the domain is there, and so is the route.
        let handle = unsafe { (functions.ibv_create_ah)(domain.as_raw(), &raw mut raw) };
        let raw =
            NonNull::new(handle).ok_or_else(|| Error::of(Operation::CreateAddressHandle, Errno::last()))?;
        let domain = ManuallyDrop::new(Arc::clone(&domain.domain));
        Ok(Self { handle: Arc::new(Handle { raw, domain }) })
    }
}

/// A packet's global header, aligned as the library reads it.
#[repr(C, align(8))]
struct AlignedHeader([u8; 40]);

/// Destroyed with the last reference.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) raw: NonNull<ibv_ah>,
    domain: ManuallyDrop<Arc<Domain>>,
}

impl Handle {
    /// Of what device it is, by the opening.
    pub(crate) fn context(&self) -> NonNull<ibv_context> {
        self.domain.open.raw
    }
}

// SAFETY: the library's verbs can be called from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above; it is never changed.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let open = &self.domain.open;
        // SAFETY: no request names it any more.
        if open.is_ours() && unsafe { (open.functions.ibv_destroy_ah)(self.raw.as_ptr()) } == 0 {
            // SAFETY: this is the drop. Otherwise the domain must stay, since something in it is left.
            unsafe { ManuallyDrop::drop(&mut self.domain) };
        }
    }
}
