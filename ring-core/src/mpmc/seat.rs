//! A participant's place in the ring: what both kinds of handle are over.

use super::keeper::Keeper;
use super::memory::{Memory, Slot};
use super::word::State;
use crate::sync::{Ordering, spin_loop};
use crate::{AssumeAlive, Error, Liveness, Message, Owner, Region, Role};

/// Looks at the same claimed slot before its owner's life is asked about: a question can cost a system call.
const LOOKS: u32 = 4;

/// A place in the ring, and the region that it is in.
pub(super) struct Seat<T: Message, R: Region> {
    pub(super) memory: Memory<T>,
    pub(super) id: u16,
    /// What the owner word holds while this handle has the place.
    owner: u64,
    /// Position of a slot that is lent out in a grant, or was leaked with one.
    pub(super) lent: Option<u64>,
    /// The claimed slot that was in the way last, and how often in a row.
    obstacle: u64,
    looks: u32,
    /// Keeps the memory. Last, so that it goes last.
    pub(super) region: R,
}

impl<T: Message, R: Region> Seat<T, R> {
    /// Takes any free place.
    pub(super) fn any_free(region: R) -> Result<Self, Error> {
        let (memory, id, owner) = Self::claim_any(&region, &AssumeAlive)?;
        Ok(Self::new(memory, id, owner, region))
    }

    /// Takes a free place or else one whose owner is gone, and clears up after all who are gone.
    pub(super) fn any(region: R, liveness: &impl Liveness) -> Result<Self, Error> {
        let claimed = match Self::claim_any(&region, &AssumeAlive) {
            Err(Error::TooManyParticipants { .. }) => Self::claim_any(&region, liveness),
            other => other,
        };
        let (memory, id, owner) = claimed?;
        let seat = Self::new(memory, id, owner, region);
        seat.recover(liveness)?;
        Ok(seat)
    }

    /// Takes a place that is free or whose owner is gone, and clears up after all who are gone.
    pub(super) fn at(region: R, id: u16, liveness: &impl Liveness) -> Result<Self, Error> {
        let (memory, id, owner) = Self::claim(&region, id, liveness)?;
        let seat = Self::new(memory, id, owner, region);
        seat.recover(liveness)?;
        Ok(seat)
    }

    pub(super) fn new(memory: Memory<T>, id: u16, owner: u64, region: R) -> Self {
        Self { memory, id, owner, lent: None, obstacle: 0, looks: 0, region }
    }

    fn claim_any(region: &R, liveness: &impl Liveness) -> Result<(Memory<T>, u16, u64), Error> {
        let participants = Memory::<T>::participants_in(region)?;
        for id in 1..=participants {
            match Self::claim(region, id, liveness) {
                Err(Error::Taken { .. }) => {}
                other => return other,
            }
        }
        Err(Error::TooManyParticipants { participants })
    }

    /// Takes a place and clears up what its last owner left.
    pub(super) fn claim(
        region: &R,
        id: u16,
        liveness: &impl Liveness,
    ) -> Result<(Memory<T>, u16, u64), Error> {
        let (memory, owner) = Memory::attach(region, id, liveness)?;
        let Some(kept) = Keeper::new(id, owner).keep(&memory, id, liveness) else {
            // Somebody clears up here and has not come to the end: to work now could undo what it does.
            memory.entry(id).owner.release(owner);
            return Err(Error::Taken { role: Role::Participant(id) });
        };
        kept.sweep();
        kept.end();
        // Also where nothing was put back: the last owner may have died before it could say that it had.
        memory.announce();
        Ok((memory, id, owner))
    }

    /// Clears up after all who are gone.
    pub(super) fn recover(&self, liveness: &impl Liveness) -> Result<u64, Error> {
        self.memory.recover_all(self.id, self.keeper(), liveness)
    }

    /// What the owner word of a place says.
    pub(super) fn participant(&self, id: u16) -> Option<Owner> {
        (1..=self.memory.participants()).contains(&id).then(|| self.memory.entry(id).owner.state())
    }

    pub(super) fn keeper(&self) -> Keeper {
        Keeper::new(self.id, self.owner)
    }

    /// Notes that a claimed slot is in the way.
    pub(super) fn note_obstacle(&mut self, word: u64) {
        self.looks = if self.obstacle == word { self.looks.saturating_add(1) } else { 1 };
        self.obstacle = word;
    }

    /// Looks that it takes at most until a call ends, about as many as there are slots: others can always be faster.
    pub(super) fn looks_per_call(&self) -> u64 {
        self.memory.depth() + 8
    }

    /// Clears up after the owner of the slot that was in the way, where it was there some times and its owner is gone.
    /// Returns whether the slot is out of the way.
    pub(super) fn clear_obstacle(&mut self, liveness: &impl Liveness) -> bool {
        let (State::Reading(id) | State::Writing(id)) = self.memory.state(self.obstacle) else {
            return false;
        };
        if self.looks < LOOKS || id == self.id {
            return false;
        }
        self.looks = 0;
        self.memory.recover(id, self.keeper(), liveness) > 0
    }

    /// Ends what a leaked grant left: a reservation publishes nothing, a message that was looked at stays.
    #[cold]
    pub(super) fn take_back(&mut self) {
        let Some(position) = self.lent.take() else { return };
        let slot = self.memory.slot(position);
        // ORDERING: Relaxed: this handle wrote it.
        match State::of(slot.word().load(Ordering::Relaxed)) {
            State::Writing(_) => self.skip(&slot),
            State::Reading(_) => self.put_back(&slot),
            _ => {}
        }
    }

    /// Gives a claimed slot up, for this lap.
    pub(super) fn skip(&self, slot: &Slot<T>) {
        let free = self.memory.word(slot.position.wrapping_add(self.memory.depth()), State::Free);
        // ORDERING: Release (R2): that this side is done with the slot; pairs with A2 in Producer::claim_at.
        slot.word().store(free, Ordering::Release);
    }

    /// Puts a message back that this side has claimed.
    pub(super) fn put_back(&self, slot: &Slot<T>) {
        let full = self.memory.word(slot.position, State::Full);
        // ORDERING: Release (R1): the message, and that this side has read it; pairs with A1 in Consumer::claim_at.
        slot.word().store(full, Ordering::Release);
        self.memory.announce();
    }

    /// Closes the ring for all.
    pub(super) fn close(&self) {
        // ORDERING: Relaxed: the consumer that finds the end seals it by an exchange, which sees what was pushed.
        self.memory.header().state.closed.store(1, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn is_closed(&self) -> bool {
        // ORDERING: Relaxed: as in `close`.
        self.memory.header().state.closed.load(Ordering::Relaxed) != 0
    }
}

impl<T: Message, R: Region> Drop for Seat<T, R> {
    fn drop(&mut self) {
        self.take_back();
        self.memory.entry(self.id).owner.release(self.owner);
    }
}

/// Pauses that grow with each exchange that failed, so that contenders get out of each other's way.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Pauses grow up to 2 to this.
    const LIMIT: u32 = 6;

    pub(super) fn wait(&mut self) {
        for _ in 0..1 << self.failures {
            spin_loop();
        }
        self.failures = (self.failures + 1).min(Self::LIMIT);
    }
}

/// The later of two positions.
pub(super) fn later(one: u64, other: u64) -> u64 {
    if other.wrapping_sub(one) as i64 > 0 { other } else { one }
}
