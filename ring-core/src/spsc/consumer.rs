//! The side that pops.

use core::fmt;

use super::Delivery;
use super::grant::ReadGrant;
use super::memory::{Memory, Slot};
use crate::sync::{Ordering, WaitWords, Waitable, spin_loop};
use crate::{AssumeAlive, Error, Liveness, Message, Owner, Region, Role};

/// Messages that a pop lets gather at most; also the pauses that it waits for them at most.
const BLOCK: u64 = 16;

/// Length of a run without an empty look after which a pop lets a block gather: at first, and at most.
const GATHER_AFTER: u64 = 2 * BLOCK;
const GATHER_AFTER_MOST: u64 = 1024 * BLOCK;

/// The side of the ring that pops. One at a time; it may move between threads.
///
/// Dropping it returns the credit of all that was popped and gives the role back; a successor goes on from there.
pub struct Consumer<T: Message, R: Region> {
    /// Position of the next message.
    head: u64,
    /// The credit that the producer can see.
    credit: u64,
    /// Messages that may wait for credit, at least 1.
    batch: u64,
    /// Whether a message counts as done with inside its own pop, and not only at the next one.
    is_eager: bool,
    /// How many slots ahead of the head a pop prefetches. 0 is the head itself, which is polled next anyway.
    ahead: u64,
    /// Position at which the present run of messages began: the ring was empty there, or a wait was in vain.
    run_start: u64,
    /// Length of a run after which a pop lets a block gather.
    gather_after: u64,
    pub(super) memory: Memory<T>,
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
    /// A sequence word holds what it cannot: the peer is broken or hostile.
    #[error("the ring is corrupted: a sequence word holds what it cannot; make it anew")]
    Corrupted,
}

