//! The side that pops.

use core::fmt;

use super::memory::{CLOSED, Joined, Memory, Slot};
use super::word::{Word, published};
use crate::sync::{self, Ordering, WaitWords, Waitable};
use crate::{Error, Message, Owner, Region};

/// A side of the ring that pops. As many as like to, each with a position of its own; it may move between threads.
///
/// It writes nothing to the region, and nobody knows of it: joining, leaving and being killed disturb nobody, and for
/// another one there is [`join`](Self::join).
///
/// Messages are copied: see [Copies only](super#copies-only).
pub struct Consumer<T: Message, R: Region> {
    /// Position of the next message.
    head: u64,
    memory: Memory<T>,
    /// The state word of the ring as long as it is open and nobody makes it anew.
    state: u64,
    /// Keeps the memory. Last, so that it goes last.
    region: R,
}

/// Why nothing was popped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// No message is there: try again later.
    #[error("the ring is empty")]
    Empty,
    /// The producer has overwritten the next messages. The consumer has passed over them: the next pop goes on with
    /// the oldest message that was left, which may be overwritten in its turn meanwhile.
    #[error(
        "{messages} messages were overwritten before they were popped: pop again for the oldest that is left"
    )]
    Lost {
        /// How many. With those that were popped they are all messages from the first position on.
        messages: u64,
    },
    /// The consumer has seen every message, and the producer has closed the ring: no message will come.
    #[error("the ring is empty and closed")]
    Closed,
    /// A word holds what it cannot: the peer is broken or hostile, or somebody has made the ring anew.
    #[error(
        "the ring is corrupted, or was made anew: a word holds what it cannot; join again, or make it anew"
    )]
    Corrupted,
}

impl<T: Message, R: Region> Consumer<T, R> {
    /// Joins at the newest message: sees what is pushed from now on.
    ///
    /// While the producer is at work, the first message is one that is pushed while this call runs, or the one after.
    /// Takes log2(depth) looks into slots.
    ///
    /// # Errors
    ///
    /// One per guard of the header; [`Error::NotReady`] also when the ring is made anew meanwhile, and
    /// [`Error::Corrupted`].
    pub fn join(region: R) -> Result<Self, Error> {
        let (memory, Joined { state, tail, .. }) = Memory::join(&region)?;
        Ok(Self { head: tail, memory, state, region })
    }

