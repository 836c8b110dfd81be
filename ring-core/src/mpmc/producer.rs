//! The handle that pushes.

use core::fmt;

use super::grant::WriteGrant;
use super::memory::{Memory, Slot};
use super::seat::{Backoff, Seat, later};
use super::word::State;
use crate::sync::{Closable, Ordering, WaitWords, Waitable};
use crate::{Error, Liveness, Message, Owner, Region};

/// A handle that pushes, one of many. It may move between threads.
///
/// Each has a place in the ring of its own. Dropping it gives the place back.
pub struct Producer<T: Message, R: Region> {
    /// A position up to which all are claimed, as far as this handle knows.
    tail: u64,
    pub(super) seat: Seat<T, R>,
}

/// Why nothing was pushed. The message comes back where it was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// Every slot carries a message: try again once a consumer has popped.
    #[error("the ring is full: try again once a consumer has popped")]
    Full(T),
    /// The next slot is still claimed by another participant, which is slow or dead; or others were faster all the
    /// time. Try again, and with a [`Liveness`] if it stays so.
    #[error("another participant holds the slot: try again, and with a `Liveness` if it stays so")]
    Busy(T),
    /// The ring was closed for good.
    #[error("the ring is closed")]
    Closed(T),
    /// A slot's word holds what it cannot: a peer is broken or hostile.
    #[error("the ring is corrupted: a slot's word holds what it cannot; make it anew")]
    Corrupted(T),
}

impl<T> PushError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Busy(value) | Self::Closed(value) | Self::Corrupted(value) => value,
        }
    }

    fn map<U>(self, convert: impl FnOnce(T) -> U) -> PushError<U> {
        match self {
            Self::Full(value) => PushError::Full(convert(value)),
            Self::Busy(value) => PushError::Busy(convert(value)),
            Self::Closed(value) => PushError::Closed(convert(value)),
            Self::Corrupted(value) => PushError::Corrupted(convert(value)),
        }
    }
}

/// What a producer finds in the slot at a position.
enum Found {
    /// All up to this position is claimed.
    ClaimedUpTo(u64),
    /// Nothing to be done.
    Stop(PushError<()>),
    /// What cannot be, unless it is old.
    Odd,
}

impl<T: Message, R: Region> Producer<T, R> {
    /// Takes a free place in the ring that lies in `region`, and looks at each slot.
    ///
    /// # Errors
    ///
    /// One per guard of the header, [`Error::TooManyParticipants`], [`Error::Corrupted`], [`Error::Closed`].
    pub fn attach(region: R) -> Result<Self, Error> {
        Self::over(Seat::any_free(region)?)
    }

    /// As [`attach`](Self::attach), also where the only places left are those of owners that `liveness` knows to be
    /// gone. What any of those had begun is finished first: see [`recover`](Self::recover).
    ///
    /// # Errors
    ///
    /// As `attach`.
    pub fn attach_with(region: R, liveness: &impl Liveness) -> Result<Self, Error> {
        Self::over(Seat::any(region, liveness)?)
    }

    /// As [`attach_with`](Self::attach_with), in the place `id` and no other. Of use where a lock that stands for the
    /// place was taken before.
    ///
    /// # Errors
    ///
    /// As `attach_with`, [`Error::NoSuchParticipant`], and [`Error::Taken`] when the owner is not known to be gone or
    /// somebody else clears up after it just now.
    pub fn take_over(region: R, id: u16, liveness: &impl Liveness) -> Result<Self, Error> {
        Self::over(Seat::at(region, id, liveness)?)
    }

    fn over(seat: Seat<T, R>) -> Result<Self, Error> {
        if seat.is_closed() {
            return Err(Error::Closed);
        }
        // ORDERING: Relaxed: a place to begin to look at.
        let tail = seat.memory.header().tail.position.load(Ordering::Relaxed);
        Ok(Self { tail, seat })
    }

