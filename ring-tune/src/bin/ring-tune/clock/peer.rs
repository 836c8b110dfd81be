//! A second process of this command, and memory that both map.
//!
//! # Safety
//!
//! The memory is mapped for as long as the process lives, is never unmapped, and holds atomics that start as zero. The
//! process is forked while the command has one thread, so that the child finds no lock taken; it ends without running what
//! belongs to the parent.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr;
use std::io;

use super::one_way::Shared;

/// What may lie in memory that two processes write: atomics, for which zeros are a value.
///
/// # Safety
///
/// All bits zero are a valid value, and all of it is atomic.
pub(super) unsafe trait Zeroed: Sync {}

// SAFETY: two lines, each an atomic word.
unsafe impl Zeroed for Shared {}

/// Memory that a child forked later shares.
pub(super) fn share<T: Zeroed>() -> io::Result<&'static T> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new mapping, at a place that the kernel chooses.
    let address = unsafe { libc::mmap(ptr::null_mut(), size_of::<T>(), protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is as long as T, aligned to a page, zero, and stays until the process ends.
    Ok(unsafe { &*address.cast::<T>() })
}

/// The process that started this one; another number once that has ended.
pub(super) fn parent() -> libc::pid_t {
    // SAFETY: has no arguments and never fails.
    unsafe { libc::getppid() }
}

/// A process that runs a function of this program; killed on drop.
#[derive(Debug)]
pub(super) struct Child {
    process: libc::pid_t,
    /// As `waitpid` told it: it tells once.
    status: Cell<Option<libc::c_int>>,
}

impl Child {
    /// Runs the function in a child, which ends well if it says so. It is told the parent's number.
    pub(super) fn start(work: impl FnOnce(libc::pid_t) -> bool) -> io::Result<Self> {
        // SAFETY: has no arguments and never fails.
        let own = unsafe { libc::getpid() };
        // SAFETY: the command has one thread.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let is_well = work(own);
                // SAFETY: ends the child at once, and runs nothing that the parent will run.
                unsafe { libc::_exit(i32::from(!is_well)) }
            }
            process => Ok(Self { process, status: Cell::new(None) }),
        }
    }

    /// Whether it has not ended yet.
    pub(super) fn is_running(&self) -> bool {
        self.look(libc::WNOHANG);
        self.status.get().is_none()
    }

    /// Waits for its end. Whether it ended well.
    pub(super) fn wait(&self) -> bool {
        while self.status.get().is_none() {
            self.look(0);
        }
        self.status.get() == Some(0)
    }

    fn look(&self, flags: libc::c_int) {
        if self.status.get().is_some() {
            return;
        }
        let mut status = 0;
        // SAFETY: `status` lives on the stack; the child is this process's own, and was not waited for.
        let ended = unsafe { libc::waitpid(self.process, &raw mut status, flags) };
        if ended == self.process {
            self.status.set(Some(status));
        } else if ended < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // Somebody else has taken its status, which can then not be told.
            self.status.set(Some(-1));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_running() {
            // SAFETY: the child was not waited for, so that its number is its own.
            unsafe { libc::kill(self.process, libc::SIGKILL) };
            self.wait();
        }
    }
}
