//! What the C library does around a fork.
//!
//! # Safety
//!
//! A [`Mutex`] is never moved once it is locked: it lives in a static.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ffi::c_int;

use crate::Errno;

/// A lock that the handlers around a fork can take and give back. It does not say what it protects.
pub(crate) struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: to be used by several threads at once is what a mutex is for.
unsafe impl Sync for Mutex {}

impl Mutex {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    pub(crate) fn lock(&'static self) {
        // SAFETY: the mutex is initialised. Without an owner's error check the call cannot fail.
        let _ = unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// By who has locked it, or by the child of who has.
    pub(crate) fn unlock(&'static self) {
        // SAFETY: the mutex is initialised.
        let _ = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// Has the C library call these around each `fork` of this process.
pub(crate) fn at_fork(
    before: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) -> Result<(), Errno> {
    // SAFETY: the functions take nothing and stay where they are.
    match unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) } {
        0 => Ok(()),
        error => Err(Errno(error)),
    }
}

/// Closes a number that a forked child has inherited and nobody there uses.
pub(crate) fn close_number(number: c_int) {
    // SAFETY: the caller's only right to the number is to close it.
    let _ = unsafe { libc::close(number) };
}
