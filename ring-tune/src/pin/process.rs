//! All threads of a process.

use core::ffi::c_int;
use std::collections::BTreeSet;
use std::fs;
use std::io;

use super::{affinity, pin_thread};
use crate::{CpuSet, Errno, Error};

/// Each pass catches the threads that came during the one before. A process that needs as many is being moved by
/// somebody else at the same time.
const MOST_PASSES: usize = 1_000;

/// Pins all threads of a process and returns how many they are.
///
/// Threads that come meanwhile are caught: a thread inherits the CPUs of its creator, so that once two passes in a row
/// found all threads pinned, nobody is left who could make one that is not.
///
/// # Errors
///
/// [`Error::ListThreads`] for a process that is not there; as [`pin_thread`] for a thread that cannot be pinned, where
/// those before it stay pinned.
///
/// ```
/// use ring_tune::{allowed_cpus, pin_process};
///
/// let this_process = i32::try_from(std::process::id())?;
/// let threads = pin_process(this_process, &allowed_cpus()?)?;
/// assert!(threads >= 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pin_process(process: c_int, cpus: &CpuSet) -> Result<usize, Error> {
    let mut last_pinned = process;
    let mut clean = 0;
    for _ in 0..MOST_PASSES {
        let threads = threads(process).map_err(|source| Error::ListThreads { process, source })?;
        let mut pinned = 0;
        for &thread in &threads {
            if pin_if_needed(thread, cpus)? {
                pinned += 1;
                last_pinned = thread;
            }
        }
        clean = if pinned == 0 { clean + 1 } else { 0 };
        // One pass is not enough: the kernel may leave a thread out of a long list when another one ends meanwhile.
        if clean == 2 {
            return Ok(threads.len());
        }
    }
    let cpu = cpus.iter().next().unwrap_or_default();
    Err(Error::PinThreadNotInEffect { thread: last_pinned, cpu })
}

/// Whether it had to be pinned; a thread that has ended needs nothing.
fn pin_if_needed(thread: c_int, cpus: &CpuSet) -> Result<bool, Error> {
    if affinity(thread).is_ok_and(|actual| actual == *cpus) {
        return Ok(false);
    }
    match pin_thread(thread, cpus) {
        Ok(()) => Ok(true),
        Err(Error::PinThread { source: Errno(libc::ESRCH), .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The threads of a process, as proc_pid_task(5) lists them.
fn threads(process: c_int) -> Result<BTreeSet<c_int>, Errno> {
    let errno = |error: io::Error| Errno(error.raw_os_error().unwrap_or(libc::EIO));
    let mut threads = BTreeSet::new();
    for entry in fs::read_dir(std::format!("/proc/{process}/task")).map_err(errno)? {
        let name = entry.map_err(errno)?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse::<c_int>().ok()));
    }
    if threads.is_empty() { Err(Errno(libc::ESRCH)) } else { Ok(threads) }
}
