//! The side that pops.

use core::fmt;

use super::Delivery;
use super::frame::Frame;
use super::grant::ReadGrant;
use super::memory::Memory;
use crate::region::CACHE_BYTES;
use crate::sync::{Ordering, WaitWords, Waitable, spin_loop};
use crate::{AssumeAlive, Error, Liveness, Owner, Region, Role};

/// Pauses that a pop makes where a long run of messages ends.
const PAUSES: u32 = 16;

/// The side of the ring that pops. One at a time; it may move between threads.
///
/// Dropping it returns the credit of all that was popped and gives the role back; a successor goes on from there.
pub struct Consumer<R: Region> {
    /// Position of the next frame.
    head: u64,
    /// The credit that the producer can see.
    credit: u64,
    /// Bytes that may wait for credit, at least 1.
    batch: u64,
    /// Whether a message counts as done with inside its own pop, and not only at the next one.
    is_eager: bool,
    /// Position at which the present run of messages began: the ring was empty there.
    run_start: u64,
    /// Bytes of a run at whose end a pop lets messages gather.
    gather_after: u64,
    memory: Memory,
    /// What the owner word holds while this handle has the role.
    owner: u64,
    /// Keeps the memory. Last, so that it goes last.
    region: R,
}

/// Why nothing was popped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// No message is there: try again later.
    #[error("the ring is empty")]
    Empty,
    /// The ring is empty and the producer has closed it: no message will come.
    #[error("the ring is empty and closed")]
    Closed,
    /// The next message is longer than the place for it. It stays.
    #[error("the next message has {len} bytes: pop it into as many")]
    BufferTooShort {
        /// Bytes of the message.
        len: usize,
    },
    /// A header word holds what it cannot: the peer is broken or hostile.
    #[error("the ring is corrupted: a header word holds what it cannot; make it anew")]
    Corrupted,
}

impl<R: Region> Consumer<R> {
    /// Takes the free role in the ring that lies in `region`, and goes on from the credit.
    ///
    /// # Errors
    ///
    /// One per guard of the header, [`Error::Taken`], [`Error::Corrupted`].
    pub fn attach(region: R) -> Result<Self, Error> {
        Self::take_over(region, &AssumeAlive)
    }

    /// As [`attach`](Self::attach), also when the role is held by an owner that `liveness` knows to be gone.
    ///
    /// # Errors
    ///
    /// As `attach`.
    pub fn take_over(region: R, liveness: &impl Liveness) -> Result<Self, Error> {
        let (memory, owner) = Memory::attach(&region, Role::Consumer, liveness)?;
        // ORDERING: Relaxed: only consumers write it; what the former one wrote came with the role, by its release
        // (A5) or by the contract of `Liveness`.
        let credit = memory.header().credit.credit.load(Ordering::Relaxed);
        let batch = memory.ring_bytes() / 4;
        let this = Self {
            head: credit,
            credit,
            batch,
            is_eager: false,
            run_start: credit,
            gather_after: 0,
            memory,
            owner,
            region,
        };
        if Memory::is_whole(credit) { Ok(this.gather(true)) } else { Err(Error::Corrupted) }
    }

