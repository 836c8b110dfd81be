//! Memory that a ring lies in, and who else may touch it.
//!
//! # Safety
//!
//! This file declares what an implementor of [`Region`] and of [`Private`] promises; every pointer that the
//! rings form rests on it.
#![allow(unsafe_code)]

use core::ptr::NonNull;

mod fixed;
#[cfg(feature = "alloc")]
mod heap;
mod trusted;

pub use fixed::StaticRegion;
#[cfg(feature = "alloc")]
pub use heap::HeapRegion;
pub use trusted::Trusted;

/// Alignment in bytes of every region: two cache lines, since adjacent-line prefetchers pull lines in pairs.
pub const REGION_ALIGN: usize = 128;

/// Memory that somebody lends to a ring: a static, a heap box, a mapping, a registered region.
///
/// # Safety
///
/// For as long as the value lives, also after it was moved:
///
/// - `base` returns the same address, a multiple of [`REGION_ALIGN`], and `bytes` the same length;
/// - these bytes can be read and written, were initialised, and lie in one allocation or mapping;
/// - whoever else touches them from this program goes through atomics or through another ring handle.
///
/// What another program does to the bytes is not restricted: the rings are sound over memory that a hostile
/// process writes.
pub unsafe trait Region {
    /// Address of the first byte.
    fn base(&self) -> NonNull<u8>;

    /// Length in bytes.
    fn bytes(&self) -> usize;
}

/// A region whose every user keeps the rings' protocol, so that a reader may hold `&T` into it.
///
/// # Safety
///
/// No program outside this one can write the bytes, or whoever can is promised to use them only as a correct
/// peer of the ring.
pub unsafe trait Private: Region {}

// SAFETY: a reference is as stable as what it refers to.
unsafe impl<R: Region + ?Sized> Region for &R {
    fn base(&self) -> NonNull<u8> {
        (**self).base()
    }

    fn bytes(&self) -> usize {
        (**self).bytes()
    }
}

// SAFETY: the same bytes with the same users.
unsafe impl<R: Private + ?Sized> Private for &R {}
