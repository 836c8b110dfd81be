//! The handle that pops.

mod ready;

use core::fmt;

use super::grant::ReadGrant;
use super::memory::{Memory, Slot};
use super::seat::{Backoff, Seat, later};
use super::word::State;
use crate::sync::{Closable, Ordering, WaitWords, Waitable};
use crate::{Error, Liveness, Message, Owner, Region};

/// A handle that pops, one of many. It may move between threads.
///
/// Each has a place in the ring of its own. Dropping it gives the place back.
pub struct Consumer<T: Message, R: Region> {
    /// A position up to which all are claimed, popped or given up, as far as this handle knows.
    head: u64,
    /// The number that changes whenever a message may have been put back, as of the last look behind the head.
    put_back: u64,
    pub(super) seat: Seat<T, R>,
}

/// Why nothing was popped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// No message is there: try again later.
    #[error("the ring is empty")]
    Empty,
    /// The next slot is still claimed by another participant, which is slow or dead; or others were faster all the
    /// time. Try again, and with a [`Liveness`] if it stays so.
    #[error("another participant holds the slot: try again, and with a `Liveness` if it stays so")]
    Busy,
    /// The ring was closed and all messages were popped: none will come.
    #[error("the ring is empty and closed")]
    Closed,
    /// A slot's word holds what it cannot: a peer is broken or hostile.
    #[error("the ring is corrupted: a slot's word holds what it cannot; make it anew")]
    Corrupted,
}

/// What a consumer finds in the slot at a position.
enum Found {
    /// The message of a lap before, which was put back.
    PutBack,
    /// All up to this position is claimed, popped or given up.
    DoneUpTo(u64),
    /// Nothing to be done.
    Stop(PopError),
    /// What cannot be, unless it is old.
    Odd,
}

impl<T: Message, R: Region> Consumer<T, R> {
    /// Takes a free place in the ring that lies in `region`, and looks at each slot.
    ///
    /// # Errors
    ///
    /// One per guard of the header, [`Error::TooManyParticipants`], [`Error::Corrupted`].
    pub fn attach(region: R) -> Result<Self, Error> {
        Ok(Self::over(Seat::any_free(region)?))
    }

    /// As [`attach`](Self::attach), also where the only places left are those of owners that `liveness` knows to be
    /// gone. What any of those had begun is finished first: see [`recover`](Self::recover).
    ///
    /// # Errors
    ///
    /// As `attach`.
    pub fn attach_with(region: R, liveness: &impl Liveness) -> Result<Self, Error> {
        Ok(Self::over(Seat::any(region, liveness)?))
    }

    /// As [`attach_with`](Self::attach_with), in the place `id` and no other. Of use where a lock that stands for the
    /// place was taken before.
    ///
    /// # Errors
    ///
    /// As `attach_with`, [`Error::NoSuchParticipant`], and [`Error::Taken`] when the owner is not known to be gone or
    /// somebody else clears up after it just now.
    pub fn take_over(region: R, id: u16, liveness: &impl Liveness) -> Result<Self, Error> {
        Ok(Self::over(Seat::at(region, id, liveness)?))
    }

    pub(super) fn over(seat: Seat<T, R>) -> Self {
        let header = seat.memory.header();
        // ORDERING: Relaxed: a place to begin to look at.
        let head = header.head.position.load(Ordering::Relaxed);
        // ORDERING: Relaxed: another number than this has the first pop that finds nothing look behind.
        let put_back = header.state.put_back.load(Ordering::Relaxed).wrapping_sub(1);
        Self { head, put_back, seat }
    }