    /// Chooses when credit is returned. Default: [`Delivery::AtLeastOnce`] with a batch of a quarter of the ring, in
    /// bytes.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, bytes};
    /// use ring_core::bytes::Delivery;
    /// # let layout = bytes::Layout::new(64)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, consumer) = bytes::create(&region, &layout)?;
    /// let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    /// producer.try_push(b"a message").unwrap();
    /// consumer.try_pop(&mut [0; 24]).unwrap();
    /// assert!(producer.is_empty()); // the credit came with the pop
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        (self.batch, self.is_eager) = match delivery {
            Delivery::AtMostOnce => {
                self.return_credit(self.head);
                (1, true)
            }
            Delivery::AtLeastOnce { batch } => {
                (u64::from(batch).min(self.memory.ring_bytes() / 2).max(1), false)
            }
        };
        self
    }

    /// Whether a [`try_pop`](Self::try_pop), a [`try_peek`](Self::try_peek) or the end of a [`pop_each`](Self::pop_each)
    /// that finds a ring of 32 KiB or more empty at the end of a long run, a thirty-second of the ring in one go, makes
    /// 16 pauses before it says so. Default: yes. Without it the message after such a run is never held up, and a stream
    /// of long messages takes up to a third longer.
    #[must_use]
    pub fn gather(mut self, on: bool) -> Self {
        // A reader close behind the writer takes lines that the writer is about to fill. Some messages behind it takes
        // lines that are done with. `xtask bench --suite stream` is the judge of these numbers.
        let is_deep = self.memory.ring_bytes() >= CACHE_BYTES as u64;
        self.gather_after = if on && is_deep { self.memory.ring_bytes() / 32 } else { u64::MAX };
        self
    }

    /// Pops a message to the front of `bytes` and returns its length. [`longest`](Self::longest) bytes are always
    /// enough. At the end of a long run in a ring of 32 KiB or more it may pause a little first: see
    /// [`gather`](Self::gather).
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`], [`PopError::Closed`] when nothing will come, [`PopError::BufferTooShort`] when `bytes`
    /// cannot hold the message, [`PopError::Corrupted`] when a word holds what it cannot.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, bytes};
    /// use ring_core::bytes::PopError;
    /// # let layout = bytes::Layout::new(64)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = bytes::create(&region, &layout)?;
    /// producer.try_push(b"five!").unwrap();
    /// let mut bytes = [0; 24];
    /// assert_eq!(consumer.try_pop(&mut bytes[..4]), Err(PopError::BufferTooShort { len: 5 }));
    /// assert_eq!(consumer.try_pop(&mut bytes), Ok(5)); // it has stayed
    /// assert_eq!(bytes[..5], *b"five!");
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn try_pop(&mut self, bytes: &mut [u8]) -> Result<usize, PopError> {
        let frame = self.poll()?;
        if frame.len() > bytes.len() {
            return Err(PopError::BufferTooShort { len: frame.len() });
        }
        let len = frame.read(bytes);
        self.advance(&frame);
        Ok(len)
    }

    /// Gives access to the next message in place. Dropping the grant leaves it there, releasing it pops it. It may pause
    /// a little first, as [`try_pop`](Self::try_pop) does. [`WriteGrant`](super::WriteGrant) has an example.
    ///
    /// # Errors
    ///
    /// As [`try_pop`](Self::try_pop), but never [`PopError::BufferTooShort`].
    #[inline]
    pub fn try_peek(&mut self) -> Result<ReadGrant<'_, R>, PopError> {
        let frame = self.poll()?;
        Ok(ReadGrant::new(self, frame))
    }

    /// Shows `each` up to `most` messages in place, pops each thereafter, and returns how many. It ends where
    /// [`try_peek`](Self::try_peek) fails, perhaps after a little pause, and the next one says why.
    ///
    /// # Panics
    ///
    /// As `each` does; the message that it was shown stays.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, bytes};
    /// # let layout = bytes::Layout::new(64)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = bytes::create(&region, &layout)?;
    /// producer.push_slices(&["one", "two", "three"]).unwrap();
    /// let mut bytes = 0;
    /// assert_eq!(consumer.pop_each(2, |message| bytes += message.len()), 2);
    /// assert_eq!(bytes, 6);
    /// assert_eq!(consumer.try_pop(&mut [0; 24]), Ok(5));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn pop_each(&mut self, most: usize, mut each: impl FnMut(&ReadGrant<'_, R>)) -> usize {
        for popped in 0..most {
            let Ok(grant) = self.try_peek() else { return popped };
            each(&grant);
            grant.release();
        }
        most
    }

    /// Position of the next frame: the ring's first position and the bytes of all frames popped since, padding
    /// included, by this consumer and those before it, those that are delivered again not counted.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Bytes of the ring: as [`Producer::capacity`](super::Producer::capacity).
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.memory.ring_bytes()
    }

    /// Bytes of the longest message that can come: as [`Producer::longest`](super::Producer::longest).
    #[expect(clippy::cast_possible_truncation, reason = "shorter than the ring")]
    #[must_use]
    pub fn longest(&self) -> usize {
        self.memory.longest() as usize
    }

    /// Bytes of the frames that can be popped, padding included. It can only have become more since. Takes a look at
    /// each of them, and returns no credit, as a pop does.
    ///
    /// # Errors
    ///
    /// [`PopError::Corrupted`] as [`try_pop`](Self::try_pop).
    pub fn len(&self) -> Result<u64, PopError> {
        self.memory.published_from(self.head).map_err(|_| PopError::Corrupted)
    }

    /// Whether nothing can be popped. True can be outdated already, false stays false until the next pop. Returns no
    /// credit, as a pop that finds the ring empty does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // ORDERING: Relaxed: a hint for the caller; a pop looks again.
        self.memory.word(self.head).load(Ordering::Relaxed) == 0
    }

    /// Whether [`try_peek`](Self::try_peek) has something else to say than that the ring is empty: a message, the end,
    /// or that the ring is corrupted. As a pop does, it returns the credit that is out where there is nothing.
    #[must_use]
    pub fn is_ready(&mut self) -> bool {
        !matches!(self.poll(), Err(PopError::Empty))
    }

    /// What the producer's owner word says.
    #[must_use]
    pub fn peer(&self) -> Owner {
        self.memory.header().producer.owner.state()
    }

    /// The region that the ring lies in.
    pub fn region(&self) -> &R {
        &self.region
    }

    /// The next message.
    #[inline(always)]
    fn poll(&mut self) -> Result<Frame, PopError> {
        // ORDERING: Acquire (A1): the message, and the 0 behind it; pairs with R1 in Producer::publish.
        match self.memory.word(self.head).load(Ordering::Acquire) {
            0 => self.on_empty(),
            word => self.memory.announced(self.head, word).ok_or(PopError::Corrupted),
        }
    }

    /// Says why there is no message at the head, and returns the credit that is still out.
    fn on_empty(&mut self) -> Result<Frame, PopError> {
        self.return_credit(self.head);
        if self.head.wrapping_sub(self.run_start) >= self.gather_after {
            (0..PAUSES).for_each(|_| spin_loop());
        }
        self.run_start = self.head;
        // ORDERING: Acquire (A3): every message pushed before the close; pairs with R3 in Producer::close_ring.
        if self.memory.header().producer.closed.load(Ordering::Acquire) == 0 {
            return Err(PopError::Empty);
        }
        // ORDERING: Relaxed: the closed word (A3) has brought every message, and none comes after it.
        match self.memory.word(self.head).load(Ordering::Relaxed) {
            0 => Err(PopError::Closed),
            word => self.memory.announced(self.head, word).ok_or(PopError::Corrupted),
        }
    }

    /// Steps over the message at the head.
    #[inline(always)]
    pub(super) fn advance(&mut self, frame: &Frame) {
        let head = core::mem::replace(&mut self.head, frame.end());
        let done = if self.is_eager { self.head } else { head };
        if done.wrapping_sub(self.credit) >= self.batch {
            self.return_credit(done);
        }
    }

    /// Tells the producer that the bytes below `done` are done with.
    #[inline(always)]
    fn return_credit(&mut self, done: u64) {
        if self.credit != done {
            self.credit = done;
            // ORDERING: Release (R2): the reading of the bytes is over; pairs with A2 in Producer::room,
            // Producer::take_over and Memory::find_tail.
            self.memory.header().credit.credit.store(done, Ordering::Release);
        }
    }
}

impl<R: Region> Waitable for Consumer<R> {
    #[inline]
    fn wait_words(&self) -> &WaitWords {
        &self.memory.header().guard.waiting
    }

    #[inline]
    fn mark(&self) -> Option<u64> {
        Some(self.credit)
    }

    #[inline]
    fn is_next_pop_silent(&self) -> bool {
        !self.is_eager && self.head.wrapping_sub(self.credit) < self.batch
    }

    fn settle(&mut self) {
        self.return_credit(self.head);
    }
}

impl<R: Region> fmt::Debug for Consumer<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Consumer")
            .field("head", &self.head)
            .field("credit", &self.credit)
            .field("ring_bytes", &self.memory.ring_bytes())
            .finish_non_exhaustive()
    }
}

impl<R: Region> Drop for Consumer<R> {
    fn drop(&mut self) {
        self.return_credit(self.head);
        self.memory.header().consumer.owner.release(self.owner);
    }
}
