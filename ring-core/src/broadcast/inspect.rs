//! What can be told of a ring of any messages, without joining it.

use super::layout::Layout;
use super::memory::{CLOSED, Header, Memory, SlotEnd};
use crate::header::Shape;
use crate::inspect::Progress;
use crate::region::check_room;
use crate::slots::SlotShape;
use crate::sync::Ordering;
use crate::{Error, Owner, Region};

impl Layout<u8> {
    /// The ring that the guards in `region` describe. Its messages are taken for bytes, and nobody looks at any.
    pub(crate) fn untyped(region: &impl Region, shape: &Shape) -> Result<Self, Error> {
        let slots = SlotShape::found_untyped::<SlotEnd>(shape, size_of::<Header>())?;
        let layout = Self::new(slots.depth)?.slot_bytes(slots.slot_bytes)?;
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    /// What the producer's owner word says, in a region that was found to be long enough.
    pub(crate) fn owner(&self, region: &impl Region) -> Owner {
        Memory::over(region, self).header().producer.owner.state()
    }

    /// How far the ring in `region` is, which was found to be long enough.
    pub(crate) fn progress(&self, region: &impl Region) -> Result<Progress, Error> {
        // ORDERING: Relaxed: joining acquires a word that is at least as late, and with it every message pushed before.
        let state = Memory::over(region, self).header().producer.state.load(Ordering::Relaxed);
        let (memory, joined) = Memory::join_as(region, || Ok(*self))?;
        let pushed = joined.tail.wrapping_sub(joined.start);
        Ok(Progress {
            tail: joined.tail,
            head: None,
            first: Some(joined.start),
            fill: pushed.min(memory.depth()),
            overwritten: pushed.saturating_sub(memory.depth()),
            closed: state & CLOSED != 0,
        })
    }
}
