//! The kernel's clocks.
//!
//! # Safety
//!
//! The unsafe block calls `clock_gettime` with a buffer that lives on the stack.
#![allow(unsafe_code)]

use super::NS_PER_SECOND;

#[inline]
pub(super) fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// The clock that is never slewed towards a time server: the right one to learn a frequency from.
#[inline]
pub(super) fn monotonic_raw_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC_RAW)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to `time`, which the kernel fills in.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(status, 0, "both clocks exist since Linux 2.6.28");
    time.tv_sec as u64 * NS_PER_SECOND + time.tv_nsec as u64
}
