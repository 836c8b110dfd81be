//! Locks that belong to an open file description, and descriptions of one's own.
//!
//! # Safety
//!
//! As in the parent module: descriptors are open, paths end in a zero byte.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_short};

use super::call;
use crate::short_path::ShortPath;
use crate::{Descriptor, Errno};

/// How much a lock keeps others from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// As many as like to, but no exclusive one beside them.
    Shared,
    Exclusive,
}

/// Locks a byte of the file for the description behind `descriptor`, unless another description's lock is in the way.
/// The kernel takes it back when the last descriptor and the last mapping of that description is gone.
pub(crate) fn lock_byte(descriptor: &Descriptor, offset: i64, kind: LockKind) -> Result<bool, Errno> {
    let kind = match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    };
    let lock = one_byte(offset, kind);
    // SAFETY: the descriptor is open and the structure is readable.
    let result = call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_OFD_SETLK, &raw const lock) });
    match result {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCES) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives the lock on a byte back, whoever else has the description.
pub(crate) fn unlock_byte(descriptor: &Descriptor, offset: i64) {
    let lock = one_byte(offset, libc::F_UNLCK);
    // SAFETY: the descriptor is open and the structure is readable.
    let _ = call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_OFD_SETLK, &raw const lock) });
}

/// Whether another description than that behind `descriptor` has a lock on a byte of the file.
pub(crate) fn is_byte_locked(descriptor: &Descriptor, offset: i64) -> Result<bool, Errno> {
    let mut lock = one_byte(offset, libc::F_WRLCK);
    // SAFETY: the descriptor is open and the structure is writable.
    call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_OFD_GETLK, &raw mut lock) })?;
    Ok(c_int::from(lock.l_type) != libc::F_UNLCK)
}

fn one_byte(offset: i64, kind: c_int) -> libc::flock {
    // SAFETY: plain integers, for which zeroes are valid. The kernel wants 0 as the process.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    #[expect(clippy::cast_possible_truncation, reason = "constants that fit")]
    {
        lock.l_type = kind as c_short;
        lock.l_whence = libc::SEEK_SET as c_short;
    }
    lock.l_start = offset;
    lock.l_len = 1;
    lock
}

/// Opens the file behind a descriptor once more, for reading and writing: another description of the same file.
/// `NOENT` without /proc.
pub(crate) fn open_again(descriptor: &Descriptor) -> Result<Descriptor, Errno> {
    let path = ShortPath::new(format_args!("/proc/self/fd/{}", descriptor.raw())).ok_or(Errno::INVAL)?;
    let path = path.as_c_str();
    // SAFETY: the path ends in a zero byte.
    call(|| unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }).map(Descriptor::owning)
}
