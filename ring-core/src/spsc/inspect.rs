//! What can be told of a ring of any messages, without a role in it.

use super::layout::Layout;
use super::memory::{Memory, SlotEnd};
use crate::header::Shape;
use crate::inspect::Progress;
use crate::pair::Header;
use crate::region::check_room;
use crate::slots::SlotShape;
use crate::sync::Ordering;
use crate::{Error, Region};

impl Layout<u8> {
    /// The ring that the guards in `region` describe. Its messages are taken for bytes, and nobody looks at any.
    pub(crate) fn untyped(region: &impl Region, shape: &Shape) -> Result<Self, Error> {
        let slots = SlotShape::found_untyped::<SlotEnd>(shape, size_of::<Header>())?;
        let layout = Self::new(slots.depth)?.slot_bytes(slots.slot_bytes)?;
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    /// How far the ring in `region` is, which was found to be long enough.
    pub(crate) fn progress(&self, region: &impl Region) -> Result<Progress, Error> {
        let memory = Memory::over(region, self);
        let header = memory.header();
        // ORDERING: Acquire (A3): every message pushed before the close; pairs with R3 in Producer::close_ring.
        let closed = header.producer.closed.load(Ordering::Acquire) != 0;
        // ORDERING: Acquire (A2): that the slots have come so far; pairs with R2 in Consumer::return_credit.
        let credit = || header.credit.credit.load(Ordering::Acquire);
        let tail = memory.find_tail(credit())?;
        Progress::of_pair(tail, credit(), closed, memory.depth())
    }
}
