//! The side that pushes.

use core::fmt;

use super::grant::WriteGrant;
use super::memory::{Memory, Slot};
use crate::sync::{Closable, Ordering, WaitWords, Waitable};
use crate::{AssumeAlive, Error, Liveness, Message, Owner, Region, Role};

/// The side of the ring that pushes. One at a time; it may move between threads.
///
/// Dropping it gives the role back and leaves the ring open: a successor goes on. [`close`](Self::close) ends it.
pub struct Producer<T: Message, R: Region> {
    /// Position of the next message.
    tail: u64,
    /// Position at which the ring is full as far as this side knows: the credit last seen, and one lap.
    limit: u64,
    /// How many slots ahead of the tail a push prefetches, where so many are free.
    ahead: u64,
    memory: Memory<T>,
    /// What the owner word holds while this handle has the role.
    owner: u64,
    /// Keeps the memory. Last, so that it goes last.
    region: R,
}

/// Why nothing was pushed. The message comes back where it was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// No slot is free: try again once the consumer has popped.
    #[error("the ring is full: try again once the consumer has popped")]
    Full(T),
    /// The consumer's credit word holds what it cannot: the peer is broken or hostile.
    #[error("the ring is corrupted: its credit word holds what it cannot; make it anew")]
    Corrupted(T),
}

