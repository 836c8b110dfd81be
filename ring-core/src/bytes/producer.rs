//! The side that pushes.

use core::fmt;

use super::frame::Frame;
use super::grant::WriteGrant;
use super::memory::{Memory, PADDING};
use crate::sync::{Closable, Ordering, WaitWords, Waitable};
use crate::{AssumeAlive, Error, Liveness, Owner, Region, Role};

/// No position: those of words are multiples of 8.
const NOWHERE: u64 = 1;

/// The side of the ring that pushes. One at a time; it may move between threads.
///
/// Dropping it gives the role back and leaves the ring open: a successor goes on. [`close`](Self::close) ends it.
pub struct Producer<R: Region> {
    /// Position of the next frame. The word there is 0.
    tail: u64,
    /// Position that this side may not write at or beyond, as far as it knows: the credit last seen, and one lap.
    limit: u64,
    /// Position beyond the tail where a 0 lies already, for the frontier of a message that ends there, or
    /// [`NOWHERE`].
    zeroed: u64,
    memory: Memory,
    /// What the owner word holds while this handle has the role.
    owner: u64,
    /// Keeps the memory. Last, so that it goes last.
    region: R,
}

/// Why nothing was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// There is no room for a message as long: try again once the consumer has popped.
    #[error("the ring is full: try again once the consumer has popped")]
    Full,
    /// The message has no bytes, and a length of 0 says that there is no message.
    #[error("a message without bytes: a message has 1 byte or more")]
    NoBytes,
    /// The message is longer than this ring ever takes.
    #[error("a message longer than {longest} bytes: split it, or make a larger ring")]
    TooLong {
        /// Bytes of the longest message: half the ring less 8.
        longest: usize,
    },
    /// The consumer's credit word holds what it cannot: the peer is broken or hostile.
    #[error("the ring is corrupted: its credit word holds what it cannot; make it anew")]
    Corrupted,
}

impl<R: Region> Producer<R> {
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
    /// # use ring_core::{HeapRegion, bytes};
    /// use ring_core::{AssumeGone, Role};
    /// use ring_core::bytes::Producer;
    /// # let layout = bytes::Layout::new(64)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, _consumer) = bytes::create(&region, &layout)?;
    /// producer.try_push(b"a message").unwrap();
    /// std::mem::forget(producer); // what is left of one that was killed
    /// // SAFETY: the former producer does nothing any more, and nobody else succeeds it.
    /// let gone = unsafe { AssumeGone::of(Role::Producer) };
    /// let successor = Producer::take_over(&region, &gone)?;
    /// assert_eq!(successor.tail(), 24); // goes on behind that message
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    pub fn take_over(region: R, liveness: &impl Liveness) -> Result<Self, Error> {
        let (memory, owner) = Memory::attach(&region, Role::Producer, liveness)?;
        let mut this = Self { tail: 0, limit: 0, zeroed: NOWHERE, memory, owner, region };
        // ORDERING: Relaxed: only producers write it; what the former one wrote came with the role, by its release
        // (A5) or by the contract of `Liveness`.
        if this.memory.header().producer.closed.load(Ordering::Relaxed) != 0 {
            return Err(Error::Closed);
        }
        // ORDERING: Acquire (A2): the bytes below are read; pairs with R2 in Consumer::return_credit.
        let credit = this.memory.header().credit.credit.load(Ordering::Acquire);
        if !Memory::is_whole(credit) {
            return Err(Error::Corrupted);
        }
        // Frames from the credit on are not overwritten: only a producer does that, and that is us.
        this.tail = credit.wrapping_add(this.memory.published_from(credit)?);
        this.limit = credit.wrapping_add(this.memory.ring_bytes());
        Ok(this)
    }

