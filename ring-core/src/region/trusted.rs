//! Regions whose other user is promised to behave.
//!
//! # Safety
//!
//! [`Trusted::new`] is where the promise is made.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use super::{Region, TrustedRegion};
use crate::Role;

/// A region shared with a peer that the caller vouches for; the ring's grants give `&T` into the slots.
#[derive(Debug)]
pub struct Trusted<R>(R);

impl<R: Region> Trusted<R> {
    /// Makes the promise of [`TrustedRegion`] for this region.
    ///
    /// # Safety
    ///
    /// Every program that can write the region, for as long as this value and the handles made with it live,
    /// writes it only as a correct peer of the ring in it: it keeps to its role and to its own slots, and it
    /// leaves the other side's words alone.
    pub unsafe fn new(region: R) -> Self {
        Self(region)
    }
}

// SAFETY: the same region.
unsafe impl<R: Region> Region for Trusted<R> {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn owner_process(&self, role: Role) -> u32 {
        self.0.owner_process(role)
    }
}

// SAFETY: whoever made the value promised it.
unsafe impl<R: Region> TrustedRegion for Trusted<R> {}
