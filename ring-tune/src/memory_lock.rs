//! Memory that stays in memory.
//!
//! # Safety
//!
//! The unsafe blocks pass plain numbers, or a structure that this file owns and that the kernel fills.
#![allow(unsafe_code)]

use crate::{Errno, Error};

/// Locks all memory of this process, what is mapped now and what it maps later: no page of it is swapped out, and pages
/// are there before they are first touched. It holds until [`unlock_all_memory`], and ends with an exec; a child that is
/// forked does not inherit it.
///
/// The whole process is meant, so there is no guard: one that is dropped would unlock what another part of the program
/// has locked. Stacks and reserved regions of allocators count with their full size, and mappings that are made later
/// fail where the limit is reached, as mlockall(2) has it.
///
/// # Errors
///
/// [`Error::LockMemory`] with the limit that stands in the way.
///
/// ```
/// use ring_tune::{Error, lock_all_memory, unlock_all_memory};
///
/// match lock_all_memory() {
///     Ok(()) => unlock_all_memory()?,
///     // The error says what RLIMIT_MEMLOCK allows.
///     Err(error) => assert!(matches!(error, Error::LockMemory { .. }), "{error}"),
/// }
/// # Ok::<(), Error>(())
/// ```
pub fn lock_all_memory() -> Result<(), Error> {
    // SAFETY: takes plain numbers; pages do not change their content or place for the process.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(refused(Errno::last())),
    }
}

/// Unlocks all memory of this process, whoever locked it, and what it maps later is not locked.
///
/// # Errors
///
/// [`Error::LockMemory`] where a sandbox forbids the call.
pub fn unlock_all_memory() -> Result<(), Error> {
    // SAFETY: takes no argument; pages do not change their content or place for the process.
    match unsafe { libc::munlockall() } {
        0 => Ok(()),
        _ => Err(refused(Errno::last())),
    }
}

fn refused(source: Errno) -> Error {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills `limit`, two plain integers.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    // RLIM_INFINITY is the largest number.
    let limit_bytes = if status == 0 { limit.rlim_cur } else { u64::MAX };
    Error::LockMemory { limit_bytes, source }
}
