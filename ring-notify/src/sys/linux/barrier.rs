//! Barriers in every core at once, for who would rather pay once than have others pay for each message.
//!
//! # Safety
//!
//! The calls take and give integers only.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_long};

/// From linux/membarrier.h.
const GLOBAL_EXPEDITED: c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: c_int = 1 << 2;

fn membarrier(command: c_int) -> bool {
    const NO_FLAGS: c_int = 0;
    const NO_CPU: c_int = 0;
    // SAFETY: no pointer is passed.
    let result: c_long = unsafe { libc::syscall(libc::SYS_membarrier, command, NO_FLAGS, NO_CPU) };
    result == 0
}

/// Has this process take part in heavy barriers: whoever issues one then issues it on each core that runs this process.
/// Says whether the kernel does that. It takes up to 30 ms in a process that has threads, and nothing the second time;
/// a forked child is registered as its parent is.
pub(crate) fn register_for_heavy_barriers() -> bool {
    membarrier(REGISTER_GLOBAL_EXPEDITED)
}

/// Whether the kernel issues heavy barriers for this process: tried, since a sandbox may forbid them.
pub(crate) fn has_heavy_barriers() -> bool {
    membarrier(GLOBAL_EXPEDITED)
}

/// A full fence here, and one on each core that runs a process that is registered. False: the kernel refuses.
pub(crate) fn heavy_barrier() -> bool {
    membarrier(GLOBAL_EXPEDITED)
}
