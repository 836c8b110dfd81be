//! The functions of a scripted device.
//!
//! # Safety
//!
//! They are called as the manual pages ask: with objects of this device that are there, and lists that end with NULL.
#![allow(unsafe_code)]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise of the caller covers an object's fields"
)]

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use ring_verbs::sys::{
    ibv_context, ibv_device, ibv_device_attr, ibv_device_attr_ex, ibv_query_device_ex_input,
};

use super::state::{Answer, Call};
use super::{Scripted, set_errno};

const NAME: &CStr = c"scripted0";

/// More than any test asks for.
const MANY: c_int = 1 << 20;

/// What a function returns that was told to fail.
fn code(answer: Answer) -> c_int {
    set_errno(answer.errno);
    answer.returned
}

/// As `code`, where the result is a pointer.
fn null<T>(answer: Answer) -> *mut T {
    set_errno(answer.errno);
    ptr::null_mut()
}

macro_rules! device_of {
    ($object:ident) => {{
        // SAFETY: the object is there.
        let context = unsafe { (*$object).context };
        // SAFETY: it is of a scripted device.
        unsafe { Scripted::of(context) }
    }};
}

/// Ends an object of the library and frees it, unless it is used or is to fail.
macro_rules! end {
    ($object:ident, $call:expr) => {{
        let device = device_of!($object);
        let mut state = device.state();
        if let Some(answer) = state.answer($call) {
            return code(answer);
        }
        // SAFETY: the object is there.
        let number = unsafe { (*$object).handle };
        if !state.end(number) {
            return libc::EBUSY;
        }
        // SAFETY: it was made of a box, and is ended once.
        drop(unsafe { Box::from_raw($object) });
        // A call that succeeds leaves anything there.
        set_errno(libc::ENOENT);
        0
    }};
}

// They use the macros, which are known from here on.
pub(super) mod completion_queue;
pub(super) mod events;
pub(super) mod extended_poll;
pub(super) mod memory;
pub(super) mod post;
pub(super) mod queue_pair;
pub(super) mod shared_queue;

pub(super) unsafe extern "C" fn get_device_name(_: *mut ibv_device) -> *const c_char {
    NAME.as_ptr()
}

pub(super) unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    assert!(!state.is_closed, "it is closed once");
    state.busy += u32::from(!state.live().is_empty());
    state.is_closed = true;
    // SAFETY: the context is there.
    let descriptor = unsafe { (*context).async_fd };
    if descriptor >= 0 {
        // SAFETY: it is the context's.
        unsafe { libc::close(descriptor) };
    }
    0
}

pub(super) unsafe extern "C" fn query_device(context: *mut ibv_context, to: *mut ibv_device_attr) -> c_int {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    if let Some(answer) = device.state().answer(Call::QueryDevice) {
        return code(answer);
    }
    // SAFETY: it can be written.
    unsafe { to.write(attributes()) };
    0
}

fn attributes() -> ibv_device_attr {
    ibv_device_attr {
        max_qp_wr: MANY,
        max_sge: 16,
        max_cqe: MANY,
        max_srq_wr: MANY,
        max_srq_sge: 16,
        phys_port_cnt: 1,
        ..ibv_device_attr::default()
    }
}

pub(super) unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    _: *const ibv_query_device_ex_input,
    to: *mut ibv_device_attr_ex,
    bytes: usize,
) -> c_int {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::QueryExtended) {
        return code(answer);
    }
    assert_eq!(bytes, size_of::<ibv_device_attr_ex>());
    let hca_core_clock = state.clock_khz;
    let attributes =
        ibv_device_attr_ex { orig_attr: attributes(), hca_core_clock, ..ibv_device_attr_ex::default() };
    // SAFETY: it can be written.
    unsafe { to.write(attributes) };
    0
}
