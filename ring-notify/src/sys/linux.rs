//! The system calls.
//!
//! # Safety
//!
//! Every foreign call of this crate is here and in the files below. The kernel reads and writes only what a reference
//! that the wrapper holds points to, for the length of the call. A futex word is the half of an atomic of 64 bits; the
//! kernel reads it as one of 32, and never writes it.
#![allow(unsafe_code)]

mod barrier;
#[cfg(feature = "std")]
mod event;
mod futex;

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::time::Duration;

pub(crate) use barrier::{has_heavy_barriers, heavy_barrier, register_for_heavy_barriers};
#[cfg(feature = "std")]
pub(crate) use event::wait_for_any;
#[cfg(feature = "std")]
pub use event::{Event, EventKind};
pub(crate) use futex::{futex_wait, futex_wait_any, futex_wake};

use super::Deadline;

/// The number that the last failed call of this thread left.
fn errno() -> c_int {
    // SAFETY: the C library returns the address of this thread's own errno.
    let address = unsafe { libc::__errno_location() };
    // SAFETY: that address is valid for as long as the thread runs.
    unsafe { *address }
}

/// Time on the monotonic clock.
pub(crate) fn now() -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel fills the structure that it is given.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) };
    assert_eq!(result, 0, "the monotonic clock is part of every Linux");
    // SAFETY: it succeeded, so it filled the structure.
    let time = unsafe { time.assume_init() };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn timespec(time: Duration) -> libc::timespec {
    // SAFETY: of integers, for which all zeroes are valid.
    let mut spec: libc::timespec = unsafe { core::mem::zeroed() };
    spec.tv_sec = time.as_secs().try_into().unwrap_or(libc::time_t::MAX);
    spec.tv_nsec = time.subsec_nanos().into();
    spec
}

/// The CPU that runs this thread, for a moment at least.
pub(crate) fn cpu() -> u64 {
    // SAFETY: it takes nothing.
    let number = unsafe { libc::sched_getcpu() };
    number.try_into().unwrap_or(0)
}

/// Lets another thread run that waits for this CPU.
pub(crate) fn yield_now() {
    // SAFETY: it takes nothing, and never fails on Linux.
    unsafe { libc::sched_yield() };
}

/// Sleeps until the deadline or for a millisecond, without being woken, where nothing better works.
pub(crate) fn doze(deadline: Deadline) {
    /// As long as a message may then be late.
    const LONGEST: Duration = Duration::from_millis(1);
    let left = deadline.map_or(LONGEST, |deadline| deadline.saturating_sub(now()).min(LONGEST));
    let spec = timespec(left);
    // SAFETY: the kernel reads the structure, and writes nothing back.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &spec, core::ptr::null_mut()) };
}
