//! Shared receive queues; [posting](super::post) to them is beside the other posts.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::c_int;

use ring_verbs::sys::{SrqAttrMask, ibv_pd, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};

use super::{code, null, set_errno};
use crate::device::{Call, Kind, Scripted};

pub(crate) unsafe extern "C" fn create_srq(domain: *mut ibv_pd, _: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    let device = device_of!(domain);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::CreateSharedQueue) {
        return null(answer);
    }
    // SAFETY: the domain is there.
    let (context, uses) = unsafe { ((*domain).context, vec![(*domain).handle]) };
    let handle = state.make(Kind::SharedQueue, uses);
    Box::into_raw(Box::new(ibv_srq { context, pd: domain, handle, ..ibv_srq::default() }))
}

pub(crate) unsafe extern "C" fn modify_srq(
    queue: *mut ibv_srq,
    attributes: *mut ibv_srq_attr,
    mask: SrqAttrMask,
) -> c_int {
    let device = device_of!(queue);
    let mut state = device.state();
    assert_eq!(mask, SrqAttrMask::LIMIT);
    // SAFETY: the attributes are there.
    state.limits.push(unsafe { *attributes });
    state.answer(Call::ModifySharedQueue).map_or(0, code)
}

pub(crate) unsafe extern "C" fn destroy_srq(queue: *mut ibv_srq) -> c_int {
    end!(queue, Call::DestroySharedQueue)
}
