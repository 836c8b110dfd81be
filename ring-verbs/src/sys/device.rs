//! Devices, their contexts and ports.

use core::ffi::{c_char, c_int, c_void};

use libc::pthread_mutex_t;
use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{
    _compat_ibv_port_attr, AtomicCap, DeviceCapFlags, LinkLayer, Mtu, MwType, NodeType, PortCapFlags,
    PortCapFlags2, PortFlags, PortState, TransportType, ibv_cq, ibv_mw, ibv_mw_bind, ibv_pd, ibv_qp,
    ibv_recv_wr, ibv_send_wr, ibv_srq, ibv_wc,
};

/// Room for the name of a device.
pub const IBV_SYSFS_NAME_MAX: usize = 64;
/// Room for the path of a device.
pub const IBV_SYSFS_PATH_MAX: usize = 256;

/// Two slots that have never been used.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _ibv_device_ops {
    pub _dummy1: *mut c_void,
    pub _dummy2: *mut c_void,
}

/// A device in the list; it belongs to the library.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_device {
    pub _ops: _ibv_device_ops,
    pub node_type: NodeType,
    pub transport_type: TransportType,
    /// The kernel's name for it, such as "mlx5_0".
    pub name: [c_char; IBV_SYSFS_NAME_MAX],
    /// The name of its device file, such as "uverbs0".
    pub dev_name: [c_char; IBV_SYSFS_NAME_MAX],
    pub dev_path: [c_char; IBV_SYSFS_PATH_MAX],
    pub ibdev_path: [c_char; IBV_SYSFS_PATH_MAX],
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_device>(), 664);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_device, name), 24);

/// What a device can do, and how much of it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_device_attr {
    pub fw_ver: [c_char; 64],
    /// In network byte order.
    pub node_guid: u64,
    /// In network byte order.
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    pub device_cap_flags: DeviceCapFlags,
    pub max_sge: c_int,
    pub max_sge_rd: c_int,
    pub max_cq: c_int,
    pub max_cqe: c_int,
    pub max_mr: c_int,
    pub max_pd: c_int,
    pub max_qp_rd_atom: c_int,
    pub max_ee_rd_atom: c_int,
    pub max_res_rd_atom: c_int,
    pub max_qp_init_rd_atom: c_int,
    pub max_ee_init_rd_atom: c_int,
    pub atomic_cap: AtomicCap,
    pub max_ee: c_int,
    pub max_rdd: c_int,
    pub max_mw: c_int,
    pub max_raw_ipv6_qp: c_int,
    pub max_raw_ethy_qp: c_int,
    pub max_mcast_grp: c_int,
    pub max_mcast_qp_attach: c_int,
    pub max_total_mcast_qp_attach: c_int,
    pub max_ah: c_int,
    pub max_fmr: c_int,
    pub max_map_per_fmr: c_int,
    pub max_srq: c_int,
    pub max_srq_wr: c_int,
    pub max_srq_sge: c_int,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}

const_assert_eq!(size_of::<ibv_device_attr>(), 232);
const_assert_eq!(offset_of!(ibv_device_attr, atomic_cap), 164);
const_assert_eq!(offset_of!(ibv_device_attr, phys_port_cnt), 227);

/// The state of a port.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_port_attr {
    pub state: PortState,
    pub max_mtu: Mtu,
    pub active_mtu: Mtu,
    pub gid_tbl_len: c_int,
    pub port_cap_flags: PortCapFlags,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: LinkLayer,
    pub flags: PortFlags,
    pub port_cap_flags2: PortCapFlags2,
}

const_assert_eq!(size_of::<ibv_port_attr>(), 52);
const_assert_eq!(offset_of!(ibv_port_attr, link_layer), 46);

/// A slot that only very old programs use.
pub type compat_op = Option<unsafe extern "C" fn() -> *mut c_void>;

/// The operations that are called often, which the provider's library fills.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_context_ops {
    pub _compat_query_device: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int>,
    pub _compat_query_port:
        Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut _compat_ibv_port_attr) -> c_int>,
    pub _compat_alloc_pd: compat_op,
    pub _compat_dealloc_pd: compat_op,
    pub _compat_reg_mr: compat_op,
    pub _compat_rereg_mr: compat_op,
    pub _compat_dereg_mr: compat_op,
    pub alloc_mw: Option<unsafe extern "C" fn(*mut ibv_pd, MwType) -> *mut ibv_mw>,
    pub bind_mw: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_mw, *mut ibv_mw_bind) -> c_int>,
    pub dealloc_mw: Option<unsafe extern "C" fn(*mut ibv_mw) -> c_int>,
    pub _compat_create_cq: compat_op,
    pub poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
    pub req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
    pub _compat_cq_event: compat_op,
    pub _compat_resize_cq: compat_op,
    pub _compat_destroy_cq: compat_op,
    pub _compat_create_srq: compat_op,
    pub _compat_modify_srq: compat_op,
    pub _compat_query_srq: compat_op,
    pub _compat_destroy_srq: compat_op,
    pub post_srq_recv:
        Option<unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    pub _compat_create_qp: compat_op,
    pub _compat_query_qp: compat_op,
    pub _compat_modify_qp: compat_op,
    pub _compat_destroy_qp: compat_op,
    pub post_send:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
    pub post_recv:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    pub _compat_create_ah: compat_op,
    pub _compat_destroy_ah: compat_op,
    pub _compat_attach_mcast: compat_op,
    pub _compat_detach_mcast: compat_op,
    pub _compat_async_event: compat_op,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_context_ops>(), 256);

/// A device that is open.
#[repr(C)]
pub struct ibv_context {
    pub device: *mut ibv_device,
    pub ops: ibv_context_ops,
    pub cmd_fd: c_int,
    /// Readable while there are asynchronous events.
    pub async_fd: c_int,
    pub num_comp_vectors: c_int,
    pub mutex: pthread_mutex_t,
    /// All ones where this lies at the end of a [`verbs_context`](super::verbs_context).
    pub abi_compat: *mut c_void,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_context>(), 288 + size_of::<pthread_mutex_t>());
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_context, ops), 8);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_context, ops) + offset_of!(ibv_context_ops, poll_cq), 96);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_context, ops) + offset_of!(ibv_context_ops, post_send), 208);
