//! Threads and the CPUs they may run on.
//!
//! # Safety
//!
//! The unsafe blocks call libc with a buffer that this file owns and whose size it passes along.
#![allow(unsafe_code)]

#[cfg(feature = "std")]
mod process;
#[cfg(test)]
mod tests;

use core::ffi::c_int;

use crate::{CpuSet, Errno, Error, MAX_CPUS};
#[cfg(feature = "std")]
pub use process::pin_process;

/// How libc names the calling thread.
const THIS_THREAD: c_int = 0;

/// Pins the calling thread to one CPU and returns when it runs there.
///
/// The effect is verified by reading back the affinity and the CPU, since another program, or a change of the
/// cpuset, may overrule it at any time. Threads that are created later inherit the pinning.
///
/// # Errors
///
/// [`Error::CpuOutOfRange`] from [`MAX_CPUS`] on, [`Error::Pin`] where the kernel refuses,
/// [`Error::PinNotInEffect`] where it accepts but something overruled it.
///
/// ```
/// use ring_tune::{allowed_cpus, current_cpu, pin_to};
///
/// let last = allowed_cpus()?.iter().last().expect("a running thread may run somewhere");
/// pin_to(last)?;
/// assert_eq!(current_cpu()?, last);
/// # Ok::<(), ring_tune::Error>(())
/// ```
pub fn pin_to(cpu: usize) -> Result<(), Error> {
    let wanted = CpuSet::only(cpu)?;
    set_affinity(THIS_THREAD, &wanted).map_err(|source| Error::Pin { cpu, source })?;

    let runs_on = current_cpu()?;
    if allowed_cpus()? != wanted || runs_on != cpu {
        return Err(Error::PinNotInEffect { cpu, runs_on });
    }
    Ok(())
}

/// Pins the calling thread to a set of CPUs and returns when the set is in effect.
///
/// Verified as by [`pin_thread`]. Threads that are created later inherit the set.
///
/// # Errors
///
/// [`Error::PinThread`] where the kernel refuses, [`Error::PinThreadNotInEffect`] where it accepts but narrows the set
/// or something overruled it.
///
/// ```
/// use ring_tune::{allowed_cpus, pin_to_set};
///
/// let allowed = allowed_cpus()?;
/// pin_to_set(&allowed)?;
/// assert_eq!(allowed_cpus()?, allowed);
/// # Ok::<(), ring_tune::Error>(())
/// ```
pub fn pin_to_set(cpus: &CpuSet) -> Result<(), Error> {
    pin_thread(THIS_THREAD, cpus)
}

/// Pins a thread of any process by its number, as gettid(2) and `/proc/PID/task` have it; 0 is the calling thread.
///
/// The kernel takes away what is offline or outside the thread's cpuset and says nothing, as sched_setaffinity(2) has
/// it. Here the set is read back, and the pinning holds as a whole or is an error; the thread then has what the kernel
/// left of the set.
///
/// # Errors
///
/// [`Error::PinThread`] where the kernel refuses, [`Error::PinThreadNotInEffect`] where it accepts but narrows the set
/// or something overruled it.
///
/// ```
/// use ring_tune::{allowed_cpus, pin_thread};
///
/// let mut sleeper = std::process::Command::new("sleep").arg("60").spawn()?;
/// let number = i32::try_from(sleeper.id())?;
/// let pinned = pin_thread(number, &allowed_cpus()?);
/// sleeper.kill()?;
/// sleeper.wait()?;
/// assert_eq!(pinned, Ok(()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pin_thread(thread: c_int, cpus: &CpuSet) -> Result<(), Error> {
    let refused = |source| Error::PinThread { thread, source };
    set_affinity(thread, cpus).map_err(refused)?;
    let actual = affinity(thread).map_err(refused)?;
    match (0..MAX_CPUS).find(|&cpu| actual.contains(cpu) != cpus.contains(cpu)) {
        Some(cpu) => Err(Error::PinThreadNotInEffect { thread, cpu }),
        None => Ok(()),
    }
}

/// The CPUs that the calling thread may run on at this moment.
///
/// # Errors
///
/// [`Error::ReadAffinity`] where a sandbox forbids the call or the machine has more than [`MAX_CPUS`] CPUs.
///
/// ```
/// let allowed = ring_tune::allowed_cpus()?;
/// assert!(allowed.iter().count() > 0);
/// # Ok::<(), ring_tune::Error>(())
/// ```
pub fn allowed_cpus() -> Result<CpuSet, Error> {
    affinity(THIS_THREAD).map_err(|source| Error::ReadAffinity { source })
}

/// The CPU that the calling thread runs on; unless it is pinned, it may be another one already.
///
/// # Errors
///
/// [`Error::ReadCurrentCpu`] where a sandbox forbids the call.
///
/// ```
/// let cpu = ring_tune::current_cpu()?;
/// assert!(cpu < ring_tune::MAX_CPUS);
/// # Ok::<(), ring_tune::Error>(())
/// ```
pub fn current_cpu() -> Result<usize, Error> {
    // SAFETY: takes no argument and touches no memory of ours.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).map_err(|_| Error::ReadCurrentCpu { source: Errno::last() })
}

fn set_affinity(thread: c_int, cpus: &CpuSet) -> Result<(), Errno> {
    // SAFETY: the pointer and the length describe `cpus`, which the kernel only reads.
    let status = unsafe { libc::sched_setaffinity(thread, CpuSet::BYTES, core::ptr::from_ref(cpus).cast()) };
    if status == 0 { Ok(()) } else { Err(Errno::last()) }
}

fn affinity(thread: c_int) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    // SAFETY: the pointer and the length describe `set`, any bit pattern of which is valid.
    let status = unsafe { libc::sched_getaffinity(thread, CpuSet::BYTES, (&raw mut set).cast()) };
    if status == 0 { Ok(set) } else { Err(Errno::last()) }
}
