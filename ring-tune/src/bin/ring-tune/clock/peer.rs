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

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use super::one_way::Shared;

/// Memory that a child forked later shares.
pub(super) fn share() -> io::Result<&'static Shared> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new mapping, at a place that the kernel chooses.
    let address = unsafe { libc::mmap(ptr::null_mut(), size_of::<Shared>(), protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is as long as two atomic words on lines of their own, aligned to a page, zero, and stays until the
    // process ends.
    Ok(unsafe { &*address.cast::<Shared>() })
}

/// A process that runs a function of this program; killed on drop.
#[derive(Debug)]
pub(super) struct Child {
    process: Pid,
    /// Whether it ended well, as `waitpid` told it: it tells once.
    end: Cell<Option<bool>>,
}

impl Child {
    /// Runs the function in a child, which ends well if it says so. It is told the parent's number.
    pub(super) fn start(work: impl FnOnce(Pid) -> bool) -> io::Result<Self> {
        let parent = getpid();
        // SAFETY: the command has one thread.
        let process = unsafe { libc::fork() };
        if process == 0 {
            let is_well = work(parent);
            // SAFETY: ends the child at once, and runs nothing that the parent will run.
            unsafe { libc::_exit(i32::from(!is_well)) }
        }
        let process = Pid::from_raw(process).filter(|_| process > 0).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { process, end: Cell::new(None) })
    }

    /// Whether it has not ended yet.
    pub(super) fn is_running(&self) -> bool {
        self.look(WaitOptions::NOHANG);
        self.end.get().is_none()
    }

    /// Waits for its end. Whether it ended well.
    pub(super) fn wait(&self) -> bool {
        loop {
            match self.end.get() {
                Some(is_well) => return is_well,
                None => self.look(WaitOptions::empty()),
            }
        }
    }

    fn look(&self, options: WaitOptions) {
        if self.end.get().is_some() {
            return;
        }
        match waitpid(Some(self.process), options) {
            Ok(None) | Err(Errno::INTR) => {}
            Ok(Some((_, status))) => self.end.set(Some(status.exit_status() == Some(0))),
            // Somebody else has taken its status, which can then not be told.
            Err(_) => self.end.set(Some(false)),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_running() {
            // It was not waited for, so that its number is its own.
            let _ = kill_process(self.process, Signal::KILL);
            self.wait();
        }
    }
}
