//! What can be sent.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::region::LINE_BYTES;

/// Plain data: any bit pattern is valid, no padding, no pointers, since the other side may be another program.
///
/// Implemented for every type that derives the three `zerocopy` traits. A message has 1 byte or more and an
/// alignment of 64 bytes or less, which [`spsc::Layout::new`](crate::spsc::Layout::new) checks at compile time.
///
/// ```
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(FromBytes, IntoBytes, Immutable)]
/// #[repr(C)]
/// struct Quote {
///     instrument: u64,
///     price: i64,
///     quantity: u64,
/// }
///
/// fn takes_messages<T: ring_core::Message>() {}
/// takes_messages::<Quote>();
/// ```
///
/// What has padding, pointers or no bytes at all does not compile:
///
/// ```compile_fail
/// ring_core::spsc::Layout::<()>::new(8).unwrap();
/// ```
///
/// ```compile_fail
/// ring_core::spsc::Layout::<&'static u8>::new(8).unwrap();
/// ```
///
/// ```compile_fail
/// ring_core::spsc::Layout::<(u8, u32)>::new(8).unwrap();
/// ```
pub trait Message: FromBytes + IntoBytes + Immutable + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + 'static> Message for T {}

/// Refuses at compile time what no slot can hold.
pub(crate) const fn assert_fits_a_slot<T>() {
    assert!(size_of::<T>() > 0, "a message has at least one byte");
    assert!(align_of::<T>() <= LINE_BYTES, "a message is aligned to 64 bytes at most");
}
