//! Asynchronous events.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::ffi::c_int;

use ring_verbs::sys::{ibv_async_event, ibv_context};

use super::{code, set_errno};
use crate::device::{Call, Scripted};

thread_local! {
    /// The device that this thread has got an event of: not every event names one.
    static OF: Cell<Option<Scripted>> = const { Cell::new(None) };
}

pub(crate) unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    to: *mut ibv_async_event,
) -> c_int {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::NextEvent) {
        return code(answer);
    }
    // SAFETY: the context is there.
    let descriptor = unsafe { (*context).async_fd };
    // SAFETY: it takes no memory.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    assert!(flags >= 0 && flags & libc::O_NONBLOCK != 0, "it would sleep for ever");
    let Some(event) = state.events.pop_front() else {
        set_errno(libc::EAGAIN);
        return -1;
    };
    let mut one = 0_u64;
    // SAFETY: the number can be written.
    let got = unsafe { libc::read(descriptor, (&raw mut one).cast(), size_of::<u64>()) };
    assert_eq!((usize::try_from(got), one), (Ok(size_of::<u64>()), 1), "the descriptor counts the events");
    // SAFETY: it can be written.
    unsafe { to.write(event.raw) };
    state.told.push(event);
    OF.set(Some(device));
    0
}

pub(crate) unsafe extern "C" fn ack_async_event(event: *mut ibv_async_event) {
    // SAFETY: the event is there.
    let kind = unsafe { (*event).event_type };
    let device = OF.get().expect("an event was told");
    let mut state = device.state();
    let index = state.told.iter().position(|event| event.raw.event_type == kind);
    let event = state.told.remove(index.expect("it was told, and is acknowledged once"));
    state.acknowledged.push(kind);
    if let Some(pair) = event.pair {
        // From here on it may be gone, and another at its place.
        // SAFETY: it was made of a box for this event.
        let mut pair = unsafe { Box::from_raw(pair) };
        pair.qp_num = u32::MAX;
    }
}
