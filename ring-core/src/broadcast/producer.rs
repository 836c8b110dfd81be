//! The side that pushes.

use core::fmt;

use super::grant::WriteGrant;
use super::memory::{CLOSED, Memory, Slot};
use super::word::{pending, published};
use crate::sync::{self, Closable, Ordering, WaitWords, Waitable};
use crate::{AssumeAlive, Error, Liveness, Message, Region};

/// The side of the ring that pushes, and never waits. One at a time; it may move between threads.
///
/// Dropping it gives the role back and leaves the ring open: a successor goes on. [`close`](Self::close) ends it.
pub struct Producer<T: Message, R: Region> {
    /// Position of the next message.
    tail: u64,
    pub(super) memory: Memory<T>,
    /// The state word of the ring as long as it is open.
    state: u64,
    /// What the owner word holds while this handle has the role.
    owner: u64,
    /// Keeps the memory. Last, so that it goes last.
    region: R,
}

impl<T: Message, R: Region> Producer<T, R> {
    /// Takes the free role in the ring that lies in `region`, and goes on where the last producer stopped.
    ///
    /// # Errors
    ///
    /// One per guard of the header, [`Error::Taken`], [`Error::Closed`], [`Error::Corrupted`].
    pub fn attach(region: R) -> Result<Self, Error> {
        Self::take_over(region, &AssumeAlive)
    }

    /// As [`attach`](Self::attach), also when the role is held by an owner that `liveness` knows to be gone.
    ///
    /// # Errors
    ///
    /// As `attach`.
    pub fn take_over(region: R, liveness: &impl Liveness) -> Result<Self, Error> {
        let (memory, owner) = Memory::attach(&region, liveness)?;
        // ORDERING: Relaxed: only producers write it; what the former one wrote came with the role, by its release
        // (A5) or by the contract of `Liveness`.
        let state = memory.header().producer.state.load(Ordering::Relaxed);
        let mut this = Self { tail: 0, memory, state, owner, region };
        if state & CLOSED != 0 {
            return Err(Error::Closed);
        }
        let hint = this.memory.hint();
        this.tail = this.memory.find_tail(hint)?;
        // Nobody else pushes, so the tail is where the hint allows it to be, or somebody spoiled a word.
        if this.tail.wrapping_sub(hint) > this.memory.depth() {
            return Err(Error::Corrupted);
        }
        // The former one may have been killed before it left the hint that was due here, and the next one must not be
        // farther from the last than a search reaches.
        this.leave_hint();
        Ok(this)
    }

    /// Pushes a message, over the oldest one when the ring holds as many as it can.
    // A call would cost a tenth of the hand-over.
    #[inline(always)]
    pub fn push(&mut self, value: &T) {
        let slot = self.begin();
        slot.write(value);
        self.publish(slot);
    }

    /// Pushes messages from the front of `values` to its end, each as [`push`](Self::push) does. Of more messages than
    /// there are slots, the first are overwritten at once.
    #[inline]
    pub fn push_slice(&mut self, values: &[T]) {
        for value in values {
            self.push(value);
        }
    }

    /// Reserves the next slot to write the message there. The oldest message is gone from now on, where the slot holds
    /// one, for consumers that have not read it yet. Dropping the grant publishes nothing.
    #[inline]
    pub fn reserve(&mut self) -> WriteGrant<'_, T, R> {
        let slot = self.begin();
        WriteGrant::new(self, slot)
    }

    /// Closes the ring for good: consumers get what is in it, then [`PopError::Closed`](super::PopError).
    pub fn close(mut self) {
        self.close_ring();
    }

    /// Position of the next message: the ring's first position and the number of messages pushed since, by this
    /// producer and those before it. A successor learns here how far they got.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Number of slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.memory.depth()
    }

    /// The region that the ring lies in.
    pub fn region(&self) -> &R {
        &self.region
    }

    /// Takes the slot at the tail away from consumers, to write it.
    #[inline(always)]
    pub(super) fn begin(&mut self) -> Slot<T> {
        let slot = self.memory.slot(self.tail);
        // ORDERING: Release (R7): the messages before, which a consumer that sees this goes on with; pairs with A7 in
        // Slot::look.
        slot.word().store(pending(slot.position), Ordering::Release);
        // ORDERING: Release (R2): the word above comes before any word of the message; pairs with A2 in Consumer::peek.
        sync::fence(Ordering::Release);
        slot
    }

    /// Publishes the message in the slot at the tail.
    #[inline(always)]
    pub(super) fn publish(&mut self, slot: Slot<T>) {
        // ORDERING: Release (R1): the message written above; pairs with A1 in Slot::look.
        slot.word().store(published(slot.position), Ordering::Release);
        self.tail = slot.position.wrapping_add(1);
        if self.tail % self.memory.hint_every() == 0 {
            self.leave_hint();
        }
    }

    /// Tells who joins, or succeeds this producer, where to look for the tail.
    #[inline]
    fn leave_hint(&self) {
        // ORDERING: Release (R8): the messages below it; pairs with A8 in Memory::hint.
        self.memory.header().tail.hint.store(self.tail, Ordering::Release);
    }
}

impl<T: Message, R: Region> Waitable for Producer<T, R> {
    #[inline]
    fn wait_words(&self) -> &WaitWords {
        &self.memory.header().guard.waiting
    }

    #[inline]
    fn mark(&self) -> Option<u64> {
        Some(self.tail)
    }

    fn settle(&mut self) {}
}

impl<T: Message, R: Region> Closable for Producer<T, R> {
    fn close_ring(&mut self) {
        // ORDERING: Release (R3): every message pushed before; pairs with A3 in Consumer::check_open.
        self.memory.header().producer.state.store(self.state | CLOSED, Ordering::Release);
    }
}

impl<T: Message, R: Region> fmt::Debug for Producer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Producer")
            .field("tail", &self.tail)
            .field("depth", &self.memory.depth())
            .finish_non_exhaustive()
    }
}

impl<T: Message, R: Region> Drop for Producer<T, R> {
    fn drop(&mut self) {
        self.memory.header().producer.owner.release(self.owner);
    }
}
