//! Shared receive queues.

use core::ffi::c_void;

use libc::{pthread_cond_t, pthread_mutex_t};
use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{SrqInitAttrMask, SrqType, ibv_context, ibv_cq, ibv_pd, ibv_xrcd};

/// A shared receive queue.
#[repr(C)]
pub struct ibv_srq {
    pub context: *mut ibv_context,
    pub srq_context: *mut c_void,
    pub pd: *mut ibv_pd,
    pub handle: u32,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub events_completed: u32,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_srq>(), 40 + size_of::<pthread_mutex_t>() + size_of::<pthread_cond_t>());

/// The size of a shared receive queue, and its limit.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_srq_attr {
    pub max_wr: u32,
    pub max_sge: u32,
    /// Fewer receives than this raise an event, once; 0 raises none.
    pub srq_limit: u32,
}

const_assert_eq!(size_of::<ibv_srq_attr>(), 12);

/// Properties of a shared receive queue.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_srq_init_attr {
    pub srq_context: *mut c_void,
    pub attr: ibv_srq_attr,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_srq_init_attr>(), 24);

/// Limits of a queue that matches tags.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_tm_cap {
    pub max_num_tags: u32,
    pub max_ops: u32,
}

/// Properties of an extended shared receive queue; it begins like [`ibv_srq_init_attr`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_srq_init_attr_ex {
    pub srq_context: *mut c_void,
    pub attr: ibv_srq_attr,
    pub comp_mask: SrqInitAttrMask,
    pub srq_type: SrqType,
    pub pd: *mut ibv_pd,
    pub xrcd: *mut ibv_xrcd,
    pub cq: *mut ibv_cq,
    pub tm_cap: ibv_tm_cap,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_srq_init_attr_ex>(), 64);
const_assert_eq!(offset_of!(ibv_srq_init_attr_ex, attr), offset_of!(ibv_srq_init_attr, attr));