impl<T> PushError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Corrupted(value) => value,
        }
    }

    pub(super) fn map<U>(self, convert: impl FnOnce(T) -> U) -> PushError<U> {
        match self {
            Self::Full(value) => PushError::Full(convert(value)),
            Self::Corrupted(value) => PushError::Corrupted(convert(value)),
        }
    }
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
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// use ring_core::{AssumeGone, Role};
    /// use ring_core::spsc::Producer;
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, _consumer) = spsc::create(&region, &layout)?;
    /// producer.try_push(1).unwrap();
    /// std::mem::forget(producer); // what is left of one that was killed
    /// // SAFETY: the former producer does nothing any more, and nobody else succeeds it.
    /// let gone = unsafe { AssumeGone::of(Role::Producer) };
    /// let successor = Producer::<u64, _>::take_over(&region, &gone)?;
    /// assert_eq!(successor.tail(), 1); // goes on behind that message
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    pub fn take_over(region: R, liveness: &impl Liveness) -> Result<Self, Error> {
        let (memory, owner) = Memory::attach(&region, Role::Producer, liveness)?;
        let mut this = Self { tail: 0, limit: 0, ahead: 0, memory, owner, region }.prefetch(true);
        // ORDERING: Relaxed: only producers write it; what the former one wrote came with the role, by its release
        // (A5) or by the contract of `Liveness`.
        if this.memory.header().producer.closed.load(Ordering::Relaxed) != 0 {
            return Err(Error::Closed);
        }
        // ORDERING: Acquire (A2): the slots below are read; pairs with R2 in Consumer::return_credit.
        let credit = this.memory.header().credit.credit.load(Ordering::Acquire);
        // Slots from the credit on are not overwritten: only a producer does that, and that is us.
        this.tail = credit.wrapping_add(this.memory.published_from(credit)?);
        this.limit = credit.wrapping_add(this.memory.depth());
        Ok(this)
    }

    /// Whether pushes bring later slots near, in a ring of 32 KiB of slots or more. Default: yes. Of use to measure what it brings.
    #[must_use]
    pub fn prefetch(mut self, on: bool) -> Self {
        // A slot that the consumer has read must be taken back from its cache before it is written. Asking for
        // it early lets several be under way at once. `xtask bench --suite stream` is the judge of the distance.
        // In a ring that fits the first-level cache it brings nothing, and takes lines from a reader far away.
        self.ahead = if on && self.memory.is_deep() { 8 } else { u64::MAX };
        self
    }

    /// Pushes a message.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] when no slot is free, [`PushError::Corrupted`] when the peer's credit cannot be.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// use ring_core::spsc::PushError;
    /// # let layout = spsc::Layout::<u64>::new(1)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, _consumer) = spsc::create(&region, &layout)?;
    /// assert_eq!(producer.try_push(1), Ok(()));
    /// assert_eq!(producer.try_push(2), Err(PushError::Full(2))); // it comes back
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    // A call would cost a tenth of the hand-over.
    #[inline(always)]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        match self.room() {
            Ok(()) => {
                self.push(&value);
                Ok(())
            }
            Err(error) => Err(error.map(|()| value)),
        }
    }

    /// Pushes messages from the front of `values` while there is room, and returns how many.
    ///
    /// # Errors
    ///
    /// As [`try_push`](Self::try_push), when not a single message could be pushed and `values` is not empty.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = spsc::create(&region, &layout)?;
    /// assert_eq!(producer.push_slice(&[1, 2, 3]), Ok(3));
    /// assert_eq!(producer.push_slice(&[4, 5]), Ok(1));
    /// assert!(consumer.drain(4).eq(1..=4));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn push_slice(&mut self, values: &[T]) -> Result<usize, PushError<()>> {
        let mut pushed = 0;
        for value in values {
            match self.room() {
                Ok(()) => self.push(value),
                Err(_) if pushed > 0 => break,
                Err(error) => return Err(error),
            }
            pushed += 1;
        }
        Ok(pushed)
    }

    /// Pushes what the iterator yields while there is room, and returns how many. Nothing is taken from the
    /// iterator that does not fit.
    ///
    /// # Errors
    ///
    /// As [`try_push`](Self::try_push), when not a single message could be pushed, whatever the iterator holds.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = spsc::create(&region, &layout)?;
    /// let mut values = 1..=6;
    /// assert_eq!(producer.push_iter(&mut values), Ok(4));
    /// assert!(consumer.drain(4).eq(1..=4));
    /// assert_eq!(values.next(), Some(5));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn push_iter(&mut self, values: impl IntoIterator<Item = T>) -> Result<usize, PushError<()>> {
        self.room()?;
        let mut values = values.into_iter();
        let mut pushed = 0;
        while self.room().is_ok() {
            let Some(value) = values.next() else { break };
            self.push(&value);
            pushed += 1;
        }
        Ok(pushed)
    }

    /// Reserves the next slot to write the message in place. Dropping the grant publishes nothing. [`WriteGrant`] has
    /// an example.
    ///
    /// # Errors
    ///
    /// As [`try_push`](Self::try_push).
    #[inline]
    pub fn try_reserve(&mut self) -> Result<WriteGrant<'_, T, R>, PushError<()>> {
        self.room()?;
        Ok(WriteGrant::new(self))
    }

    /// Closes the ring for good: the consumer gets what is in it, then [`PopError::Closed`](super::PopError).
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// use ring_core::spsc::PopError;
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = spsc::create(&region, &layout)?;
    /// producer.try_push(1).unwrap();
    /// producer.close();
    /// assert_eq!(consumer.try_pop(), Ok(1));
    /// assert_eq!(consumer.try_pop(), Err(PopError::Closed));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
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

    /// Messages pushed and not yet credited by the consumer. It can only have become less since.
    ///
    /// With a consumer that returns credit late this counts messages that were popped already.
    #[must_use]
    pub fn len(&self) -> u64 {
        // ORDERING: Relaxed: a number for the caller; no slot is written because of it.
        let credit = self.memory.header().credit.credit.load(Ordering::Relaxed);
        self.tail.wrapping_sub(credit).min(self.capacity())
    }

    /// Whether the consumer has credited all messages. False can be outdated already, true stays true until the
    /// next push.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no slot is free. True can be outdated already, false stays false until the next push.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    /// Whether [`try_push`](Self::try_push) has something else to say than that the ring is full. False can be outdated
    /// already, true stays true until the next push.
    #[must_use]
    pub fn is_ready(&mut self) -> bool {
        !matches!(self.room(), Err(PushError::Full(())))
    }

    /// What the consumer's owner word says.
    #[must_use]
    pub fn peer(&self) -> Owner {
        self.memory.header().consumer.owner.state()
    }

    /// The region that the ring lies in.
    pub fn region(&self) -> &R {
        &self.region
    }

    /// The slot that the next message goes to.
    #[inline(always)]
    pub(super) fn slot(&self) -> Slot<T> {
        self.memory.slot(self.tail)
    }

    /// Writes and publishes a message. There must be room.
    #[inline(always)]
    fn push(&mut self, value: &T) {
        let slot = self.slot();
        slot.write(value);
        self.publish(slot);
    }

    /// Makes sure that the slot at the tail is free.
    #[inline(always)]
    fn room(&mut self) -> Result<(), PushError<()>> {
        let tail = self.tail;
        if self.limit == tail {
            let depth = self.memory.depth();
            // ORDERING: Acquire (A2): the reading of the slots is over; pairs with R2 in Consumer::return_credit.
            let credit = self.memory.header().credit.credit.load(Ordering::Acquire);
            let used = tail.wrapping_sub(credit);
            if used == depth {
                return Err(PushError::Full(()));
            }
            if used > depth {
                return Err(PushError::Corrupted(()));
            }
            self.limit = credit.wrapping_add(depth);
        }
        Ok(())
    }

    /// Publishes the message in the slot at the tail.
    #[inline(always)]
    pub(super) fn publish(&mut self, slot: Slot<T>) {
        // ORDERING: Release (R1): the message written above; pairs with A1 in Consumer::poll, Consumer::pop_slice and
        // Memory::find_tail.
        slot.sequence().store(slot.position, Ordering::Release);
        // Beyond the limit lie messages that the consumer has not read.
        if self.limit.wrapping_sub(slot.position) > self.ahead {
            self.memory.slot(slot.position.wrapping_add(self.ahead)).prefetch_write();
        }
        self.tail = slot.position.wrapping_add(1);
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
        // ORDERING: Release (R3): every message pushed before; pairs with A3 in Consumer::on_empty and
        // Layout::progress.
        self.memory.header().producer.closed.store(1, Ordering::Release);
    }
}

impl<T: Message, R: Region> fmt::Debug for Producer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Producer")
            .field("tail", &self.tail)
            .field("limit", &self.limit)
            .field("depth", &self.memory.depth())
            .finish_non_exhaustive()
    }
}

impl<T: Message, R: Region> Drop for Producer<T, R> {
    fn drop(&mut self) {
        self.memory.header().producer.owner.release(self.owner);
    }
}
