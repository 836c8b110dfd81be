//! Completion queues, their channels, and what comes out of them.

use core::ffi::{c_int, c_void};

use libc::{pthread_cond_t, pthread_mutex_t};
use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{
    CqAttrMask, CqCreateFlags, CqInitAttrMask, CqWcFlags, WcFlags, WcOpcode, WcStatus, ibv_context, ibv_pd,
};

/// A channel that delivers an event for a completion queue that is armed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_comp_channel {
    pub context: *mut ibv_context,
    /// Readable while there are events.
    pub fd: c_int,
    pub refcnt: c_int,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_comp_channel>(), 16);

/// A completion queue.
#[repr(C)]
pub struct ibv_cq {
    pub context: *mut ibv_context,
    pub channel: *mut ibv_comp_channel,
    pub cq_context: *mut c_void,
    pub handle: u32,
    /// How many completions it holds.
    pub cqe: c_int,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub comp_events_completed: u32,
    pub async_events_completed: u32,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_cq>(), 40 + size_of::<pthread_mutex_t>() + size_of::<pthread_cond_t>());
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_cq, cqe), 28);

/// Options of a poll: none yet, so that `comp_mask` is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_poll_cq_attr {
    pub comp_mask: u32,
}

/// What a completion says of a tag.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_wc_tm_info {
    pub tag: u64,
    /// `priv` in C.
    pub priv_: u32,
}

const_assert_eq!(size_of::<ibv_wc_tm_info>(), 16);

/// A completion queue that is polled one completion at a time; it begins like [`ibv_cq`].
#[repr(C)]
pub struct ibv_cq_ex {
    pub context: *mut ibv_context,
    pub channel: *mut ibv_comp_channel,
    pub cq_context: *mut c_void,
    pub handle: u32,
    pub cqe: c_int,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub comp_events_completed: u32,
    pub async_events_completed: u32,
    pub comp_mask: u32,
    /// Of the completion that the poll stands at.
    pub status: WcStatus,
    /// Of the completion that the poll stands at.
    pub wr_id: u64,
    pub start_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex, *mut ibv_poll_cq_attr) -> c_int>,
    pub next_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_int>,
    pub end_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex)>,
    pub read_opcode: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> WcOpcode>,
    pub read_vendor_err: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub read_byte_len: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub read_imm_data: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub read_qp_num: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub read_src_qp: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub read_wc_flags: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> WcFlags>,
    pub read_slid: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub read_sl: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u8>,
    pub read_dlid_path_bits: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u8>,
    pub read_completion_ts: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u64>,
    pub read_cvlan: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u16>,
    pub read_flow_tag: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub read_tm_info: Option<unsafe extern "C" fn(*mut ibv_cq_ex, *mut ibv_wc_tm_info)>,
    pub read_completion_wallclock_ns: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u64>,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_cq_ex>(), size_of::<ibv_cq>() + 160);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_cq_ex, start_poll), size_of::<ibv_cq>() + 16);
const_assert_eq!(offset_of!(ibv_cq_ex, async_events_completed), offset_of!(ibv_cq, async_events_completed));

/// Properties of an extended completion queue.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_cq_init_attr_ex {
    pub cqe: u32,
    pub cq_context: *mut c_void,
    pub channel: *mut ibv_comp_channel,
    pub comp_vector: u32,
    pub wc_flags: CqWcFlags,
    pub comp_mask: CqInitAttrMask,
    pub flags: CqCreateFlags,
    pub parent_domain: *mut ibv_pd,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_cq_init_attr_ex>(), 56);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_cq_init_attr_ex, wc_flags), 32);

/// How many completions, and how long, an event waits for.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_moderate_cq {
    pub cq_count: u16,
    /// In microseconds.
    pub cq_period: u16,
}

/// What is to change of a completion queue.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_modify_cq_attr {
    pub attr_mask: CqAttrMask,
    pub moderate: ibv_moderate_cq,
}

const_assert_eq!(size_of::<ibv_modify_cq_attr>(), 8);

/// What a completion carries, by its flags.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_wc_imm {
    /// In network byte order.
    pub imm_data: u32,
    pub invalidated_rkey: u32,
}

/// A completion; of a failed one only `wr_id`, `status`, `vendor_err` and `qp_num` count.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_wc {
    pub wr_id: u64,
    pub status: WcStatus,
    pub opcode: WcOpcode,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm: ibv_wc_imm,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: WcFlags,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

const_assert_eq!(size_of::<ibv_wc>(), 48);
const_assert_eq!(offset_of!(ibv_wc, qp_num), 28);
const_assert_eq!(offset_of!(ibv_wc, dlid_path_bits), 45);
