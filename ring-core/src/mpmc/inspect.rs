//! What can be told of a ring of any messages, without a place in it.

use super::header::Header;
use super::layout::Layout;
use super::memory::{Memory, SlotEnd};
use super::seat::later;
use super::word::{Laps, State};
use crate::header::Shape;
use crate::inspect::Progress;
use crate::region::check_room;
use crate::slots::SlotShape;
use crate::sync::{AtomicU64, Ordering};
use crate::{Error, Owner, Region};

/// What a slot's word says of a position: [`Laps::claimed_up_to`] or [`Laps::done_up_to`].
type UpTo = fn(Laps, u64, u64, State) -> Option<u64>;

impl Layout<u8> {
    /// The ring that the guards in `region` describe. Its messages are taken for bytes, and nobody looks at any.
    pub(crate) fn untyped(region: &impl Region, shape: &Shape) -> Result<Self, Error> {
        let (participants, _) = Memory::<u8>::options(region)?;
        let slots = SlotShape::found_untyped::<SlotEnd>(shape, super::layout::before(participants))?;
        let layout = Self::new(slots.depth)?.participants(participants)?.slot_bytes(slots.slot_bytes)?;
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    /// How many places the ring has.
    pub(crate) fn places(&self) -> u16 {
        self.participants
    }

    /// What the owner word of a place says, in a region that was found to be long enough. None: there is no such place.
    pub(crate) fn owner(&self, region: &impl Region, id: u16) -> Option<Owner> {
        let is_place = (1..=self.participants).contains(&id);
        is_place.then(|| Memory::over(region, self).entry(id).owner.state())
    }

    /// How far the ring in `region` is, which was found to be long enough.
    pub(crate) fn progress(&self, region: &impl Region) -> Result<Progress, Error> {
        let memory = Memory::over(region, self);
        let Header { state, tail, head, .. } = memory.header();
        // ORDERING: Relaxed: whoever has closed the ring does not wait for those who push.
        let closed = state.closed.load(Ordering::Relaxed) != 0;
        let tail = memory.search(&tail.position, Laps::claimed_up_to)?;
        let head = memory.search(&head.position, Laps::done_up_to)?;
        Ok(Progress {
            // What was popped since had been pushed.
            tail: later(tail, head),
            head: Some(head),
            first: None,
            fill: memory.count(),
            overwritten: 0,
            closed,
        })
    }
}

impl Memory<u8> {
    /// The first position from a hint on of which `up_to` does not say that it is past.
    ///
    /// Those that are past come first in a lap, but for messages that were put back, so a binary search finds their end.
    /// Where a word leads further it begins anew there; some times at most, since others work meanwhile.
    fn search(&self, hint: &AtomicU64, up_to: UpTo) -> Result<u64, Error> {
        // ORDERING: Relaxed: a place to begin to look at; slots say what is true.
        let mut from = hint.load(Ordering::Relaxed);
        for _ in 0..8 {
            match self.search_lap(from, up_to)? {
                end if end.wrapping_sub(from) < self.depth() => return Ok(end),
                further => from = further,
            }
        }
        Ok(from)
    }

    fn search_lap(&self, from: u64, up_to: UpTo) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.depth());
        while low < high {
            let middle = low + (high - low) / 2;
            let position = from.wrapping_add(middle);
            // ORDERING: Relaxed: no message is looked at.
            let word = self.slot(position).word().load(Ordering::Relaxed);
            let state = self.state(word);
            if state == State::Odd {
                return Err(Error::Corrupted);
            }
            match up_to(self.laps(), position, word, state) {
                Some(end) if end == position.wrapping_add(1) => low = middle + 1,
                Some(further) => return Ok(further),
                None => high = middle,
            }
        }
        Ok(from.wrapping_add(low))
    }
}
