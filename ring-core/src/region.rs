//! Memory that a ring lies in, and who else may touch it.
//!
//! # Safety
//!
//! This file declares what an implementor of [`Region`] and of [`TrustedRegion`] promises; every pointer that the
//! rings form rests on it.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use crate::{Error, Role};

mod fixed;
#[cfg(feature = "alloc")]
mod heap;
mod trusted;

pub use fixed::StaticRegion;
#[cfg(feature = "alloc")]
pub use heap::HeapRegion;
pub use trusted::Trusted;

/// A cache line, as the layout has it on every machine.
pub(crate) const LINE_BYTES: usize = 64;

/// Bytes of a first-level cache, as most processors have it. From this size on pushes bring lines near and pops keep a
/// distance.
pub(crate) const CACHE_BYTES: usize = 32 * 1024;

/// Alignment in bytes of every region: two cache lines, since adjacent-line prefetchers pull lines in pairs.
pub const REGION_ALIGN: usize = 2 * LINE_BYTES;

/// Memory that somebody lends to a ring: a static, a heap box, a mapping, a registered region.
///
/// # Safety
///
/// For as long as the value lives, also after it was moved:
///
/// - `base` returns the same address, a multiple of [`REGION_ALIGN`], and `bytes` the same length;
/// - these bytes can be read and written, were initialised, and lie in one allocation or mapping;
/// - whoever else touches them from this program goes through atomics or through another ring handle;
/// - where `owner_process` is not 0, the system knows that the value lives, and a [`Liveness`](crate::Liveness) that asks
///   the system does not declare gone who has the role through the value.
///
/// What another program does to the bytes is not restricted: the rings are sound over memory that a hostile
/// process writes.
pub unsafe trait Region {
    /// Address of the first byte.
    fn base(&self) -> NonNull<u8>;

    /// Length in bytes.
    fn bytes(&self) -> usize;

    /// This process, where the value comes with something that the kernel takes back at its death, a lock, and by which
    /// others see that whoever has `role` through the value is alive. 0, and by default: nothing of the kind.
    fn owner_process(&self, role: Role) -> u32 {
        let _ = role;
        0
    }
}

/// A region whose every user keeps the rings' protocol, so that a grant may give `&T` into it.
///
/// # Safety
///
/// Nobody in this program touches the bytes but through ring handles. No other program can write them, or
/// whoever can is promised to do so only as a correct peer of the ring.
pub unsafe trait TrustedRegion: Region {}

/// Whether `needed` bytes fit the region.
pub(crate) fn check_room(region: &impl Region, needed: usize) -> Result<(), Error> {
    if region.bytes() < needed {
        return Err(Error::RegionTooSmall { needed: needed as u64, available: region.bytes() as u64 });
    }
    Ok(())
}

/// The header at the start of a region, in one that is long enough.
///
/// # Safety
///
/// An `H` consists of atomics, and is aligned to [`REGION_ALIGN`] at most.
pub(crate) unsafe fn start_of<H, R: Region>(region: &R) -> Result<&H, Error> {
    check_room(region, size_of::<H>())?;
    // SAFETY: the region is that long, aligned and initialised by its contract; what an `H` is the caller promises.
    Ok(unsafe { region.base().cast::<H>().as_ref() })
}

// SAFETY: a reference is as stable as what it refers to.
unsafe impl<R: Region + ?Sized> Region for &R {
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
unsafe impl<R: TrustedRegion + ?Sized> TrustedRegion for &R {}
