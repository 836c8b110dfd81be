//! How what a dead participant left behind is cleared up.
//!
//! A slot's word names who claimed it, but not in which incarnation: after an unfinished pop was put back, a successor
//! under the same number can bring about the very word that its predecessor left. So whoever clears up after a
//! participant is its *keeper* meanwhile, one at a time: it holds the participant's keeper word, and only then looks
//! whether the participant is gone. A successor begins to work only once it has been keeper of its own place and has
//! found every slot there done with. The keeper word names the keeper and its incarnation, so that a dead keeper can
//! be replaced like a dead owner.
//!
//! Each step is one atomic operation, so a keeper that is killed leaves a ring that its successor can go on with.

use super::layout::UnfinishedPops;
use super::memory::Memory;
use super::word::{OWNER_MAX, State};
use crate::sync::Ordering;
use crate::{Error, Liveness, Message, Owner, Role};

/// Who clears up, as the keeper word has it: `incarnation << 10 | id`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keeper(u64);

/// Bits of a keeper word that are the id.
const ID_BITS: u32 = 10;

impl Keeper {
    /// For the participant whose owner word is `owner`.
    pub(super) fn new(id: u16, owner: u64) -> Self {
        Self(Owner::of(owner).incarnation << ID_BITS | u64::from(id))
    }

    /// Becomes the keeper of `id`, unless somebody else is.
    pub(super) fn keep<'a, T: Message>(
        self,
        memory: &'a Memory<T>,
        id: u16,
        liveness: &impl Liveness,
    ) -> Option<Kept<'a, T>> {
        let word = &memory.entry(id).keeper;
        // ORDERING: Relaxed: the exchange below decides, and it acquires.
        let found = word.load(Ordering::Relaxed);
        if found != 0 && !Self(found).is_gone(memory, liveness) {
            return None;
        }
        // ORDERING: Acquire (A7): what former keepers did, and the owner word as they left it; pairs with R7 in
        // Kept::end.
        // ORDERING: Relaxed on failure: somebody else is the keeper, and nothing is read.
        word.compare_exchange(found, self.0, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Kept { memory, id, keeper: self })
    }

    fn is_gone<T: Message>(self, memory: &Memory<T>, liveness: &impl Liveness) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "masked")]
        let id = self.0 as u16 & OWNER_MAX;
        if id == 0 || id > memory.participants() {
            // Nobody writes this.
            return true;
        }
        let owner = memory.entry(id).owner.state();
        // What is seen may be older than the keeper word, and then it says nothing.
        let later = owner.incarnation.wrapping_sub(self.0 >> ID_BITS) << Owner::UNUSED_BITS;
        match later as i64 {
            0 => !owner.held || liveness.is_gone(memory.start(), Role::Participant(id), owner),
            later => later > 0,
        }
    }
}

/// The place of a participant that nobody else clears up.
#[derive(Debug)]
pub(super) struct Kept<'a, T> {
    memory: &'a Memory<T>,
    id: u16,
    keeper: Keeper,
}