    /// Pushes a message.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] when there is no room, [`PushError::NoBytes`] and [`PushError::TooLong`] for a message
    /// that never fits, [`PushError::Corrupted`] when the peer's credit cannot be.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, bytes};
    /// use ring_core::bytes::PushError;
    /// # let layout = bytes::Layout::new(64)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, _consumer) = bytes::create(&region, &layout)?;
    /// assert_eq!(producer.try_push(b"a message"), Ok(()));
    /// assert_eq!(producer.try_push(&[0; 25]), Err(PushError::TooLong { longest: 24 }));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn try_push(&mut self, message: &[u8]) -> Result<(), PushError> {
        let frame = self.room(message.len())?;
        frame.write(message);
        self.publish(&frame);
        Ok(())
    }

    /// Pushes messages from the front of `messages` while there is room, and returns how many.
    ///
    /// # Errors
    ///
    /// As [`try_push`](Self::try_push), when not a single message could be pushed and `messages` is not empty. At
    /// a message that never fits it ends as at one for which there is no room.
    ///
    /// ```
    /// # use ring_core::{HeapRegion, bytes};
    /// use ring_core::bytes::PushError;
    /// # let layout = bytes::Layout::new(64)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, _consumer) = bytes::create(&region, &layout)?;
    /// assert_eq!(producer.push_slices(&["one", "two", "three", "four"]), Ok(3));
    /// assert_eq!(producer.push_slices(&["four"]), Err(PushError::Full));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    #[inline]
    pub fn push_slices<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<usize, PushError> {
        let mut pushed = 0;
        for message in messages {
            match self.try_push(message.as_ref()) {
                Ok(()) => pushed += 1,
                Err(_) if pushed > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(pushed)
    }

    /// Reserves room to write a message of `len` bytes in place, or of fewer. Dropping the grant publishes nothing.
    /// [`WriteGrant`] has an example.
    ///
    /// # Errors
    ///
    /// As [`try_push`](Self::try_push).
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Result<WriteGrant<'_, R>, PushError> {
        let frame = self.room(len)?;
        // The caller may write there and then commit less, or nothing.
        if frame.end() != self.zeroed {
            self.zeroed = NOWHERE;
        }
        Ok(WriteGrant::new(self, frame))
    }

    /// Closes the ring for good: the consumer gets what is in it, then [`PopError::Closed`](super::PopError).
    ///
    /// ```
    /// # use ring_core::{HeapRegion, bytes};
    /// use ring_core::bytes::PopError;
    /// # let layout = bytes::Layout::new(64)?;
    /// # let region = HeapRegion::new(layout.bytes());
    /// # let (mut producer, mut consumer) = bytes::create(&region, &layout)?;
    /// producer.try_push(b"last").unwrap();
    /// producer.close();
    /// assert_eq!(consumer.try_pop(&mut [0; 24]), Ok(4));
    /// assert_eq!(consumer.try_pop(&mut [0; 24]), Err(PopError::Closed));
    /// # Ok::<(), ring_core::Error>(())
    /// ```
    pub fn close(mut self) {
        self.close_ring();
    }

    /// Position of the next frame: the ring's first position and the bytes of all frames since, padding included, by
    /// this producer and those before it. A successor learns here how far they got.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Bytes of the ring. A message takes 8 more than it has, rounded up to a multiple of 8, and 8 bytes of the ring
    /// always stay free.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.memory.ring_bytes()
    }

    /// Bytes of the longest message: half the ring less 8. One as long fits once the consumer has credited enough,
    /// however the ring stands.
    #[expect(clippy::cast_possible_truncation, reason = "shorter than the ring")]
    #[must_use]
    pub fn longest(&self) -> usize {
        self.memory.longest() as usize
    }

    /// Bytes of the ring in use: frames pushed and not yet credited by the consumer, padding included. It can only
    /// have become less since.
    ///
    /// With a consumer that returns credit late this counts messages that were popped already.
    #[must_use]
    pub fn len(&self) -> u64 {
        // ORDERING: Relaxed: a number for the caller; nothing is written because of it.
        let credit = self.memory.header().credit.credit.load(Ordering::Relaxed);
        self.tail.wrapping_sub(credit).min(self.memory.most_used())
    }

    /// Whether the consumer has credited all messages. False can be outdated already, true stays true until the
    /// next push.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a push of `len` bytes has something else to say than that the ring is full. False can be outdated
    /// already, true stays true until the next push.
    #[must_use]
    pub fn is_ready(&mut self, len: usize) -> bool {
        !matches!(self.try_reserve(len), Err(PushError::Full))
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

    /// Finds room for a message of `len` bytes, padding before it and the frontier behind it included.
    #[inline(always)]
    fn room(&mut self, len: usize) -> Result<Frame, PushError> {
        let tail = self.tail;
        let Some(frame) = self.memory.frame_for(tail, len) else {
            return Err(match len {
                0 => PushError::NoBytes,
                _ => PushError::TooLong { longest: self.longest() },
            });
        };
        let needed = frame.end().wrapping_sub(tail);
        // One word less than lies before the limit can be used: the frontier needs it.
        if self.limit.wrapping_sub(tail) <= needed {
            // ORDERING: Acquire (A2): the reading of the bytes is over; pairs with R2 in Consumer::return_credit.
            let credit = self.memory.header().credit.credit.load(Ordering::Acquire);
            let used = tail.wrapping_sub(credit);
            if used > self.memory.most_used() || !Memory::is_whole(used) {
                return Err(PushError::Corrupted);
            }
            self.limit = credit.wrapping_add(self.memory.ring_bytes());
            if self.limit.wrapping_sub(tail) <= needed {
                return Err(PushError::Full);
            }
        }
        Ok(frame)
    }

    /// Publishes the message in the frame, at the tail or behind padding.
    #[inline(always)]
    pub(super) fn publish(&mut self, frame: &Frame) {
        let end = frame.end();
        // The frontier comes before what leads to it, so that nobody ever takes older bytes for a header.
        if end != self.zeroed {
            // ORDERING: Relaxed: nobody looks there until the header below says so (R1).
            self.memory.word(end).store(0, Ordering::Relaxed);
        }
        let mut header = frame.len() as u64;
        if frame.at() != self.tail {
            // ORDERING: Relaxed: as above; the padding leads there.
            self.memory.word(frame.at()).store(header, Ordering::Relaxed);
            header = PADDING | frame.at().wrapping_sub(self.tail).wrapping_sub(8);
        }
        // ORDERING: Release (R1): the message and all words above; pairs with A1 in Consumer::poll,
        // Memory::next and Memory::find_tail.
        self.memory.word(self.tail).store(header, Ordering::Release);
        self.tail = end;
        // The next message, if it is as long, has its frontier there. Stored now, the 0 is on its way while nobody
        // waits for it; stored by that push, it would hold up the publication until its line is near. Beyond the limit
        // lie messages that the consumer has not read.
        let next = end.wrapping_sub(frame.at());
        if self.limit.wrapping_sub(end) > next {
            self.zeroed = end.wrapping_add(next);
            // ORDERING: Relaxed: nobody looks there until a later header says so (R1).
            self.memory.word(self.zeroed).store(0, Ordering::Relaxed);
        }
    }
}

impl<R: Region> Waitable for Producer<R> {
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

impl<R: Region> Closable for Producer<R> {
    fn close_ring(&mut self) {
        // ORDERING: Release (R3): every message pushed before; pairs with A3 in Consumer::on_empty and
        // Layout::progress.
        self.memory.header().producer.closed.store(1, Ordering::Release);
    }
}

impl<R: Region> fmt::Debug for Producer<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Producer")
            .field("tail", &self.tail)
            .field("limit", &self.limit)
            .field("ring_bytes", &self.memory.ring_bytes())
            .finish_non_exhaustive()
    }
}

impl<R: Region> Drop for Producer<R> {
    fn drop(&mut self) {
        self.memory.header().producer.owner.release(self.owner);
    }
}
