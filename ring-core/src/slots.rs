//! How many slots a ring has, and of what size: alike in all rings whose messages have one size.

use crate::header::Shape;
use crate::message::assert_fits_a_slot;
use crate::region::{CACHE_BYTES, LINE_BYTES};
use crate::{Error, Message};

/// Largest depth.
const DEPTH_MAX: u64 = 1 << 31;

/// Depth and slot size, checked. In a slot there is the message, then padding, then the end, which each kind of ring
/// has of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotShape {
    pub(crate) depth: u64,
    pub(crate) slot_bytes: usize,
}

impl SlotShape {
    /// The smallest slots for `T` and the end `E`, behind `before` other bytes of the ring.
    pub(crate) const fn smallest<T: Message, E>(depth: u64, before: usize) -> Result<Self, Error> {
        Self::checked::<T, E>(depth, const { smallest_slot::<T, E>() }, before)
    }

    /// As `smallest`, with slots of another size.
    pub(crate) const fn checked<T: Message, E>(
        depth: u64,
        slot_bytes: usize,
        before: usize,
    ) -> Result<Self, Error> {
        let needed = const { smallest_slot::<T, E>() };
        if !depth.is_power_of_two() || depth > DEPTH_MAX {
            return Err(Error::BadDepth { depth });
        }
        if slot_bytes % LINE_BYTES != 0 || slot_bytes < needed {
            return Err(Error::BadSlotSize { slot_bytes, needed });
        }
        // In 128 bits nothing overflows: 2^31 slots of at most 2^64 bytes.
        if depth as u128 * slot_bytes as u128 + before as u128 > isize::MAX as u128 {
            return Err(Error::TooLarge);
        }
        Ok(Self { depth, slot_bytes })
    }

    /// What the guards of a ring say, checked as if it were to be made.
    pub(crate) fn found<T: Message, E>(shape: &Shape, before: usize) -> Result<Self, Error> {
        let bad_slot = Error::WrongSlotSize { found: shape.slot_bytes };
        let slot_bytes = usize::try_from(shape.slot_bytes).map_err(|_| bad_slot)?;
        Self::checked::<T, E>(shape.depth, slot_bytes, before).map_err(|error| match error {
            Error::BadDepth { depth } => Error::WrongDepth { found: depth },
            Error::BadSlotSize { .. } => bad_slot,
            other => other,
        })
    }

    /// As `found`, for who does not know the type of the messages: the slots are those of bytes, of which nobody is to
    /// look at any, and the guards must be those of a type that there can be.
    pub(crate) fn found_untyped<E>(shape: &Shape, before: usize) -> Result<Self, Error> {
        let slots = Self::found::<u8, E>(shape, before)?;
        let (bytes, align) = (shape.element_bytes, shape.element_align);
        if !align.is_power_of_two() || align > LINE_BYTES as u64 {
            return Err(Error::WrongElementAlign { found: align, expected: LINE_BYTES as u64 });
        }
        if bytes == 0 || bytes % align != 0 {
            let expected = bytes.saturating_add(1).checked_next_multiple_of(align).unwrap_or(align);
            return Err(Error::WrongElementSize { found: bytes, expected });
        }
        // The end and the slot are whole words, so what a message is padded to needs no look.
        if bytes > (slots.slot_bytes - size_of::<E>()) as u64 {
            return Err(Error::WrongSlotSize { found: shape.slot_bytes });
        }
        Ok(slots)
    }

    /// What the guards of a ring of `T` are to say.
    pub(crate) fn shape<T: Message>(self, kind: u64) -> Shape {
        Shape {
            kind,
            element_bytes: size_of::<T>() as u64,
            element_align: align_of::<T>() as u64,
            slot_bytes: self.slot_bytes as u64,
            depth: self.depth,
        }
    }

    /// Whether the slots do not fit a first-level cache: what helps a stream then hurts in a smaller ring.
    pub(crate) const fn is_deep(self) -> bool {
        self.bytes() >= CACHE_BYTES
    }

    /// Bytes of all slots.
    pub(crate) const fn bytes(self) -> usize {
        // `checked` has seen that the depth fits and that nothing overflows.
        #[expect(clippy::cast_possible_truncation, reason = "the depth is 2^31 at most")]
        let depth = self.depth as usize;
        depth * self.slot_bytes
    }
}

/// Whole cache lines that hold the message and the end.
const fn smallest_slot<T, E>() -> usize {
    assert_fits_a_slot::<T>();
    (size_of::<T>().next_multiple_of(8) + size_of::<E>()).next_multiple_of(LINE_BYTES)
}
