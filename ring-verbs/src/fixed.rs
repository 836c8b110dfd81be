//! Slices that pointers lead into.
//!
//! A box promises whenever it is moved, or borrowed alone, that there is no other way to what it holds, which ends the
//! use of pointers that were taken before. This promises nothing: its elements are reached by pointers only.
//!
//! # Safety
//!
//! The pointer is that of a box, which is made of it again when this is dropped.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::ptr::NonNull;

/// Elements that stay where they are until this is dropped.
#[derive(Debug)]
pub(crate) struct Fixed<T>(NonNull<[T]>);

impl<T> Fixed<T> {
    pub(crate) fn new(elements: Box<[T]>) -> Self {
        Self(NonNull::from(Box::leak(elements)))
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Where the first lies, and the others behind it.
    #[inline(always)]
    pub(crate) fn first(&self) -> *mut T {
        self.0.as_ptr().cast()
    }

    /// Where one lies.
    ///
    /// # Panics
    ///
    /// If there is none of this index.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> *mut T {
        assert!(index < self.count(), "there is no element {index} of {}", self.count());
        // SAFETY: it lies inside.
        unsafe { self.first().add(index) }
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        // SAFETY: it was a box, and this is the drop.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
