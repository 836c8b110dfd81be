//! Completion queues.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use ring_verbs::sys::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_modify_cq_attr, ibv_wc,
};

use super::{code, extended_poll, null, set_errno};
use crate::device::{Call, Kind, Scripted};
use crate::heap;

pub(crate) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    entries: c_int,
    _: *mut c_void,
    channel: *mut ibv_comp_channel,
    _: c_int,
) -> *mut ibv_cq {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::CreateCompletionQueue) {
        return null(answer);
    }
    let handle = state.make(Kind::CompletionQueue, vec![]);
    let queue = ibv_cq_ex { context, channel, handle, cqe: entries, ..ibv_cq_ex::default() };
    // All are extended; who did not ask for that does not know the operations.
    Box::into_raw(Box::new(queue)).cast()
}

pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    attributes: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    // SAFETY: the attributes are there.
    let attributes = unsafe { *attributes };
    state.extended.push(attributes);
    if let Some(answer) = state.answer(Call::CreateExtendedQueue) {
        return null(answer);
    }
    let handle = state.make(Kind::CompletionQueue, vec![]);
    let entries = c_int::try_from(attributes.cqe).expect("as many as the device has");
    let queue = ibv_cq_ex {
        context,
        channel: attributes.channel,
        handle,
        cqe: entries,
        ..extended_poll::operations(attributes.wc_flags)
    };
    Box::into_raw(Box::new(queue))
}

pub(crate) unsafe extern "C" fn destroy_cq(queue: *mut ibv_cq) -> c_int {
    let queue = queue.cast::<ibv_cq_ex>();
    end!(queue, Call::DestroyCompletionQueue)
}

pub(crate) unsafe extern "C" fn modify_cq(queue: *mut ibv_cq, attributes: *mut ibv_modify_cq_attr) -> c_int {
    let device = device_of!(queue);
    let mut state = device.state();
    // SAFETY: the attributes are there.
    state.moderated.push(unsafe { *attributes });
    state.answer(Call::Moderate).map_or(0, code)
}

pub(crate) unsafe extern "C" fn poll_cq(queue: *mut ibv_cq, most: c_int, to: *mut ibv_wc) -> c_int {
    let device = device_of!(queue);
    // SAFETY: the queue is there.
    let number = unsafe { (*queue).handle };
    heap::of_the_device(|| {
        let mut state = device.state();
        if let Some(answer) = state.answer(Call::Poll) {
            return code(answer);
        }
        let Some(completions) = state.completions.get_mut(&number) else { return 0 };
        let count = usize::try_from(most).expect("not negative").min(completions.len());
        for (index, stamped) in completions.drain(..count).enumerate() {
            // SAFETY: there is room for as many as were asked for.
            let at = unsafe { to.add(index) };
            // SAFETY: as above.
            unsafe { at.write(stamped.wc) };
        }
        c_int::try_from(count).expect("not more than asked for")
    })
}
