//! The calling thread and the CPUs it may run on.
//!
//! # Safety
//!
//! The unsafe blocks call libc with a buffer that this file owns and whose size it passes along, or read the
//! thread's own error number.
#![allow(unsafe_code)]

use crate::{CpuSet, Errno, Error};

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
    // SAFETY: the pointer and the length describe `wanted`, which the kernel only reads; 0 is this thread.
    let status = unsafe { libc::sched_setaffinity(0, CpuSet::BYTES, (&raw const wanted).cast()) };
    if status != 0 {
        return Err(Error::Pin { cpu, source: last_errno() });
    }

    let runs_on = current_cpu()?;
    if allowed_cpus()? != wanted || runs_on != cpu {
        return Err(Error::PinNotInEffect { cpu, runs_on });
    }
    Ok(())
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
    let mut set = CpuSet::new();
    // SAFETY: the pointer and the length describe `set`, any bit pattern of which is valid; 0 is this thread.
    let status = unsafe { libc::sched_getaffinity(0, CpuSet::BYTES, (&raw mut set).cast()) };
    if status == 0 { Ok(set) } else { Err(Error::ReadAffinity { source: last_errno() }) }
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
    usize::try_from(cpu).map_err(|_| Error::ReadCurrentCpu { source: last_errno() })
}

fn last_errno() -> Errno {
    // SAFETY: takes no argument; the address that it returns is this thread's own, for as long as it lives.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: see above; nothing else runs in this thread between the two.
    Errno(unsafe { *location })
}

#[cfg(test)]
mod tests {
    use std::{format, fs, thread, vec::Vec};

    use super::*;
    use crate::MAX_CPUS;

    /// What the kernel says of the calling thread, by another way than the one under test.
    fn allowed_by_proc() -> std::string::String {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().into()
    }

    #[test]
    fn a_pinned_thread_runs_on_its_cpu_and_nowhere_else() {
        let before = allowed_cpus().unwrap();
        for cpu in before.iter() {
            thread::spawn(move || {
                pin_to(cpu).unwrap();
                assert_eq!(allowed_by_proc(), format!("{cpu}"));
                for _ in 0..100 {
                    thread::yield_now();
                    assert_eq!(current_cpu().unwrap(), cpu);
                }
                assert_eq!(allowed_cpus().unwrap().iter().collect::<Vec<_>>(), [cpu]);
            })
            .join()
            .unwrap();
        }
        assert_eq!(allowed_cpus().unwrap(), before, "pinning another thread leaves this one alone");
    }

    #[test]
    fn a_refused_pin_leaves_the_thread_where_it_was() {
        let before = allowed_cpus().unwrap();
        assert_eq!(pin_to(MAX_CPUS), Err(Error::CpuOutOfRange { cpu: MAX_CPUS, limit: MAX_CPUS }));
        let absent = MAX_CPUS - 1;
        assert_eq!(pin_to(absent), Err(Error::Pin { cpu: absent, source: Errno::INVAL }));
        assert_eq!(allowed_cpus().unwrap(), before);
    }
}
