//! Many producers, many consumers, messages of one size.
//!
//! Each handle, a [`Producer`] or a [`Consumer`], has a place of its own in the ring: it is one of up to 1,023
//! participants. Further handles attach to the region, from any thread or process. A *place* is a participant's number
//! and its two words in the ring's table, an owner word and a keeper word; the *keeper* of a place is who may clear up
//! what its owner left behind.
//!
//! A slot is whole cache lines: the message first, and in the last 8 bytes a word `{lap, owner, state}`, which alone
//! says what the slot is in. Positions are free-running; position `p` lives in slot `p % depth` and has lap
//! `p / depth`. In the life of a slot:
//!
//! ```text
//! {L, -, free} → {L, me, writing} → {L, -, full} → {L, me, reading} → {L+1, -, free}
//! ```
//!
//! Positions are claimed in order, by an exchange of the word. The tail and the head in the header are hints: a place
//! to begin to look at.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | a slot's word that becomes full | the exchange that claims it for reading | the message, and that earlier readers are done with it |
//! | R2 → A2 | a slot's word that becomes free | the exchange that claims it for writing | that all are done with the slot |
//! | R3 → A3 | the number that changes whenever a message may have been put back | the same number when a consumer finds nothing | the words of the slots that were put back |
//! | R7 → A7 | a keeper word that is given up | the exchange that takes it | who had the place meanwhile, and what was cleared up |
//!
//! Making and attaching add R4 → A4 (the header) and R5 → A5 (the owner words).
//!
//! # What holds
//!
//! - Each message is popped once, by one consumer; [below](#death) says what death changes.
//! - Of the messages of one producer, a consumer sees a later one after an earlier one. A message that was put back, by
//!   a dropped [`ReadGrant`] or because its consumer died, may come after its followers.
//! - Nothing blocks: each call ends after about as many steps as there are slots. A participant that is slow or paused
//!   holds its slot. Producers go on with the next slots until the ring is full, and consumers pass slots that others
//!   read; where there is nothing but such a slot, calls say `Busy`. A slot that somebody has reserved and not
//!   committed keeps all that comes behind it from every consumer, in order to keep the order: as long as its producer
//!   is stopped between the two, pops say `Busy`. If it is dead, a pop with a liveness gives the slot up.
//! - After [`close`](Producer::close) pushes fail and consumers get what was pushed. The consumer that finds the ring
//!   empty then seals the next slot, which nobody can claim any more, and that is the end for all. While a message is
//!   still being read, and so may be put back, other consumers get `Busy` and not yet `Closed`.
//!
//! # Death
//!
//! A participant can be killed at any instruction. What it had begun is finished by whoever knows from a
//! [`Liveness`](crate::Liveness) that it is gone: [`recover`](Producer::recover), attaching with a liveness,
//! [`try_push_with`](Producer::try_push_with) and [`try_pop_with`](Consumer::try_pop_with).
//!
//! Who knows it? Between processes, the kernel: ring-shm's claims are locks that it takes back, and `liveness()` of a claim
//! asks for them, without unsafe code. Otherwise whoever started the others and waits for their end, say. It hands out the
//! places, and has one itself:
//!
//! ```
//! use std::sync::Arc;
//! use ring_core::{AssumeAlive, HeapRegion, Registry, Role, mpmc};
//!
//! let layout = mpmc::Layout::<u64>::new(8)?;
//! let region = Arc::new(HeapRegion::new(layout.bytes()));
//! layout.init(&region)?;
//! let supervisor = mpmc::Consumer::<u64, _>::take_over(Arc::clone(&region), 1, &AssumeAlive)?;
//! let registry = Registry::<64>::new(); // as many places as the ring has
//!
//! // A worker, which is told its place when it is started, dies with a message half written.
//! let mut worker = mpmc::Producer::<u64, _>::take_over(region, 2, &AssumeAlive)?;
//! std::mem::forget(worker.try_reserve().unwrap());
//! std::mem::forget(worker);
//!
//! let incarnation = supervisor.participant(2).unwrap().incarnation;
//! // SAFETY: the worker has ended.
//! unsafe { registry.declare_gone(Role::Participant(2), incarnation) };
//! assert_eq!(supervisor.recover(&registry), Ok(1));
//! # Ok::<(), ring_core::Error>(())
//! ```
//!
//! - A message whose push has returned stays. One whose push was cut short is there, whole, or is not.
//! - A message whose pop was cut short is delivered again or given up, as [`Layout::unfinished_pops`] has it. One that a
//!   pop had copied and freed just before is with the dead: who must act on each at least once does so before
//!   [`ReadGrant::release`].
//! - A place is used again only after its last owner's slots were finished.
//! - Whoever is killed while it clears up leaves a ring that the next one goes on with. A message that it had just put
//!   back may be found only when the ring has come round, or after the next one who clears up.
//!
//! # A hostile peer
//!
//! Depth, slot size, participants and positions are private copies. A word that cannot be is reported as `Corrupted`
//! or leads to another slot of the ring. Messages are copied with atomic accesses unless the region is a
//! [`TrustedRegion`](crate::TrustedRegion).

mod consumer;
mod grant;
mod header;
mod inspect;
mod keeper;
mod layout;
mod memory;
mod producer;
mod seat;
mod word;

#[cfg(all(test, feature = "alloc"))]
mod tests;

pub use consumer::{Consumer, Drain, PopError};
pub use grant::{ReadGrant, WriteGrant};
pub use layout::{Layout, UnfinishedPops};
pub use producer::{Producer, PushError};

use crate::{Error, Message, Region};

/// What the header calls this kind of ring.
pub(crate) const KIND: u64 = 3;

/// Makes a ring in `region` and returns a first pair of handles. More attach to the same region.
///
/// `region` is something that all can hold: a reference, an `Arc`.
///
/// # Errors
///
/// As [`Layout::init`] and [`Producer::attach`].
///
/// ```
/// use std::sync::Arc;
/// use ring_core::{HeapRegion, mpmc};
///
/// let layout = mpmc::Layout::<u64>::new(8)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (mut producer, mut consumer) = mpmc::create(Arc::clone(&region), &layout)?;
/// let mut other = mpmc::Producer::<u64, _>::attach(region)?;
/// std::thread::spawn(move || other.try_push(7).unwrap()).join().unwrap();
/// producer.try_push(8).unwrap();
/// assert_eq!(consumer.try_pop(), Ok(7));
/// assert_eq!(consumer.try_pop(), Ok(8));
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
