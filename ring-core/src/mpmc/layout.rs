//! How large a ring is, and how it is made.

use core::marker::PhantomData;

use super::memory::{Header, Memory, SlotEnd, table_bytes};
use super::word::OWNER_MAX;
use crate::header::Shape;
use crate::message::assert_fits_a_slot;
use crate::region::{LINE_BYTES, check_room};
use crate::{AssumeAlive, Error, Liveness, Message, Region};

/// Largest depth.
const DEPTH_MAX: u64 = 1 << 31;

/// Participants unless said otherwise.
const PARTICIPANTS: u16 = 64;

/// What becomes of a message whose consumer was killed while it took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedPops {
    /// It is delivered again, to any consumer, perhaps after messages that were pushed later. Whether the killed
    /// consumer has acted on it nobody knows.
    Redeliver,
    /// It is given up: no message is seen twice.
    Skip,
}

/// The shape of a ring of `T`: depth, slot size, participants, first position.
pub struct Layout<T> {
    pub(super) depth: u64,
    pub(super) slot_bytes: usize,
    pub(super) participants: u16,
    pub(super) unfinished: UnfinishedPops,
    pub(super) start: u64,
    marker: PhantomData<fn(T)>,
}

impl<T: Message> Layout<T> {
    /// The smallest slot for `T`: whole cache lines that hold the message and the slot's word.
    const SLOT_BYTES: usize = {
        assert_fits_a_slot::<T>();
        (size_of::<T>().next_multiple_of(8) + size_of::<SlotEnd>()).next_multiple_of(LINE_BYTES)
    };

    /// A ring of `depth` slots, a power of two from 1 to 2^31.
    ///
    /// # Errors
    ///
    /// [`Error::BadDepth`] for another depth, [`Error::TooLarge`] when the address space cannot hold the ring.
    pub const fn new(depth: u64) -> Result<Self, Error> {
        Self {
            depth,
            slot_bytes: Self::SLOT_BYTES,
            participants: PARTICIPANTS,
            unfinished: UnfinishedPops::Redeliver,
            start: 0,
            marker: PhantomData,
        }
        .checked()
    }

    /// How many handles can be attached at a time, producers and consumers together, 1 to 1,023. Default: 64.
    ///
    /// Each takes 16 bytes. It is for as long as there is a ring in the region: making it anew keeps it.
    ///
    /// # Errors
    ///
    /// [`Error::BadParticipants`] for another number, [`Error::TooLarge`] as for `new`.
    pub const fn participants(mut self, participants: u16) -> Result<Self, Error> {
        self.participants = participants;
        self.checked()
    }

    /// What becomes of a message whose consumer was killed while it took it. Default: [`UnfinishedPops::Redeliver`].
    #[must_use]
    pub const fn unfinished_pops(mut self, unfinished: UnfinishedPops) -> Self {
        self.unfinished = unfinished;
        self
    }

    /// Slots of another size, a multiple of 64 bytes. Default: the smallest that holds the message.
    ///
    /// # Errors
    ///
    /// [`Error::BadSlotSize`] when it is no multiple of 64 or too small, [`Error::TooLarge`] as for `new`.
    pub const fn slot_bytes(mut self, slot_bytes: usize) -> Result<Self, Error> {
        self.slot_bytes = slot_bytes;
        self.checked()
    }

    /// The position of the first message. Default: 0. Of use to test what happens near the wrap at 2^64.
    #[must_use]
    pub const fn start(mut self, start: u64) -> Self {
        self.start = start;
        self
    }

    /// Number of slots.
    #[must_use]
    pub const fn depth(&self) -> u64 {
        self.depth
    }

    /// Bytes that the ring needs, header included.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        // `checked` has seen that the depth fits and that nothing overflows.
        #[expect(clippy::cast_possible_truncation, reason = "the depth is 2^31 at most")]
        let depth = self.depth as usize;
        self.slots_offset() + depth * self.slot_bytes
    }

    /// Where the slots begin.
    pub(super) const fn slots_offset(&self) -> usize {
        size_of::<Header>() + table_bytes(self.participants)
    }

    /// Makes an empty ring in `region`, over whatever was there but a ring that is in use.
    ///
    /// # Errors
    ///
    /// [`Error::RegionTooSmall`]; [`Error::Taken`] when there is a ring with a participant; [`Error::NotReady`] when
    /// somebody else is making a ring here. A ring of another kind, layout version or architecture, or for another
    /// number of participants, is refused with its error: zero the region first.
    pub fn init(&self, region: &impl Region) -> Result<(), Error> {
        self.init_over(region, &AssumeAlive)
    }

    /// As [`init`](Self::init), over a ring whose owners `liveness` knows to be gone, as is whoever was making it
    /// anew. A region that was made into a ring for the first time when its maker was killed stays
    /// [`Error::NotReady`]: zero it, or drop it.
    ///
    /// # Errors
    ///
    /// As `init`.
    pub fn init_over(&self, region: &impl Region, liveness: &impl Liveness) -> Result<(), Error> {
        Memory::create(region, self, liveness)
    }

    /// Checks the header in `region` and returns the layout that it describes.
    pub(super) fn read(region: &impl Region) -> Result<Self, Error> {
        let shape = Memory::<T>::check(region)?;
        let bad_slot = Error::WrongSlotSize { found: shape.slot_bytes };
        let (participants, unfinished) = Memory::<T>::options(region)?;
        let layout = Self {
            depth: shape.depth,
            slot_bytes: usize::try_from(shape.slot_bytes).map_err(|_| bad_slot)?,
            participants,
            unfinished,
            start: 0,
            marker: PhantomData,
        };
        let layout = layout.checked().map_err(|error| match error {
            Error::BadDepth { depth } => Error::WrongDepth { found: depth },
            Error::BadSlotSize { .. } => bad_slot,
            other => other,
        })?;
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    const fn checked(self) -> Result<Self, Error> {
        if !self.depth.is_power_of_two() || self.depth > DEPTH_MAX {
            return Err(Error::BadDepth { depth: self.depth });
        }
        if self.slot_bytes % LINE_BYTES != 0 || self.slot_bytes < Self::SLOT_BYTES {
            return Err(Error::BadSlotSize { slot_bytes: self.slot_bytes, needed: Self::SLOT_BYTES });
        }
        if self.participants == 0 || self.participants > OWNER_MAX {
            return Err(Error::BadParticipants { participants: self.participants });
        }
        // In 128 bits nothing overflows: 2^31 slots of at most 2^64 bytes.
        if self.depth as u128 * self.slot_bytes as u128 + self.slots_offset() as u128 > isize::MAX as u128 {
            return Err(Error::TooLarge);
        }
        Ok(self)
    }

    pub(super) fn shape(&self) -> Shape {
        Shape {
            kind: super::KIND,
            element_bytes: size_of::<T>() as u64,
            element_align: align_of::<T>() as u64,
            slot_bytes: self.slot_bytes as u64,
            depth: self.depth,
        }
    }
}

impl<T> Clone for Layout<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Layout<T> {}

impl<T> core::fmt::Debug for Layout<T> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("Layout")
            .field("depth", &self.depth)
            .field("slot_bytes", &self.slot_bytes)
            .field("participants", &self.participants)
            .field("unfinished", &self.unfinished)
            .field("start", &self.start)
            .finish()
    }
}