impl<T: Message> Kept<'_, T> {
    /// The place's owner, where it left without clearing up or is known to be gone.
    pub(super) fn left_by(&self, liveness: &impl Liveness) -> Option<Owner> {
        let owner = self.memory.entry(self.id).owner.state();
        let is_gone = |owner: Owner| liveness.is_gone(self.memory.start(), Role::Participant(self.id), owner);
        (!owner.held || is_gone(owner)).then_some(owner)
    }

    /// Finishes every slot that the owner had claimed, and returns how many.
    pub(super) fn sweep(&self) -> u64 {
        (0..self.memory.depth()).map(|index| u64::from(self.finish(index))).sum()
    }

    /// Finishes a slot if the owner had claimed it.
    pub(super) fn finish(&self, index: u64) -> bool {
        let slot = self.memory.slot(index);
        // ORDERING: Relaxed: the exchange below decides.
        let word = slot.word().load(Ordering::Relaxed);
        let position = self.memory.laps().position(word, index);
        let lap_later = position.wrapping_add(self.memory.depth());
        match (State::of(word), self.memory.unfinished()) {
            (State::Reading(id), UnfinishedPops::Redeliver) if id == self.id => {
                let full = self.memory.word(position, State::Full);
                // ORDERING: Release (R1): the message, and that the dead have read it; pairs with A1 in Consumer::claim_at.
                // ORDERING: Relaxed on failure: only a broken peer changes it.
                slot.word().compare_exchange(word, full, Ordering::Release, Ordering::Relaxed).is_ok()
            }
            (State::Reading(id) | State::Writing(id), _) if id == self.id => {
                let free = self.memory.word(lap_later, State::Free);
                // ORDERING: Release (R2): that the dead are done with the slot; pairs with A2 in Producer::claim_at.
                // ORDERING: Relaxed on failure: only a broken peer changes it.
                slot.word().compare_exchange(word, free, Ordering::Release, Ordering::Relaxed).is_ok()
            }
            _ => false,
        }
    }

    /// Frees the place of the owner that is gone.
    pub(super) fn free(&self, left_by: Owner) {
        if left_by.held {
            self.memory.entry(self.id).owner.release(left_by.word());
        }
    }

    /// Lets others be the keeper.
    pub(super) fn end(self) {
        let keeper = &self.memory.entry(self.id).keeper;
        // ORDERING: Release (R7): the slots as they are now, and the owner word that this keeper saw or wrote; pairs
        // with A7 in Keeper::keep.
        // ORDERING: Relaxed on failure: a broken peer took it, and nothing is handed over.
        let _ = keeper.compare_exchange(self.keeper.0, 0, Ordering::Release, Ordering::Relaxed);
    }
}

impl<T: Message> Memory<T> {
    /// Clears up after `id`, if its owner left and nobody else does, and returns how many slots were finished.
    pub(super) fn recover(&self, id: u16, me: Keeper, liveness: &impl Liveness) -> u64 {
        // Both are looked at before the keeper word is written: most participants live.
        let owner = self.entry(id).owner.state();
        if owner.held && !liveness.is_gone(self.start(), Role::Participant(id), owner) {
            return 0;
        }
        let Some(kept) = me.keep(self, id, liveness) else { return 0 };
        let mut finished = 0;
        if let Some(owner) = kept.left_by(liveness) {
            finished = kept.sweep();
            self.announce();
            kept.free(owner);
        }
        kept.end();
        finished
    }

    /// Clears up after all participants but `me`, and returns how many slots were finished.
    pub(super) fn recover_all(&self, my_id: u16, me: Keeper, liveness: &impl Liveness) -> Result<u64, Error> {
        let mut named = [0_u64; 1 + OWNER_MAX as usize / 64];
        for index in 0..self.depth() {
            // ORDERING: Relaxed: whoever finishes a slot looks again.
            let word = self.slot(index).word().load(Ordering::Relaxed);
            match self.state(word) {
                State::Reading(id) | State::Writing(id) => named[usize::from(id / 64)] |= 1 << (id % 64),
                State::Odd => return Err(Error::Corrupted),
                State::Free | State::Full | State::Closed => {}
            }
        }
        let mut finished = 0;
        for id in (1..=self.participants()).filter(|&id| id != my_id) {
            let is_named = named[usize::from(id / 64)] >> (id % 64) & 1 == 1;
            if is_named || self.entry(id).owner.state().held {
                finished += self.recover(id, me, liveness);
            }
        }
        Ok(finished)
    }

    /// Has consumers look behind them: a message may have been put back there.
    pub(super) fn announce(&self) {
        // ORDERING: Release (R3): the words of the slots that were put back; pairs with A3 in Consumer::look_behind
        // and Consumer::is_any_behind.
        self.header().state.put_back.fetch_add(1, Ordering::Release);
    }
}
