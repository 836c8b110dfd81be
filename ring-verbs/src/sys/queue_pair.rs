//! Queue pairs.

use core::ffi::{c_int, c_void};

use libc::{pthread_cond_t, pthread_mutex_t};
use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{
    AccessFlags, MigState, Mtu, QpCreateFlags, QpInitAttrMask, QpSendOpsFlags, QpState, QpType, SendFlags,
    ibv_ah, ibv_ah_attr, ibv_context, ibv_cq, ibv_data_buf, ibv_mw, ibv_mw_bind_info, ibv_pd,
    ibv_rwq_ind_table, ibv_sge, ibv_srq, ibv_xrcd,
};

/// A queue pair.
#[repr(C)]
pub struct ibv_qp {
    pub context: *mut ibv_context,
    pub qp_context: *mut c_void,
    pub pd: *mut ibv_pd,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub handle: u32,
    pub qp_num: u32,
    /// What it was last changed to; the device may have left that since.
    pub state: QpState,
    pub qp_type: QpType,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub events_completed: u32,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_qp>(), 72 + size_of::<pthread_mutex_t>() + size_of::<pthread_cond_t>());
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_qp, qp_num), 52);

/// A queue pair whose requests are built by calls, between `wr_start` and `wr_complete`.
#[repr(C)]
pub struct ibv_qp_ex {
    pub qp_base: ibv_qp,
    pub comp_mask: u64,
    /// Of the request that is begun next.
    pub wr_id: u64,
    /// Of the request that is begun next.
    pub wr_flags: SendFlags,
    pub wr_atomic_cmp_swp: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u64, u64)>,
    pub wr_atomic_fetch_add: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u64)>,
    pub wr_bind_mw: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut ibv_mw, u32, *const ibv_mw_bind_info)>,
    pub wr_local_inv: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub wr_rdma_read: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
    pub wr_rdma_write: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
    pub wr_rdma_write_imm: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
    pub wr_send: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
    pub wr_send_imm: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub wr_send_inv: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub wr_send_tso: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut c_void, u16, u16)>,
    pub wr_set_ud_addr: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut ibv_ah, u32, u32)>,
    pub wr_set_xrc_srqn: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub wr_set_inline_data: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut c_void, usize)>,
    pub wr_set_inline_data_list: Option<unsafe extern "C" fn(*mut ibv_qp_ex, usize, *const ibv_data_buf)>,
    pub wr_set_sge: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
    pub wr_set_sge_list: Option<unsafe extern "C" fn(*mut ibv_qp_ex, usize, *const ibv_sge)>,
    pub wr_start: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
    pub wr_complete: Option<unsafe extern "C" fn(*mut ibv_qp_ex) -> c_int>,
    pub wr_abort: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
    pub wr_atomic_write: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, *const c_void)>,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_qp_ex>(), size_of::<ibv_qp>() + 192);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_qp_ex, wr_start), size_of::<ibv_qp>() + 160);

/// How much a queue pair holds.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ibv_qp_cap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

const_assert_eq!(size_of::<ibv_qp_cap>(), 20);

/// Properties of a queue pair.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_qp_init_attr {
    pub qp_context: *mut c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub cap: ibv_qp_cap,
    pub qp_type: QpType,
    pub sq_sig_all: c_int,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_qp_init_attr>(), 64);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_qp_init_attr, qp_type), 52);

/// How what arrives is spread over several queues.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_rx_hash_conf {
    pub rx_hash_function: u8,
    pub rx_hash_key_len: u8,
    pub rx_hash_key: *mut u8,
    pub rx_hash_fields_mask: u64,
}

/// Properties of an extended queue pair; it begins like [`ibv_qp_init_attr`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_qp_init_attr_ex {
    pub qp_context: *mut c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub cap: ibv_qp_cap,
    pub qp_type: QpType,
    pub sq_sig_all: c_int,
    pub comp_mask: QpInitAttrMask,
    pub pd: *mut ibv_pd,
    pub xrcd: *mut ibv_xrcd,
    pub create_flags: QpCreateFlags,
    pub max_tso_header: u16,
    pub rwq_ind_tbl: *mut ibv_rwq_ind_table,
    pub rx_hash_conf: ibv_rx_hash_conf,
    pub source_qpn: u32,
    pub send_ops_flags: QpSendOpsFlags,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_qp_init_attr_ex>(), 136);
const_assert_eq!(offset_of!(ibv_qp_init_attr_ex, sq_sig_all), offset_of!(ibv_qp_init_attr, sq_sig_all));

/// The state of a queue pair, and of its connection.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_qp_attr {
    pub qp_state: QpState,
    pub cur_qp_state: QpState,
    pub path_mtu: Mtu,
    pub path_mig_state: MigState,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: AccessFlags,
    pub cap: ibv_qp_cap,
    pub ah_attr: ibv_ah_attr,
    pub alt_ah_attr: ibv_ah_attr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    /// In kbit/s.
    pub rate_limit: u32,
}

const_assert_eq!(size_of::<ibv_qp_attr>(), 144);
const_assert_eq!(offset_of!(ibv_qp_attr, ah_attr), 56);
const_assert_eq!(offset_of!(ibv_qp_attr, rate_limit), 136);
