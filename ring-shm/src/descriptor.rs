//! Open files.
//!
//! # Safety
//!
//! A [`Descriptor`] owns its number: nobody else closes it, so it stays open until the drop.
#![allow(unsafe_code)]

use core::ffi::c_int;

use crate::sys;

/// An open file, closed on drop: `OwnedFd` for programs without `std`.
///
/// With the feature `std` it converts from and into `OwnedFd` and implements `AsFd`.
#[derive(Debug)]
pub struct Descriptor(c_int);

impl Descriptor {
    /// Takes over a number, such as one that a parent process left open and told this program.
    ///
    /// # Safety
    ///
    /// The number is open, and nobody else closes it or takes it over.
    ///
    /// # Panics
    ///
    /// If the number is negative.
    #[must_use]
    pub unsafe fn from_raw(number: c_int) -> Self {
        assert!(number >= 0, "a descriptor is not negative");
        Self(number)
    }

    /// Takes over what the kernel has just returned.
    pub(crate) fn owning(number: c_int) -> Self {
        Self(number)
    }

    /// The number, valid for as long as this value lives.
    #[must_use]
    pub fn raw(&self) -> c_int {
        self.0
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        sys::close(self);
    }
}

#[cfg(feature = "std")]
mod with_std {
    use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

    use super::Descriptor;

    impl AsFd for Descriptor {
        fn as_fd(&self) -> BorrowedFd<'_> {
            // SAFETY: the number stays open for as long as `self` is borrowed.
            unsafe { BorrowedFd::borrow_raw(self.0) }
        }
    }

    impl From<OwnedFd> for Descriptor {
        fn from(descriptor: OwnedFd) -> Self {
            Self(descriptor.into_raw_fd())
        }
    }

    impl From<Descriptor> for OwnedFd {
        fn from(descriptor: Descriptor) -> Self {
            let number = descriptor.0;
            core::mem::forget(descriptor);
            // SAFETY: the number is open, and its former owner will not close it.
            unsafe { Self::from_raw_fd(number) }
        }
    }
}
