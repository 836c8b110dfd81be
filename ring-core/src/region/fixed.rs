//! Regions in a static.
//!
//! # Safety
//!
//! The bytes of a [`StaticRegion`] lie in a cell that nothing here reads or writes; ring handles reach them by
//! the address alone.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use super::{Region, TrustedRegion};

/// Zeroed memory for a ring in a `static`.
///
/// ```
/// use ring_core::{StaticRegion, spsc};
///
/// const LAYOUT: spsc::Layout<u64> = match spsc::Layout::new(16) {
///     Ok(layout) => layout,
///     Err(_) => panic!(),
/// };
/// static REGION: StaticRegion<{ LAYOUT.bytes() }> = StaticRegion::new();
///
/// let (mut producer, mut consumer) = spsc::create(&REGION, &LAYOUT)?;
/// producer.try_push(7).unwrap();
/// assert_eq!(consumer.try_pop(), Ok(7));
/// # Ok::<(), ring_core::Error>(())
/// ```
#[derive(Debug)]
#[repr(C, align(128))]
pub struct StaticRegion<const BYTES: usize> {
    bytes: UnsafeCell<[u8; BYTES]>,
}

impl<const BYTES: usize> StaticRegion<BYTES> {
    /// Zeroed bytes, for a `static`.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "its place is a static, where Default cannot be called")]
    pub const fn new() -> Self {
        Self { bytes: UnsafeCell::new([0; BYTES]) }
    }
}

// SAFETY: only a static reference is a region, so the bytes never move; they were zeroed, hence initialised,
// aligned by the type, and are reached through ring handles only.
unsafe impl<const BYTES: usize> Region for &'static StaticRegion<BYTES> {
    fn base(&self) -> NonNull<u8> {
        NonNull::from(&self.bytes).cast()
    }

    fn bytes(&self) -> usize {
        BYTES
    }
}

// SAFETY: a static belongs to this program alone.
unsafe impl<const BYTES: usize> TrustedRegion for &'static StaticRegion<BYTES> {}

// SAFETY: the cell is never read or written through a shared reference, only by ring handles.
unsafe impl<const BYTES: usize> Sync for StaticRegion<BYTES> {}
