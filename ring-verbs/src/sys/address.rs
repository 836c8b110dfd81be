//! Where a message goes: GIDs, routes, address handles.

use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{GidType, ibv_context, ibv_pd};

/// The address of a port, 16 bytes in network byte order.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_gid {
    pub raw: [u8; 16],
    pub global: ibv_gid_global,
}

/// The halves of a GID, each in network byte order.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ibv_gid_global {
    pub subnet_prefix: u64,
    pub interface_id: u64,
}

const_assert_eq!(size_of::<ibv_gid>(), 16);
const_assert_eq!(align_of::<ibv_gid>(), 8);

/// An entry of a port's table of GIDs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_gid_entry {
    pub gid: ibv_gid,
    pub gid_index: u32,
    pub port_num: u32,
    pub gid_type: GidType,
    /// The network interface it belongs to, 0 if none does.
    pub ndev_ifindex: u32,
}

const_assert_eq!(size_of::<ibv_gid_entry>(), 32);
const_assert_eq!(offset_of!(ibv_gid_entry, gid_type), 24);

/// The global part of an address.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_global_route {
    pub dgid: ibv_gid,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

const_assert_eq!(size_of::<ibv_global_route>(), 24);
const_assert_eq!(offset_of!(ibv_global_route, traffic_class), 22);

/// The header before the data of a datagram, in network byte order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_grh {
    pub version_tclass_flow: u32,
    pub paylen: u16,
    pub next_hdr: u8,
    pub hop_limit: u8,
    pub sgid: ibv_gid,
    pub dgid: ibv_gid,
}

const_assert_eq!(size_of::<ibv_grh>(), 40);
const_assert_eq!(offset_of!(ibv_grh, sgid), 8);

/// The whole of an address: route, local identifier, service level, port.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_ah_attr {
    pub grh: ibv_global_route,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}

const_assert_eq!(size_of::<ibv_ah_attr>(), 32);
const_assert_eq!(offset_of!(ibv_ah_attr, port_num), 30);

/// An address handle.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_ah {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub handle: u32,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_ah>(), 24);
