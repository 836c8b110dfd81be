//! Being told to end, without a handler: the signals are blocked, and the thread that has nothing to do waits for them.
//!
//! # Safety
//!
//! The unsafe blocks call libc with sets of signals and a time that live on the stack; `sigemptyset` fills a set in
//! before it is read.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;
use std::io;

/// SIGINT and SIGTERM, blocked in this thread and in those that it starts from now on.
#[derive(Debug)]
pub(super) struct Signals {
    blocked: Set,
    before: Set,
}

impl Signals {
    pub(super) fn block() -> io::Result<Self> {
        let mut blocked = empty();
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: the set is filled in, and the signals exist.
            unsafe { libc::sigaddset(&raw mut blocked, signal) };
        }
        let mut before = empty();
        // SAFETY: the kernel reads one set and writes the other.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut before) } {
            0 => Ok(Self { blocked: Set(blocked), before: Set(before) }),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Waits for one of them, and for no longer than this; whether one came.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let mut time = libc::timespec { tv_sec: libc::time_t::MAX, tv_nsec: 0 };
        if let Ok(seconds) = libc::time_t::try_from(longest.as_secs()) {
            time = libc::timespec { tv_sec: seconds, tv_nsec: longest.subsec_nanos().into() };
        }
        // SAFETY: the kernel reads the set and the time; nobody wants to know more about the signal.
        unsafe { libc::sigtimedwait(&raw const self.blocked.0, ptr::null_mut(), &raw const time) > 0 }
    }

    /// From now on one of them does to this thread what it did before; so does one that came meanwhile.
    pub(super) fn unblock(&self) {
        // SAFETY: the kernel reads the set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before.0, ptr::null_mut()) };
    }
}

struct Set(libc::sigset_t);

impl core::fmt::Debug for Set {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("Set")
    }
}

fn empty() -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: the function writes one set to the pointer.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: it is filled in.
    unsafe { set.assume_init() }
}