    /// Pops a message.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`], [`PopError::Busy`], [`PopError::Closed`] when nothing will come, [`PopError::Corrupted`].
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        let slot = self.take()?;
        let value = slot.read();
        self.finish(&slot);
        Ok(value)
    }

    /// As [`try_pop`](Self::try_pop). Where the same slot was in the way four times in a row, `liveness` is asked
    /// about its owner, and what a dead one had begun is finished.
    ///
    /// # Errors
    ///
    /// As `try_pop`; [`PopError::Busy`] until then, while the owner is not known to be gone or somebody
    /// else clears up after it, and when others were faster each time.
    pub fn try_pop_with(&mut self, liveness: &impl Liveness) -> Result<T, PopError> {
        match self.try_pop() {
            Err(PopError::Busy) if self.seat.clear_obstacle(liveness) => self.try_pop(),
            other => other,
        }
    }

    /// Pops messages into `values` from the front, as many as are there, and returns how many.
    ///
    /// # Errors
    ///
    /// As [`try_pop`](Self::try_pop), when not a single message could be popped and `values` is not empty.
    #[inline]
    pub fn pop_slice(&mut self, values: &mut [T]) -> Result<usize, PopError> {
        let many = values.len();
        for (popped, value) in values.iter_mut().enumerate() {
            match self.try_pop() {
                Ok(message) => *value = message,
                Err(_) if popped > 0 => return Ok(popped),
                Err(error) => return Err(error),
            }
        }
        Ok(many)
    }

    /// Pops up to `most` messages, one per step of the iterator. It ends where [`try_pop`](Self::try_pop) fails, and
    /// the next `try_pop` says why.
    #[inline]
    pub fn drain(&mut self, most: usize) -> Drain<'_, T, R> {
        Drain { consumer: self, left: most }
    }

    /// Claims the next message and gives access to it in place.
    ///
    /// Releasing the grant pops the message, dropping it puts it back. Meanwhile other consumers go on to later
    /// messages, so that one that was put back may be seen after those.
    ///
    /// # Errors
    ///
    /// As [`try_pop`](Self::try_pop).
    #[inline]
    pub fn try_peek(&mut self) -> Result<ReadGrant<'_, T, R>, PopError> {
        let slot = self.take()?;
        Ok(ReadGrant::new(self, slot))
    }

    /// Closes the ring for good and for all: pushes that begin after this fail, consumers get what was pushed and then
    /// [`PopError::Closed`]. A push at the same time may still get in, and then is delivered.
    pub fn close(&self) {
        self.seat.close();
    }

    /// Finishes what participants had begun that `liveness` knows to be gone, frees their places, and returns how many
    /// slots were concerned. Asks about each place that is held, and looks at each slot, once more for each participant
    /// that is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`] when a slot names a participant that cannot be.
    pub fn recover(&self, liveness: &impl Liveness) -> Result<u64, Error> {
        self.seat.recover(liveness)
    }

    /// This handle's place in the ring, from 1 on: its [`Role::Participant`](crate::Role::Participant).
    #[must_use]
    pub fn id(&self) -> u16 {
        self.seat.id
    }

    /// What the owner word of place `id` says; none for a place that the ring has not.
    #[must_use]
    pub fn participant(&self, id: u16) -> Option<Owner> {
        self.seat.participant(id)
    }

    /// Number of slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.seat.memory.depth()
    }

    /// Messages that wait. Looks at each slot, so it is for those who watch; while others work, it is a number that may
    /// never have been true at one time, between 0 and the capacity.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.seat.memory.count()
    }

    /// Whether no message waits. Looks at each slot, as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The region that the ring lies in.
    pub fn region(&self) -> &R {
        &self.seat.region
    }

    /// Claims the slot of the next message.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Result<Slot<T>, PopError> {
        if self.seat.lent.is_some() {
            self.seat.take_back();
        }
        match self.claim_at(self.head) {
            Ok(slot) => Ok(slot),
            Err(_) => self.search(),
        }
    }

    /// Claims the slot of a position if it carries the position's message, or returns the word that is there.
    #[inline(always)]
    fn claim_at(&self, position: u64) -> Result<Slot<T>, u64> {
        let memory = &self.seat.memory;
        let slot = memory.slot(position);
        let full = memory.word(position, State::Full);
        // ORDERING: Relaxed: the exchange decides, and it acquires.
        let found = slot.word().load(Ordering::Relaxed);
        if found != full {
            return Err(found);
        }
        let reading = memory.word(position, State::Reading(self.seat.id));
        // ORDERING: Acquire (A1): the message, and that others who looked at it are done; pairs with R1 in
        // Producer::publish, Seat::put_back and Kept::finish.
        // ORDERING: Relaxed on failure: somebody else has the slot, and nothing is read.
        slot.word().compare_exchange(full, reading, Ordering::Acquire, Ordering::Relaxed).map(|_| slot)
    }

    /// Claims the first message, from the head on.
    #[inline(never)]
    fn search(&mut self) -> Result<Slot<T>, PopError> {
        let mut backoff = Backoff::default();
        for _ in 0..self.seat.looks_per_call() {
            let word = match self.claim_at(self.head) {
                Ok(slot) => return Ok(slot),
                Err(word) => word,
            };
            match self.judge(word) {
                Found::PutBack => {
                    if let Ok(slot) = self.claim_at(self.head.wrapping_sub(self.capacity())) {
                        return Ok(slot);
                    }
                }
                Found::DoneUpTo(position) => {
                    // ORDERING: Relaxed: a place to begin to look at.
                    let hint = self.seat.memory.header().head.position.load(Ordering::Relaxed);
                    self.head = later(position, hint);
                    backoff.wait();
                }
                Found::Odd => {
                    let slot = self.seat.memory.slot(self.head);
                    if Memory::confirm(&slot, word).is_ok() {
                        return Err(PopError::Corrupted);
                    }
                }
                Found::Stop(PopError::Empty) if self.seat.is_closed() => self.seal(word),
                Found::Stop(error) => return self.look_behind(error, word),
            }
        }
        Err(PopError::Busy)
    }

    /// What the word of the slot at the head says.
    fn judge(&self, word: u64) -> Found {
        let memory = &self.seat.memory;
        let (laps, state) = (memory.laps(), memory.state(word));
        if let Some(position) = laps.done_up_to(self.head, word, state) {
            return Found::DoneUpTo(position);
        }
        match (laps.ahead(word, self.head), state) {
            (0, State::Closed) => Found::Stop(PopError::Closed),
            (0, State::Free) => Found::Stop(PopError::Empty),
            (-1, State::Full) => Found::PutBack,
            (0, State::Writing(_)) | (-1, State::Reading(_)) => Found::Stop(PopError::Busy),
            // Also a message that came just now: another look decides.
            _ => Found::Odd,
        }
    }

    /// Marks the empty slot at the head as the end of a closed ring, unless a message comes there after all.
    fn seal(&self, free: u64) {
        let closed = self.seat.memory.word(self.head, State::Closed);
        // ORDERING: Relaxed: nothing changes hands: no message will come, and whoever claims the slot sees it.
        // ORDERING: Relaxed on failure: another look decides.
        let _ = self.seat.memory.slot(self.head).word().compare_exchange(
            free,
            closed,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Where there is nothing at the head: claims a message that was put back behind it, or says why there is none.
    fn look_behind(&mut self, why: PopError, obstacle: u64) -> Result<Slot<T>, PopError> {
        if why == PopError::Busy {
            self.seat.note_obstacle(obstacle);
        }
        // ORDERING: Acquire (A3): the slots that were put back; pairs with R3 in Memory::announce.
        let put_back = self.seat.memory.header().state.put_back.load(Ordering::Acquire);
        if put_back == self.put_back && why != PopError::Closed {
            return Err(why);
        }
        let mut reading = None;
        for distance in (1..=self.capacity()).rev() {
            let position = self.head.wrapping_sub(distance);
            match self.claim_at(position) {
                Ok(slot) => return Ok(slot),
                Err(word) if matches!(self.seat.memory.state(word), State::Reading(_)) => {
                    reading = Some(word)
                }
                Err(_) => {}
            }
        }
        self.put_back = put_back;
        match reading {
            // It may be put back, and then the ring does not end yet.
            Some(word) if why == PopError::Closed => {
                self.seat.note_obstacle(word);
                Err(PopError::Busy)
            }
            _ => Err(why),
        }
    }

    /// Frees the slot of a message that was read.
    #[inline(always)]
    pub(super) fn finish(&mut self, slot: &Slot<T>) {
        let memory = &self.seat.memory;
        let free = memory.word(slot.position.wrapping_add(memory.depth()), State::Free);
        // ORDERING: Release (R2): that the message was read; pairs with A2 in Producer::claim_at.
        slot.word().store(free, Ordering::Release);
        memory.prefetch(slot.position.wrapping_add(4));
        // One that was put back lies behind the head.
        if slot.position == self.head {
            self.head = slot.position.wrapping_add(1);
            // ORDERING: Relaxed: a place to begin to look at; slots say what is true.
            memory.header().head.position.store(self.head, Ordering::Relaxed);
        }
    }
}

impl<T: Message, R: Region> Waitable for Consumer<T, R> {
    #[inline]
    fn wait_words(&self) -> &WaitWords {
        &self.seat.memory.header().guard.waiting
    }

    #[inline]
    fn mark(&self) -> Option<u64> {
        None
    }

    fn settle(&mut self) {
        self.seat.take_back();
    }
}

impl<T: Message, R: Region> Closable for Consumer<T, R> {
    fn close_ring(&mut self) {
        self.seat.close();
    }
}

impl<T: Message, R: Region> fmt::Debug for Consumer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Consumer")
            .field("id", &self.seat.id)
            .field("head", &self.head)
            .field("depth", &self.seat.memory.depth())
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
        self.consumer.try_pop().ok()
    }
}
