//! One producer that never waits, any number of consumers that each see every message or learn how many they lost.
//!
//! A slot is whole cache lines: the message first, and in the last 8 bytes a word that says whose message the slot
//! holds. Position `p` lives in slot `p % depth`. Its word is `2p + 1` while the message is written and `2p` once it
//! is there: a seqlock a slot. Positions are free-running and wrap at 2^64; words tell them apart modulo 2^63.
//!
//! Consumers write nothing. They join and leave without anybody knowing, and the producer overwrites the oldest
//! message whatever they do. A consumer at position `p` copies the message between two looks at the word: both `2p`,
//! and the copy is whole. A word of a later position says that the slot was overwritten: then the consumer looks for the
//! tail, goes on with the oldest message that is left, and what it passed over is lost.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | a slot's word once the message is there | the same word before the copy | the message in the slot |
//! | R2 → A2 | the fence before a message is written | the fence after the copy | that the slot is being overwritten: who has copied a word of the new message sees another slot word than before |
//! | R3 → A3 | the state word at close | the same word when the consumer finds nothing | every message pushed before the close |
//! | R7 → A7 | a slot's word before the message is written | the same word at pop | every message before, so that what is left can be found |
//! | R8 → A8 | the tail hint | the same word when somebody looks for the tail | every message below it |
//! | R9 → A9 | the state word once a ring is made | the same word before a consumer joins | the ring as it was made |
//! | R10 → A10 | the fence before a ring is made anew | the fence after joining | that the ring is being made anew: who has seen a part of the new ring sees another state word than before |
//!
//! Making and attaching add R4 → A4 (the header) and R5 → A5 (the producer's owner word).
//!
//! # Copies only
//!
//! There is no way to look at a message in its slot: it can be overwritten at any time, and only the look at the word
//! afterwards tells whether what was seen was one message. So a consumer copies, and a producer's grant copies in,
//! in trusted regions too.
//!
//! # What a restart delivers
//!
//! The producer can be killed at any instruction; its successor attaches with [`Producer::take_over`].
//!
//! - A message whose push has returned stays until it is overwritten. One whose push was cut short is not there, and
//!   the message that its slot held, a whole ring older, is lost.
//! - The successor goes on at the next position: it finds the tail from the hint, which the producer writes twice a
//!   lap, and log2(depth) looks into slots.
//! - A consumer that is killed leaves nothing behind. Its successor joins anew.
//!
//! # A hostile peer
//!
//! Depth, slot size and positions are private copies. A word that cannot be is reported as `Corrupted`. Whoever may
//! write to the region can make up messages, claim that messages were lost, or keep back what is there. Nothing here
//! waits, and each call looks at a slot, at the slots of a batch, or at log2(depth) of them to find the tail.

mod consumer;
mod grant;
mod inspect;
mod layout;
mod memory;
mod producer;
mod word;

#[cfg(all(test, feature = "alloc"))]
mod tests;

pub use consumer::{Consumer, Drain, PopError};
pub use grant::WriteGrant;
pub use layout::Layout;
pub use producer::Producer;

use crate::{Error, Message, Region};

/// What the header calls this kind of ring.
pub(crate) const KIND: u64 = 4;

/// Makes a ring in `region` and returns its producer and a consumer that sees all that is pushed.
///
/// `region` is something that both can hold: a reference, an `Arc`. More consumers [`join`](Consumer::join) whenever
/// they like.
///
/// # Errors
///
/// As [`Layout::init`] and [`Producer::attach`].
///
/// ```
/// use std::sync::Arc;
/// use ring_core::{HeapRegion, broadcast};
///
/// let layout = broadcast::Layout::<u64>::new(8)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (mut producer, mut first) = broadcast::create(Arc::clone(&region), &layout)?;
/// producer.push(&7);
/// let mut second = broadcast::Consumer::<u64, _>::join_oldest(region)?;
/// assert_eq!(first.try_pop(), Ok(7));
/// assert_eq!(second.try_pop(), Ok(7));
/// # Ok::<(), ring_core::Error>(())
/// ```
#[expect(clippy::type_complexity, reason = "a pair of handles")]
pub fn create<T: Message, R: Region + Clone>(
    region: R,
    layout: &Layout<T>,
) -> Result<(Producer<T, R>, Consumer<T, R>), Error> {
    layout.init(&region)?;
    let producer = Producer::attach(region.clone())?;
    Ok((producer, Consumer::join(region)?))
}