    /// Joins at the oldest message that is still there. While the producer is at work it may be gone when it is to be
    /// popped, and then counts as lost.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub fn join_oldest(region: R) -> Result<Self, Error> {
        let (memory, Joined { state, start, tail }) = Memory::join(&region)?;
        let pushed = tail.wrapping_sub(start);
        let mut this = Self { head: tail.wrapping_sub(pushed.min(memory.depth())), memory, state, region };
        // The slot of the oldest is the one that is overwritten next, and perhaps right now.
        if let Err(error) = this.find() {
            this.step_over(error);
        }
        Ok(this)
    }

    /// Pops a message.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`]; [`PopError::Lost`] when messages were overwritten before they were popped, and then the
    /// next call goes on behind them; [`PopError::Closed`] when nothing will come; [`PopError::Corrupted`] when a word
    /// holds what it cannot.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use ring_core::{HeapRegion, broadcast};
    /// use ring_core::broadcast::PopError;
    ///
    /// let layout = broadcast::Layout::<u64>::new(2)?;
    /// let (mut producer, mut consumer) = broadcast::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?;
    /// producer.push_slice(&[1, 2, 3]);
    /// assert_eq!(consumer.try_pop(), Err(PopError::Lost { messages: 1 }));
    /// assert_eq!(consumer.try_pop(), Ok(2));
    /// assert_eq!(consumer.try_pop(), Ok(3));
    /// assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    // A call would cost a tenth of the hand-over.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        match self.peek() {
            Ok(value) => {
                self.head = self.head.wrapping_add(1);
                Ok(value)
            }
            Err(error) => Err(self.step_over(error)),
        }
    }

    /// Pops messages into `values` from the front, as many as are there before one is missing or lost, and returns
    /// how many.
    ///
    /// # Errors
    ///
    /// As [`try_pop`](Self::try_pop), when not a single message could be popped and `values` is not empty.
    #[inline]
    pub fn pop_slice(&mut self, values: &mut [T]) -> Result<usize, PopError> {
        let Some((first_value, other_values)) = values.split_first_mut() else { return Ok(0) };
        *first_value = self.try_pop()?;
        let mut popped = 1;
        for (value, message) in other_values.iter_mut().zip(self.drain(usize::MAX)) {
            *value = message;
            popped += 1;
        }
        Ok(popped)
    }

    /// Pops up to `most` messages, one per step of the iterator. It ends where [`try_pop`](Self::try_pop) would fail,
    /// and the next `try_pop` says why.
    #[inline]
    pub fn drain(&mut self, most: usize) -> Drain<'_, T, R> {
        Drain { consumer: self, left: most }
    }

    /// Position of the next message: the position at which the consumer joined, and the number of messages that it
    /// popped or was told it lost since.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Number of slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.memory.depth()
    }

    /// Messages that were pushed and neither popped nor told to be lost. What exceeds the capacity is lost already, and
    /// one more when the next message is being written. It can only have become more since. Takes log2(depth) looks
    /// into slots.
    ///
    /// # Errors
    ///
    /// [`PopError::Corrupted`] as [`try_pop`](Self::try_pop).
    pub fn lag(&self) -> Result<u64, PopError> {
        let tail = self.memory.find_tail(self.memory.hint()).map_err(|_| PopError::Corrupted)?;
        let lag = tail.wrapping_sub(self.head);
        // No consumer is ahead of the tail.
        if lag > u64::MAX / 2 { Err(PopError::Corrupted) } else { Ok(lag) }
    }

    /// Whether nothing is to be popped, nor told to be lost. True can be outdated already, false stays false until the
    /// next pop.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let slot = self.memory.slot(self.head);
        // ORDERING: Relaxed: a hint for the caller; a pop looks again.
        let word = slot.word().load(Ordering::Relaxed);
        slot.is_pending(word)
    }

    /// Whether [`try_pop`](Self::try_pop) has something else to say than that the ring is empty. False can be outdated
    /// already, true stays true until the next pop.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        // ORDERING: Relaxed: a hint for the caller; a pop looks again.
        !self.is_empty() || self.memory.header().producer.state.load(Ordering::Relaxed) != self.state
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

    /// Copies the next message.
    #[inline(always)]
    fn peek(&self) -> Result<T, PopError> {
        let slot = self.find()?;
        let value = slot.read();
        // ORDERING: Acquire (A2): that the slot is being overwritten, if a word of the copy is of a later message;
        // pairs with R2 in Producer::begin.
        sync::fence(Ordering::Acquire);
        // ORDERING: Relaxed: the fence above (A2) keeps it behind the copy.
        if slot.word().load(Ordering::Relaxed) != published(slot.position) {
            return Err(self.overtaken(&slot));
        }
        Ok(value)
    }

    /// The slot at the head, with a message in it.
    #[inline(always)]
    fn find(&self) -> Result<Slot<T>, PopError> {
        let slot = self.memory.slot(self.head);
        let word = slot.look();
        if word == published(slot.position) {
            Ok(slot)
        } else if slot.is_pending(word) {
            self.on_empty(slot)
        } else {
            Err(self.overtaken(&slot))
        }
    }

    /// Says why the slot at the head holds no message yet, or that it does now.
    #[inline(always)]
    fn on_empty(&self, slot: Slot<T>) -> Result<Slot<T>, PopError> {
        if self.check_open()? {
            return Err(PopError::Empty);
        }
        // The state word has brought every message, and the slot was looked at before.
        match slot.look() {
            word if word == published(slot.position) => Ok(slot),
            word if slot.is_pending(word) => Err(PopError::Closed),
            _ => Err(self.overtaken(&slot)),
        }
    }

    /// Says how many messages were overwritten, once the slot at the head is known to be past it.
    #[cold]
    fn overtaken(&self, slot: &Slot<T>) -> PopError {
        if let Err(error) = self.check_open() {
            return error;
        }
        match self.oldest(slot) {
            Some(oldest) => PopError::Lost { messages: oldest.wrapping_sub(self.head) },
            None => PopError::Corrupted,
        }
    }

    /// The oldest message that is left, once the slot at the head is past it.
    ///
    /// The slot itself tells no more than which lap it is in. What is left begins a lap before the tail, or one message
    /// later, when its slot is being overwritten or was since the tail was found.
    fn oldest(&self, slot: &Slot<T>) -> Option<u64> {
        // A word that is looked at now says no less than before, and brings the messages before it.
        if !matches!(slot.compare(), Word::Later { .. }) {
            return None;
        }
        let tail = self.memory.find_tail(self.memory.hint()).ok()?;
        let first = tail.wrapping_sub(self.memory.depth());
        let oldest = match self.memory.slot(first).compare() {
            Word::Published => first,
            Word::Later { at, .. } => at.wrapping_sub(self.memory.depth()).wrapping_add(1),
            Word::Pending | Word::Impossible => return None,
        };
        // Each loss takes the consumer forward.
        (1..=u64::MAX / 2).contains(&oldest.wrapping_sub(self.head)).then_some(oldest)
    }

    /// Whether the ring is open; it is still the one that this consumer has joined.
    fn check_open(&self) -> Result<bool, PopError> {
        // ORDERING: Acquire (A3): every message pushed before the close; pairs with R3 in Producer::close_ring.
        match self.memory.header().producer.state.load(Ordering::Acquire) {
            state if state == self.state => Ok(true),
            state if state == self.state | CLOSED => Ok(false),
            _ => Err(PopError::Corrupted),
        }
    }

    /// Goes on behind what is lost.
    #[inline]
    fn step_over(&mut self, error: PopError) -> PopError {
        if let PopError::Lost { messages } = error {
            self.head = self.head.wrapping_add(messages);
        }
        error
    }
}

impl<T: Message, R: Region> Waitable for Consumer<T, R> {
    #[inline]
    fn wait_words(&self) -> &WaitWords {
        &self.memory.header().guard.waiting
    }

    #[inline]
    fn mark(&self) -> Option<u64> {
        // The producer never looks at what consumers do.
        Some(0)
    }

    #[inline]
    fn is_next_pop_silent(&self) -> bool {
        true
    }

    fn settle(&mut self) {}
}

impl<T: Message, R: Region> fmt::Debug for Consumer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Consumer")
            .field("head", &self.head)
            .field("depth", &self.memory.depth())
            .finish_non_exhaustive()
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
        let value = self.consumer.peek().ok()?;
        self.consumer.head = self.consumer.head.wrapping_add(1);
        Some(value)
    }
}
