//! Completion queues.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use ring_verbs::sys::{ibv_comp_channel, ibv_context, ibv_cq, ibv_wc};

use super::{code, null};
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
    Box::into_raw(Box::new(ibv_cq { context, channel, handle, cqe: entries, ..ibv_cq::default() }))
}

pub(crate) unsafe extern "C" fn destroy_cq(queue: *mut ibv_cq) -> c_int {
    end!(queue, Call::DestroyCompletionQueue)
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
        for (index, wc) in completions.drain(..count).enumerate() {
            // SAFETY: there is room for as many as were asked for.
            let at = unsafe { to.add(index) };
            // SAFETY: as above.
            unsafe { at.write(wc) };
        }
        c_int::try_from(count).expect("not more than asked for")
    })
}
