//! A shared mapping, from `mmap` to `munmap`.
//!
//! # Safety
//!
//! A [`Mapping`] owns the bytes from `address` on: they stay mapped, readable and writable until the drop. No
//! reference into them is formed but to atomics, since other processes write them.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::header::{DATA_OFFSET, Header};
use crate::{Descriptor, Errno, sys};

/// The mapped file, header and data, at least one header long.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference only atomics are reached, and addresses told.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file, which must have that many.
    ///
    /// # Panics
    ///
    /// If that is less than a header.
    pub(crate) fn new(descriptor: &Descriptor, bytes: usize) -> Result<Self, Errno> {
        assert!(bytes >= size_of::<Header>(), "no room for the header");
        Ok(Self { address: sys::map(descriptor, bytes)?, bytes })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn header(&self) -> &Header {
        let header = self.address.cast::<Header>();
        // SAFETY: pages are aligned for any header, `new` checked the length, a header is atomics for which
        // any bytes are valid, and the mapping outlives the reference.
        unsafe { header.as_ref() }
    }

    /// Where the data begin.
    pub(crate) fn data(&self) -> NonNull<u8> {
        // SAFETY: the data begin at the end of the header, for which `new` found room.
        unsafe { self.address.add(DATA_OFFSET) }
    }

    /// Has the pages come from one NUMA node. Nothing may have been reserved yet.
    pub(crate) fn bind(&self, node: u32) -> Result<(), Errno> {
        sys::numa::bind(self.address, self.bytes, node)
    }

    /// On which nodes the pages lie: see [`sys::numa::locate`].
    pub(crate) fn locate(&self, page_bytes: usize, tell: impl FnMut(Option<u32>)) -> Result<(), Errno> {
        sys::numa::locate(self.address, self.bytes, page_bytes, tell)
    }

    /// Makes every page present and writable, allocating what is missing. [`Errno::INVAL`] on Linux before 5.14.
    pub(crate) fn allocate(&self) -> Result<(), Errno> {
        sys::populate(self.address, self.bytes)
    }

    /// Makes every page present and writable, so that no later access faults. All must have been reserved.
    pub(crate) fn populate(&self, page_bytes: usize) -> Result<(), Errno> {
        match self.allocate() {
            // Linux before 5.14.
            Err(Errno::INVAL) => {
                self.touch(page_bytes);
                Ok(())
            }
            result => result,
        }
    }

    pub(crate) fn leave_out_of_core_dumps(&self) -> Result<(), Errno> {
        sys::leave_out_of_core_dumps(self.address, self.bytes)
    }

    pub(crate) fn leave_out_of_forks(&self) -> Result<(), Errno> {
        sys::leave_out_of_forks(self.address, self.bytes)
    }

    /// Keeps the pages in memory: all, or what is touched.
    pub(crate) fn lock(&self, all: bool) -> Result<(), Errno> {
        let lock = if all { sys::lock } else { sys::lock_what_is_touched };
        lock(self.address, self.bytes)
    }

    /// Writes to every page what is there already.
    fn touch(&self, page_bytes: usize) {
        for offset in (0..self.bytes).step_by(page_bytes) {
            // SAFETY: the offset is inside the mapping.
            let byte = unsafe { self.address.add(offset) };
            // SAFETY: the byte is mapped, and every access to it in this program is atomic.
            let byte = unsafe { AtomicU8::from_ptr(byte.as_ptr()) };
            // An exchange takes a page fault for writing even where it fails. An addition of 0 may be
            // compiled to a load.
            // ORDERING: Relaxed: no value changes, and none is used.
            let _ = byte.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped these bytes, and whoever borrowed them from this value is gone.
        unsafe { sys::unmap(self.address, self.bytes) };
    }
}

#[cfg(test)]
mod tests;
