//! One producer, one consumer, messages of one size.
//!
//! A slot is whole cache lines: the message first, and in the last 8 bytes a sequence word that holds the
//! position whose message the slot carries. A message of up to 56 bytes crosses in one line transfer, since the
//! word that announces it travels with it. There is no shared tail; the consumer returns credit, the position
//! below which it is done with all messages, on a line of its own.
//!
//! Positions are free-running and wrap at 2^64. Position `p` lives in slot `p % depth`. Its word holds
//! `p - depth`, the lap before, until `p` is published, and `p` from then on.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | a slot's sequence word at push | the same word at pop | the message in the slot |
//! | R2 → A2 | the credit word at pop | the same word when the producer looks for room | that the reading of the slots below it is over |
//! | R3 → A3 | the closed word | the same word when the consumer finds the ring empty | every message pushed before the close |
//!
//! Making and attaching add R4 → A4 (the header) and R5 → A5 (the owner words).
//!
//! # What a restart delivers
//!
//! Either side can be killed at any instruction; its successor attaches with
//! [`Producer::take_over`] or [`Consumer::take_over`].
//!
//! - A message whose push has returned stays. One whose push was cut short is not there: half of a message is
//!   never seen.
//! - [`Delivery::AtMostOnce`] returns credit inside each pop: what a killed consumer had popped is gone with it.
//! - [`Delivery::AtLeastOnce`] returns credit later: the successor sees again what was popped and not yet
//!   credited, at most `batch` messages and the last slice.
//!
//! # A hostile peer
//!
//! Depth, slot size and positions are private copies. A credit that cannot be, or a sequence word that is
//! neither `p` nor `p - depth`, is reported as `Corrupted`. Messages are copied with atomic accesses unless the
//! region is a [`TrustedRegion`](crate::TrustedRegion).

mod consumer;
mod grant;
mod inspect;
mod layout;
mod memory;
mod producer;

#[cfg(all(test, feature = "alloc"))]
mod tests;

pub use crate::delivery::Delivery;
pub use consumer::{Consumer, Drain, PopError};
pub use grant::{ReadGrant, WriteGrant};
pub use layout::Layout;
pub use producer::{Producer, PushError};

use crate::{Error, Message, Region};

/// What the header calls this kind of ring.
pub(crate) const KIND: u64 = 1;

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
/// use ring_core::{HeapRegion, spsc};
///
/// let layout = spsc::Layout::<u64>::new(8)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (mut producer, mut consumer) = spsc::create(region, &layout)?;
/// std::thread::spawn(move || producer.try_push(7).unwrap()).join().unwrap();
/// assert_eq!(consumer.try_pop(), Ok(7));
/// # Ok::<(), ring_core::Error>(())
/// ```
#[expect(clippy::type_complexity, reason = "a pair of handles")]
pub fn create<T: Message, R: Region + Clone>(
    region: R,
    layout: &Layout<T>,
) -> Result<(Producer<T, R>, Consumer<T, R>), Error> {
    layout.init(&region)?;
    Ok((Producer::attach(region.clone())?, Consumer::attach(region)?))
}