impl<T: Message, R: Region> Consumer<T, R> {
    /// Takes the free role in the ring that lies in `region`, and goes on from the credit.
    ///
    /// # Errors
    ///
    /// One per guard of the header, and [`Error::Taken`].
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
        let batch = (memory.depth() / 4).max(1);
        let this = Self {
            head: credit,
            credit,
            batch,
            is_eager: false,
            ahead: 0,
            run_start: credit,
            gather_after: 0,
            memory,
            owner,
            region,
        };
        Ok(this.prefetch(true).gather(true))
    }

    /// Chooses when credit is returned. Default: [`Delivery::AtLeastOnce`] with a batch of a quarter of the depth.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// use ring_core::spsc::Delivery;
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, consumer) = spsc::create(&region, &layout)?;
    /// let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    /// producer.try_push(1).unwrap();
    /// consumer.try_pop().unwrap();
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
            // With as many as there are slots a full ring would wait for credit that only its next message returns.
            Delivery::AtLeastOnce { batch } => (u64::from(batch).min(self.memory.depth() - 1).max(1), false),
        };
        self
    }

    /// Whether pops bring later slots near. Default: yes.
    #[must_use]
    pub fn prefetch(mut self, on: bool) -> Self {
        // In a shallow ring a reader as fast as the writer polls the very line that is about to be filled, and
        // each message costs a full hand-over. Asking for a later line early lets several be under way at once;
        // too early takes lines that the producer is about to write. In a ring that is empty most of the time it
        // finds the line where it is, and is free. `xtask bench --suite stream` is the judge of these distances.
        self.ahead = if on { (self.memory.depth() / 8).min(5) } else { 0 };
        self
    }

    /// Whether pops in a ring of 32 KiB of slots or more keep a distance to a producer that sends without a break: then
    /// one in 16 pops waits, for 16 pauses at most, until 16 messages are there. Default: yes. Without it a message at
    /// the end of a long run is never held up, and a deep ring's stream takes up to twice the time.
    #[must_use]
    pub fn gather(mut self, on: bool) -> Self {
        let gathers = on && self.memory.is_deep() && self.memory.depth() > BLOCK;
        self.gather_after = if gathers { GATHER_AFTER } else { u64::MAX };
        self
    }

    /// Pops a message. In a deep ring and a long run it may pause a little first: see [`gather`](Self::gather).
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`], [`PopError::Closed`] when nothing will come, [`PopError::Corrupted`] when a word
    /// holds what it cannot.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// use ring_core::spsc::PopError;
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = spsc::create(&region, &layout)?;
    /// producer.try_push(1).unwrap();
    /// assert_eq!(consumer.try_pop(), Ok(1));
    /// assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    // A call would cost a tenth of the hand-over.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        let slot = self.poll()?;
        let value = slot.read();
        self.advance(slot.position, 1);
        Ok(value)
    }

    /// Pops messages into `values` from the front, as many as are there, and returns how many.
    ///
    /// # Errors
    ///
    /// As [`try_pop`](Self::try_pop), when not a single message could be popped and `values` is not empty.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = spsc::create(&region, &layout)?;
    /// producer.push_slice(&[1, 2, 3]).unwrap();
    /// let mut values = [0; 2];
    /// assert_eq!(consumer.pop_slice(&mut values), Ok(2));
    /// assert_eq!(values, [1, 2]);
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn pop_slice(&mut self, values: &mut [T]) -> Result<usize, PopError> {
        let Some((first_value, other_values)) = values.split_first_mut() else { return Ok(0) };
        let first = self.poll()?;
        *first_value = first.read();
        let mut popped = 1;
        for value in other_values {
            let slot = self.memory.slot(first.position.wrapping_add(popped));
            // ORDERING: Acquire (A1): the message in the slot; pairs with R1 in Producer::publish.
            if slot.sequence().load(Ordering::Acquire) != slot.position {
                break;
            }
            *value = slot.read();
            popped += 1;
        }
        self.advance(first.position, popped);
        #[expect(clippy::cast_possible_truncation, reason = "no more than there are values")]
        Ok(popped as usize)
    }

    /// Pops up to `most` messages, one per step of the iterator, as [`try_pop`](Self::try_pop) does: a step says
    /// that the messages before are done with. It ends where `try_pop` fails, and the next `try_pop` says why.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, spsc};
    /// # let layout = spsc::Layout::<u64>::new(4)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = spsc::create(&region, &layout)?;
    /// producer.push_slice(&[1, 2, 3]).unwrap();
    /// assert!(consumer.drain(2).eq([1, 2]));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn drain(&mut self, most: usize) -> Drain<'_, T, R> {
        Drain { consumer: self, left: most }
    }

    /// Gives access to the next message in place. Dropping the grant leaves it there, releasing it pops it.
    /// [`WriteGrant`](super::WriteGrant) has an example.
    ///
    /// # Errors
    ///
    /// As [`try_pop`](Self::try_pop).
    #[inline]
    pub fn try_peek(&mut self) -> Result<ReadGrant<'_, T, R>, PopError> {
        let slot = self.poll()?;
        Ok(ReadGrant::new(self, slot))
    }

    /// Position of the next message: the ring's first position and the number of messages popped since, by this
    /// consumer and those before it, those that are delivered again not counted.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Number of slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.memory.depth()
    }

    /// Messages that can be popped. It can only have become more since. Takes log2(depth) looks into slots, and
    /// returns no credit, as a pop does.
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
        self.memory.slot(self.head).sequence().load(Ordering::Relaxed) != self.head
    }

    /// Whether [`try_pop`](Self::try_pop) has something else to say than that the ring is empty: a message, the end, or
    /// that the ring is corrupted. As a pop does, it returns the credit that is out where there is nothing.
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

    /// The slot at the head, with a message in it.
    #[inline(always)]
    fn poll(&mut self) -> Result<Slot<T>, PopError> {
        let slot = self.memory.slot(self.head);
        // ORDERING: Acquire (A1): the message in the slot; pairs with R1 in Producer::publish.
        let word = slot.sequence().load(Ordering::Acquire);
        if word != slot.position {
            return self.on_empty(slot, word);
        }
        if slot.position % BLOCK == 0 && slot.position.wrapping_sub(self.run_start) >= self.gather_after {
            self.wait_for_distance();
        }
        Ok(slot)
    }

    /// Waits a little for the next block of messages to be complete.
    ///
    /// A reader close behind the writer takes lines that the writer is about to fill, and each message costs a full
    /// hand-over and more. Some slots behind it takes lines that are done with. When the wait is in vain, since the
    /// run has ended, the next one comes after a run four times as long.
    #[inline(always)]
    fn wait_for_distance(&mut self) {
        let is_there = |offset: u64| {
            let slot = self.memory.slot(self.head.wrapping_add(offset));
            // ORDERING: Relaxed: a hint; the message itself is looked at again.
            slot.sequence().load(Ordering::Relaxed) == slot.position
        };
        // As many pauses as messages. Not said as a constant: unrolled, this would be too long to be inlined.
        let mut pauses_left = self.gather_after.min(BLOCK);
        while pauses_left > 0 {
            if is_there(BLOCK - 1) {
                self.gather_after = GATHER_AFTER;
                return;
            }
            // One message in four pauses is the least that a producer in full flow sends.
            if pauses_left % 4 == 1 && !is_there(3 - pauses_left / 4) {
                break;
            }
            spin_loop();
            pauses_left -= 1;
        }
        self.run_start = self.head;
        self.gather_after = (self.gather_after * 4).min(GATHER_AFTER_MOST);
    }

    /// Says why the slot at the head holds no message, and returns the credit that is still out.
    #[inline(always)]
    fn on_empty(&mut self, slot: Slot<T>, word: u64) -> Result<Slot<T>, PopError> {
        let lap_before = self.memory.lap_before(slot.position);
        if word != lap_before {
            return Err(PopError::Corrupted);
        }
        self.return_credit(slot.position);
        self.run_start = slot.position;
        // ORDERING: Acquire (A3): every message pushed before the close; pairs with R3 in Producer::close_ring.
        if self.memory.header().producer.closed.load(Ordering::Acquire) == 0 {
            return Err(PopError::Empty);
        }
        // ORDERING: Relaxed: the closed word (A3) has brought every message, and none comes after it.
        match slot.sequence().load(Ordering::Relaxed) {
            word if word == slot.position => Ok(slot),
            word if word == lap_before => Err(PopError::Closed),
            _ => Err(PopError::Corrupted),
        }
    }

    /// Steps over the `popped` messages from `head` on.
    #[inline(always)]
    pub(super) fn advance(&mut self, head: u64, popped: u64) {
        self.head = head.wrapping_add(popped);
        self.memory.slot(self.head.wrapping_add(self.ahead)).prefetch_read();
        let done = if self.is_eager { self.head } else { head };
        if done.wrapping_sub(self.credit) >= self.batch {
            self.return_credit(done);
        }
    }

    /// Tells the producer that the messages below `done` are done with.
    #[inline(always)]
    fn return_credit(&mut self, done: u64) {
        if self.credit != done {
            self.credit = done;
            // ORDERING: Release (R2): the reading of the slots is over; pairs with A2 in Producer::room,
            // Producer::take_over and Layout::progress.
            self.memory.header().credit.credit.store(done, Ordering::Release);
        }
    }
}

impl<T: Message, R: Region> Waitable for Consumer<T, R> {
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

impl<T: Message, R: Region> fmt::Debug for Consumer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Consumer")
            .field("head", &self.head)
            .field("credit", &self.credit)
            .field("depth", &self.memory.depth())
            .finish_non_exhaustive()
    }
}

impl<T: Message, R: Region> Drop for Consumer<T, R> {
    fn drop(&mut self) {
        self.return_credit(self.head);
        self.memory.header().consumer.owner.release(self.owner);
    }
}

/// Pops messages one by one: see [`Consumer::drain`].
#[derive(Debug)]
#[must_use = "iterators are lazy"]
pub struct Drain<'a, T: Message, R: Region> {
    consumer: &'a mut Consumer<T, R>,
    left: usize,
}

impl<T: Message, R: Region> Iterator for Drain<'_, T, R> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        self.consumer.try_pop().ok()
    }
}
