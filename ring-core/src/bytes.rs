//! One producer, one consumer, messages of any length, each in one piece.
//!
//! The ring is a row of 8-byte words. A message travels in a frame: a header word with its length, then its bytes,
//! padded to a whole word. A frame never wraps around the ring's end. Where one does not fit before the end, a
//! padding frame takes what is left, and the message goes to the ring's start; so a message has half the ring less
//! 8 bytes at most, and fits in the end however the ring stands. A message has 1 byte or more.
//!
//! Positions count bytes. They are free-running multiples of 8 and wrap at 2^64; position `p` lies `p % ring` bytes
//! behind the ring's start.
//!
//! # The frontier
//!
//! The header word at the tail is 0, and this alone says that the messages end there. Before a frame is published,
//! 0 is stored where the next one will begin; then its own header, with Release, takes the place of the 0 before it.
//! Nobody looks at a word as a header unless it was made one since the ring last passed over it, so the bytes of a
//! message cannot pass for a frame, whatever they are. The 0 takes a word: 8 bytes of the ring stay free.
//!
//! Padding and the message behind it are published together, by the header of the padding.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | a frame's header word at commit | the same word at the consumer's look | the message, and the 0 behind it |
//! | R2 → A2 | the credit word at pop | the same word when the producer looks for room | that the reading of the bytes below it is over |
//! | R3 → A3 | the closed word | the same word when the consumer finds the ring empty | every message pushed before the close |
//!
//! Making and attaching add R4 → A4 (the header) and R5 → A5 (the owner words).
//!
//! # What a restart delivers
//!
//! Either side can be killed at any instruction; its successor attaches with
//! [`Producer::take_over`] or [`Consumer::take_over`].
//!
//! - A message whose push or commit has returned stays. One that was cut short is not there: half of a message is
//!   never seen. The next producer follows the lengths from the credit to the first 0.
//! - [`Delivery::AtMostOnce`] returns credit inside each pop: what a killed consumer had popped is gone with it.
//! - [`Delivery::AtLeastOnce`] returns credit later: the successor sees again what was popped and not yet
//!   credited, at most `batch` bytes and the last message.
//!
//! # A hostile peer
//!
//! The ring's size and this side's position are private copies. A length is checked against the longest message and
//! against the ring's end, a credit against the ring's size, before either is used; one that cannot be is reported as
//! `Corrupted`. Whoever follows lengths stops after one ring. Messages are copied with atomic accesses unless the
//! region is a [`TrustedRegion`](crate::TrustedRegion).

mod consumer;
mod frame;
mod grant;
mod inspect;
mod layout;
mod memory;
mod producer;

#[cfg(all(test, feature = "alloc"))]
mod tests;

pub use crate::delivery::Delivery;
pub use consumer::{Consumer, PopError};
pub use grant::{ReadGrant, WriteGrant};
pub use layout::Layout;
pub use producer::{Producer, PushError};

use crate::{Error, Region};

/// What the header calls this kind of ring.
pub(crate) const KIND: u64 = 2;

/// Makes a ring in `region` and returns both ends.
///
/// `region` is something that both can hold: a reference, an `Arc`.
///
/// # Errors
///
/// As [`Layout::init`] and [`Producer::attach`].
///
/// ```
/// use std::sync::Arc;
/// use ring_core::{HeapRegion, bytes};
///
/// let layout = bytes::Layout::new(4096)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (mut producer, mut consumer) = bytes::create(region, &layout)?;
/// std::thread::spawn(move || producer.try_push(b"a message").unwrap()).join().unwrap();
/// let mut message = [0; 64];
/// assert_eq!(consumer.try_pop(&mut message), Ok(9));
/// assert_eq!(&message[..9], b"a message");
/// # Ok::<(), ring_core::Error>(())
/// ```
pub fn create<R: Region + Clone>(region: R, layout: &Layout) -> Result<(Producer<R>, Consumer<R>), Error> {
    layout.init(&region)?;
    Ok((Producer::attach(region.clone())?, Consumer::attach(region)?))
}
