//! Real-time scheduling of the calling thread.
//!
//! # Safety
//!
//! The unsafe blocks call the kernel with a structure of plain integers that this file owns, whose size it passes
//! along, and for which all bit patterns are valid.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use core::ffi::{c_int, c_uint};
use core::marker::PhantomData;

use crate::{Errno, Error};

const THIS_THREAD: c_int = 0;
const FIFO: u32 = libc::SCHED_FIFO.unsigned_abs();

/// Has the calling thread scheduled by SCHED_FIFO until it is dropped: no thread of the usual policies takes its CPU,
/// and threads of a lower priority do not either. Then the thread has its policy, priority and nice value back.
///
/// A thread that spins like this starves whatever else must run on its CPU, the kernel's own threads included. So the
/// kernel stops it: before Linux 6.12 for 50 ms in each second, the rest of `kernel.sched_rt_runtime_us`, whether anybody
/// else wants the CPU or not; later kernels have a fair server that gives others 50 ms in each second if they wait
/// (sched(7), `/sys/kernel/debug/sched/fair_server`). Use it on an isolated CPU, or for threads that sleep.
///
/// Guards of one thread may end in any order: the last of them leaves it without the priority of any. Whoever else changes
/// the policy meanwhile is not overruled, except that the thread goes back below what it has then.
///
/// Threads that are created meanwhile inherit the policy and keep it, unless this one has SCHED_RESET_ON_FORK.
///
/// ```
/// use ring_tune::{Error, Fifo};
///
/// match Fifo::begin(1) {
///     Ok(fifo) => {
///         assert_eq!(fifo.priority(), 1);
///         // Here the thread goes before all others.
///         drop(fifo);
///     }
///     // The error says which limit to raise.
///     Err(error) => assert!(matches!(error, Error::Fifo { priority: 1, .. }), "{error}"),
/// }
/// ```
///
/// It belongs to its thread:
///
/// ```compile_fail
/// let fifo = ring_tune::Fifo::begin(1).unwrap();
/// std::thread::spawn(move || drop(fifo));
/// ```
#[derive(Debug)]
#[must_use = "dropped at once, it changes nothing"]
pub struct Fifo {
    before: Attributes,
    priority: u8,
    /// Drop restores the thread that it runs in.
    of_this_thread: PhantomData<*mut ()>,
}

impl Fifo {
    /// Schedules the calling thread by SCHED_FIFO with a priority from 1, the lowest, to 99, and reads it back.
    ///
    /// # Errors
    ///
    /// [`Error::Fifo`] where the kernel refuses: RLIMIT_RTPRIO and CAP_SYS_NICE decide, and the budget of the cgroup
    /// where the kernel has real-time group scheduling (sched(7)). [`Error::ReadScheduling`],
    /// [`Error::FifoNotInEffect`].
    pub fn begin(priority: u8) -> Result<Self, Error> {
        let before = Attributes::read().map_err(|source| Error::ReadScheduling { source })?;
        let wanted = before.fifo(priority);
        wanted.set().map_err(|source| Error::Fifo { priority, source })?;
        // From here on, each way out puts back what was.
        let fifo = Self { before, priority, of_this_thread: PhantomData };
        let actual = Attributes::read().map_err(|source| Error::ReadScheduling { source })?;
        if (actual.policy, actual.priority) != (wanted.policy, wanted.priority) {
            return Err(Error::FifoNotInEffect { priority });
        }
        Ok(fifo)
    }

    /// The priority, from 1 to 99.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Leaves the thread as it is now: for a program that it goes on to execute, or a thread that ends with the
    /// policy.
    ///
    /// ```
    /// let thread = std::thread::spawn(|| match ring_tune::Fifo::begin(1) {
    ///     Ok(fifo) => fifo.keep(),
    ///     Err(error) => eprintln!("{error}"),
    /// });
    /// thread.join().unwrap();
    /// ```
    pub fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let is_own = |now: Attributes| (now.policy, now.priority) == (FIFO, self.priority.into());
        // What another guard of this thread, or somebody else, has set is lowered, never raised: a guard that ended before
        // this one, though it began earlier, has already put back what was before both.
        if Attributes::read().map_or(true, |now| is_own(now) || self.before.priority < now.priority) {
            // Nothing is left to do about a refusal; less priority is what everybody may have.
            let _ = self.before.set();
        }
    }
}

/// `struct sched_attr` of sched_setattr(2), as its first version has it: 48 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Attributes {
    bytes: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

impl Attributes {
    const BYTES: u32 = 48;
    /// SCHED_FLAG_RESET_ON_FORK of sched_setattr(2).
    const RESET_ON_FORK: u64 = 1;

    /// A thread whose children do not inherit its policy may not give that up without privilege: it stays.
    fn fifo(&self, priority: u8) -> Self {
        let flags = self.flags & Self::RESET_ON_FORK;
        Self { bytes: Self::BYTES, policy: FIFO, flags, priority: priority.into(), ..Self::default() }
    }

    /// Those of the calling thread.
    fn read() -> Result<Self, Errno> {
        let mut attributes = Self::default();
        let flags: c_uint = 0;
        // SAFETY: the kernel writes as many bytes to `attributes` as are passed along, and it has as many.
        let status = unsafe {
            libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut attributes, Self::BYTES, flags)
        };
        if status == 0 { Ok(attributes) } else { Err(Errno::last()) }
    }

    /// Gives them to the calling thread.
    fn set(&self) -> Result<(), Errno> {
        let flags: c_uint = 0;
        // SAFETY: the kernel reads as many bytes of `self` as its first field says, and it has as many.
        let status =
            unsafe { libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, core::ptr::from_ref(self), flags) };
        if status == 0 { Ok(()) } else { Err(Errno::last()) }
    }
}

const _: () = assert!(size_of::<Attributes>() == Attributes::BYTES as usize);
