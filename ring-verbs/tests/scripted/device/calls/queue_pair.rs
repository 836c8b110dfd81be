//! Queue pairs.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::c_int;

use ring_verbs::sys::{QpAttrMask, QpState, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr};

use super::{code, null, set_errno};
use crate::device::{Call, Kind, Modified, Scripted};

pub(crate) unsafe extern "C" fn create_qp(
    domain: *mut ibv_pd,
    attributes: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    let device = device_of!(domain);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::CreateQueuePair) {
        return null(answer);
    }
    // SAFETY: the attributes are there.
    let ibv_qp_init_attr { send_cq, recv_cq, srq, qp_type, .. } = unsafe { attributes.read() };
    // SAFETY: all of them are there.
    let mut uses = unsafe { vec![(*domain).handle, (*send_cq).handle, (*recv_cq).handle] };
    // SAFETY: as above, where there is one.
    uses.extend(unsafe { srq.as_ref() }.map(|queue| queue.handle));
    let handle = state.make(Kind::QueuePair, uses);
    // SAFETY: the domain is there.
    let context = unsafe { (*domain).context };
    Box::into_raw(Box::new(ibv_qp {
        context,
        pd: domain,
        send_cq,
        recv_cq,
        srq,
        handle,
        qp_num: 0x1000 + handle,
        state: QpState::RESET,
        qp_type,
        ..ibv_qp::default()
    }))
}

pub(crate) unsafe extern "C" fn modify_qp(
    pair: *mut ibv_qp,
    attributes: *mut ibv_qp_attr,
    mask: QpAttrMask,
) -> c_int {
    let device = device_of!(pair);
    let mut state = device.state();
    // SAFETY: the attributes are there.
    let attributes = unsafe { attributes.read() };
    state.modified.push(Modified { attributes, mask });
    if let Some(answer) = state.answer(Call::ModifyQueuePair) {
        return code(answer);
    }
    // SAFETY: the pair is there, and only this writes its state.
    unsafe { (*pair).state = attributes.qp_state };
    0
}

pub(crate) unsafe extern "C" fn query_qp(
    pair: *mut ibv_qp,
    to: *mut ibv_qp_attr,
    _: QpAttrMask,
    _: *mut ibv_qp_init_attr,
) -> c_int {
    let device = device_of!(pair);
    if let Some(answer) = device.state().answer(Call::QueryQueuePair) {
        return code(answer);
    }
    // SAFETY: the pair is there.
    let qp_state = unsafe { (*pair).state };
    // SAFETY: it can be written.
    unsafe { to.write(ibv_qp_attr { qp_state, ..ibv_qp_attr::default() }) };
    0
}

pub(crate) unsafe extern "C" fn destroy_qp(pair: *mut ibv_qp) -> c_int {
    end!(pair, Call::DestroyQueuePair)
}
