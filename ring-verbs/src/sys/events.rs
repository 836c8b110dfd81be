//! What happens without having been asked for.

use core::ffi::c_int;

use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{EventType, ibv_cq, ibv_qp, ibv_srq, ibv_wq};

/// What an event is about, by its type.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_async_event_element {
    pub cq: *mut ibv_cq,
    pub qp: *mut ibv_qp,
    pub srq: *mut ibv_srq,
    pub wq: *mut ibv_wq,
    pub port_num: c_int,
}

/// An asynchronous event; each is acknowledged once.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_async_event {
    pub element: ibv_async_event_element,
    pub event_type: EventType,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_async_event>(), 16);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_async_event, event_type), 8);