    /// Pushes a message.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`], [`PushError::Busy`], [`PushError::Closed`], [`PushError::Corrupted`].
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        match self.claim() {
            Ok(slot) => {
                slot.write(&value);
                self.publish(&slot);
                Ok(())
            }
            Err(error) => Err(error.map(|()| value)),
        }
    }

    /// As [`try_push`](Self::try_push). Where the same slot was in the way four times in a row, `liveness` is asked
    /// about its owner, and what a dead one had begun is finished.
    ///
    /// # Errors
    ///
    /// As `try_push`; [`PushError::Busy`] until then, while the owner is not known to be gone or somebody
    /// else clears up after it, and when others were faster each time.
    pub fn try_push_with(&mut self, value: T, liveness: &impl Liveness) -> Result<(), PushError<T>> {
        match self.try_push(value) {
            Err(PushError::Busy(value)) if self.seat.clear_obstacle(liveness) => self.try_push(value),
            other => other,
        }
    }

    /// Pushes messages from the front of `values` while there is room, and returns how many. Messages of others may
    /// come between them.
    ///
    /// # Errors
    ///
    /// As [`try_push`](Self::try_push), when not a single message could be pushed and `values` is not empty.
    #[inline]
    pub fn push_slice(&mut self, values: &[T]) -> Result<usize, PushError<()>> {
        for (pushed, value) in values.iter().enumerate() {
            match self.claim() {
                Ok(slot) => {
                    slot.write(value);
                    self.publish(&slot);
                }
                Err(_) if pushed > 0 => return Ok(pushed),
                Err(error) => return Err(error),
            }
        }
        Ok(values.len())
    }

    /// Claims the next slot to write the message in place. Until the grant ends, consumers wait at this slot.
    ///
    /// Dropping the grant publishes nothing and leaves the slot empty for this lap of the ring: later messages may be
    /// there already, and a message that came before them would be out of order.
    ///
    /// # Errors
    ///
    /// As [`try_push`](Self::try_push).
    #[inline]
    pub fn try_reserve(&mut self) -> Result<WriteGrant<'_, T, R>, PushError<()>> {
        let slot = self.claim()?;
        Ok(WriteGrant::new(self, slot))
    }

    /// Closes the ring for good and for all: pushes that begin after this fail, consumers get what was pushed and then
    /// [`PopError::Closed`](super::PopError::Closed). A push at the same time may still get in, and then is delivered.
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

    /// Whether a push is worth a try: a slot is free, or the ring is closed or corrupted. Claims nothing, so another
    /// handle can be faster.
    #[must_use]
    pub fn is_ready(&mut self) -> bool {
        for _ in 0..self.seat.looks_per_call() {
            // ORDERING: Relaxed: a hint for the caller; a push looks again.
            let word = self.seat.memory.slot(self.tail).word().load(Ordering::Relaxed);
            if self.seat.is_closed() || word == self.seat.memory.word(self.tail, State::Free) {
                return true;
            }
            match self.judge(word) {
                Found::ClaimedUpTo(position) => self.tail = later(position, self.tail),
                Found::Stop(PushError::Full(()) | PushError::Busy(())) => return false,
                Found::Odd | Found::Stop(_) => return true,
            }
        }
        true
    }

    /// The region that the ring lies in.
    pub fn region(&self) -> &R {
        &self.seat.region
    }

    /// Claims the slot for the next message.
    #[inline(always)]
    pub(super) fn claim(&mut self) -> Result<Slot<T>, PushError<()>> {
        if self.seat.lent.is_some() {
            self.seat.take_back();
        }
        if self.seat.is_closed() {
            return Err(PushError::Closed(()));
        }
        match self.claim_at(self.tail) {
            Ok(slot) => Ok(slot),
            Err(_) => self.search(),
        }
    }

    /// Claims the slot of a position if it is free, or returns the word that is there.
    #[inline(always)]
    fn claim_at(&self, position: u64) -> Result<Slot<T>, u64> {
        let memory = &self.seat.memory;
        let slot = memory.slot(position);
        let free = memory.word(position, State::Free);
        // ORDERING: Relaxed: the exchange decides, and it acquires.
        let found = slot.word().load(Ordering::Relaxed);
        if found != free {
            return Err(found);
        }
        let writing = memory.word(position, State::Writing(self.seat.id));
        // ORDERING: Acquire (A2): that others are done with the slot; pairs with R2 in Consumer::finish, Seat::skip
        // and Kept::finish.
        // ORDERING: Relaxed on failure: somebody else has the slot, and nothing is read.
        slot.word().compare_exchange(free, writing, Ordering::Acquire, Ordering::Relaxed).map(|_| slot)
    }

    /// Claims the first slot that is free, from the tail on.
    #[inline(never)]
    fn search(&mut self) -> Result<Slot<T>, PushError<()>> {
        let mut backoff = Backoff::default();
        for _ in 0..self.seat.looks_per_call() {
            let word = match self.claim_at(self.tail) {
                Ok(slot) => return Ok(slot),
                Err(word) => word,
            };
            match self.judge(word) {
                Found::ClaimedUpTo(position) => {
                    // ORDERING: Relaxed: a place to begin to look at.
                    let hint = self.seat.memory.header().tail.position.load(Ordering::Relaxed);
                    self.tail = later(position, hint);
                    backoff.wait();
                }
                Found::Odd => {
                    let slot = self.seat.memory.slot(self.tail);
                    if Memory::confirm(&slot, word).is_ok() {
                        return Err(PushError::Corrupted(()));
                    }
                }
                Found::Stop(error) => {
                    if error == PushError::Busy(()) {
                        self.seat.note_obstacle(word);
                    }
                    return Err(error);
                }
            }
        }
        Err(PushError::Busy(()))
    }

    /// What the word of the slot at the tail says.
    fn judge(&self, word: u64) -> Found {
        let memory = &self.seat.memory;
        let (laps, state) = (memory.laps(), memory.state(word));
        if state == State::Closed {
            return Found::Stop(PushError::Closed(()));
        }
        if let Some(position) = laps.claimed_up_to(self.tail, word, state) {
            return Found::ClaimedUpTo(position);
        }
        match (laps.ahead(word, self.tail), state) {
            (-1, State::Full) => Found::Stop(PushError::Full(())),
            (-1, State::Writing(_) | State::Reading(_)) => Found::Stop(PushError::Busy(())),
            // Also a slot that became free just now: another look decides.
            _ => Found::Odd,
        }
    }

    /// Publishes the message in a claimed slot.
    #[inline(always)]
    pub(super) fn publish(&mut self, slot: &Slot<T>) {
        let full = self.seat.memory.word(slot.position, State::Full);
        // ORDERING: Release (R1): the message written above; pairs with A1 in Consumer::claim_at.
        slot.word().store(full, Ordering::Release);
        self.pass(slot.position);
        self.seat.memory.prefetch(slot.position.wrapping_add(8));
    }

    /// Goes on behind a slot that this handle had claimed.
    #[inline(always)]
    fn pass(&mut self, position: u64) {
        self.tail = position.wrapping_add(1);
        // ORDERING: Relaxed: a place to begin to look at; slots say what is true.
        self.seat.memory.header().tail.position.store(self.tail, Ordering::Relaxed);
    }
}

impl<T: Message, R: Region> Waitable for Producer<T, R> {
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

impl<T: Message, R: Region> Closable for Producer<T, R> {
    fn close_ring(&mut self) {
        self.seat.close();
    }
}

impl<T: Message, R: Region> fmt::Debug for Producer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Producer")
            .field("id", &self.seat.id)
            .field("tail", &self.tail)
            .field("depth", &self.seat.memory.depth())
            .finish_non_exhaustive()
    }
}
