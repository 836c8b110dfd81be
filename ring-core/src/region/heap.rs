//! Regions in the heap.
//!
//! # Safety
//!
//! A [`HeapRegion`] owns the allocation that `base` points to, until it is dropped.

#![allow(unsafe_code)]

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::sync::Arc;
use core::ptr::NonNull;

use super::{REGION_ALIGN, Region, TrustedRegion};
use crate::Role;

/// A zeroed box in the heap for a ring within one process.
///
/// ```
/// use ring_core::{HeapRegion, Region};
///
/// let region = HeapRegion::new(4096);
/// assert_eq!(region.bytes(), 4096);
/// ```
#[derive(Debug)]
pub struct HeapRegion {
    base: NonNull<u8>,
    layout: Layout,
}

impl HeapRegion {
    /// Allocates `bytes` zeroed bytes.
    ///
    /// # Panics
    ///
    /// When `bytes` is 0 or larger than `isize::MAX`. Out of memory ends as the allocator's handler has it.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        assert!(bytes > 0, "an empty region holds no ring");
        let layout =
            Layout::from_size_align(bytes, REGION_ALIGN).expect("a size that an allocation can have");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, layout }
    }
}

impl Drop for HeapRegion {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and owned since.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

// SAFETY: the allocation does not move with the value; it was zeroed, hence initialised, and is reached through
// ring handles only.
unsafe impl Region for HeapRegion {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn bytes(&self) -> usize {
        self.layout.size()
    }
}

// SAFETY: heap memory belongs to this program alone.
unsafe impl TrustedRegion for HeapRegion {}

// SAFETY: the allocation is bound to no thread.
unsafe impl Send for HeapRegion {}

// SAFETY: a shared reference gives out an address and a length, and both are constant.
unsafe impl Sync for HeapRegion {}

// SAFETY: as stable as what it points to, and alive as long.
unsafe impl<R: Region + ?Sized> Region for Arc<R> {
    fn base(&self) -> NonNull<u8> {
        (**self).base()
    }

    fn bytes(&self) -> usize {
        (**self).bytes()
    }

    fn owner_process(&self, role: Role) -> u32 {
        (**self).owner_process(role)
    }
}

// SAFETY: the same bytes with the same users.
unsafe impl<R: TrustedRegion + ?Sized> TrustedRegion for Arc<R> {}
