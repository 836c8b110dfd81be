//! What can be told of a ring without a role in it.

use super::layout::Layout;
use super::memory::Memory;
use crate::header::Shape;
use crate::inspect::Progress;
use crate::sync::Ordering;
use crate::sync::bytes::WORD_BYTES;
use crate::{Error, Region};

impl Layout {
    /// The ring that the guards in `region` describe.
    pub(crate) fn untyped(region: &impl Region, shape: &Shape) -> Result<Self, Error> {
        let (bytes, align) = (Self::ELEMENT_BYTES as u64, WORD_BYTES as u64);
        if shape.element_bytes != bytes {
            return Err(Error::WrongElementSize { found: shape.element_bytes, expected: bytes });
        }
        if shape.element_align != align {
            return Err(Error::WrongElementAlign { found: shape.element_align, expected: align });
        }
        Self::found(region, shape)
    }

    /// How far the ring in `region` is, which was found to be long enough.
    pub(crate) fn progress(&self, region: &impl Region) -> Result<Progress, Error> {
        let memory = Memory::over(region, self);
        // ORDERING: Acquire (A3): every message pushed before the close; pairs with R3 in Producer::close_ring.
        let closed = memory.header().producer.closed.load(Ordering::Acquire) != 0;
        let (tail, credit) = memory.find_tail()?;
        Progress::of_pair(tail, credit, closed, memory.most_used())
    }
}
