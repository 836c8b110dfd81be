//! What of the C library and of the process all objects need.
//!
//! # Safety
//!
//! The calls into the C library here take no memory of ours but what is named beside them.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int};
use core::ptr;
use core::time::Duration;

use crate::Errno;
use crate::deadline::Deadline;

/// The error number that the last failed call left for this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: it gives the address of a word of this thread, which is always there.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: that word can be read.
    unsafe { *at }
}

/// This process.
pub(crate) fn process() -> c_int {
    // SAFETY: it has no arguments and touches no memory.
    unsafe { libc::getpid() }
}

/// Bits that nobody foresees.
#[cfg(feature = "std")]
pub(crate) fn random() -> Result<u32, Errno> {
    let mut bytes = [0; 4];
    // SAFETY: the bytes can be written.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(got) == Ok(bytes.len()) { Ok(u32::from_ne_bytes(bytes)) } else { Err(Errno::last()) }
}

/// How many bytes this process may lock; `u64::MAX` is no limit.
pub(crate) fn lockable_bytes() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` can be written.
    match unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// The number that a file of the kernel's holds; none where there is no such file, or no such number in it.
pub(crate) fn read_number(file: &CStr) -> Option<u32> {
    // SAFETY: the name ends with 0.
    let descriptor = unsafe { libc::open(file.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    let mut text = [0; 16];
    // SAFETY: the text can be written.
    let length = unsafe { libc::read(descriptor, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: it was opened here.
    unsafe { libc::close(descriptor) };
    let text = text.get(..usize::try_from(length).ok()?)?;
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Lets another thread have this CPU, which may be waiting for it.
pub(crate) fn yield_now() {
    // SAFETY: it has no arguments and touches no memory.
    unsafe { libc::sched_yield() };
}

/// Time on the monotonic clock.
pub(crate) fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time can be written.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

/// Waits until a descriptor can be read; false: the time is over. None: there is no end. Signals do not end it.
pub(crate) fn wait_readable(descriptor: c_int, deadline: Option<Deadline>) -> Result<bool, Errno> {
    loop {
        let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let left = deadline.map(Deadline::left).map(|left| libc::timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let left = left.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the entry can be written, the time is there or none, and so is the mask.
        match unsafe { libc::ppoll(&raw mut entry, 1, left, ptr::null()) } {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ if errno() == libc::EINTR => {}
            _ => return Err(Errno::last()),
        }
    }
}

/// Makes reads of a descriptor return at once.
pub(crate) fn set_nonblocking(descriptor: c_int) -> Result<(), Errno> {
    // SAFETY: it takes no memory.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    // SAFETY: as above.
    if flags < 0 || unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
        return Err(Errno::last());
    }
    Ok(())
}
