//! How large a ring is, and how it is made.

use core::marker::PhantomData;

use super::header::{Header, table_bytes};
use super::memory::{Memory, SlotEnd};
use super::word::OWNER_MAX;
use crate::header::Shape;
use crate::region::check_room;
use crate::slots::SlotShape;
use crate::{AssumeAlive, Error, Liveness, Message, Region};

/// Participants unless said otherwise.
const PARTICIPANTS: u16 = 64;

/// What becomes of a message whose consumer was killed while it took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedPops {
    /// It is delivered again, to any consumer, perhaps after messages that were pushed later. Whether the killed
    /// consumer has acted on it nobody knows. A consumer that must act on each message at least once does so between
    /// [`try_peek`](super::Consumer::try_peek) and [`release`](super::ReadGrant::release): what `try_pop` has copied is
    /// freed already, and is lost with a consumer that dies before it acts.
    Redeliver,
    /// It is given up: no message is seen twice.
    Skip,
}

/// The shape of a ring of `T`: depth, slot size, participants, first position.
pub struct Layout<T> {
    pub(super) slots: SlotShape,
    pub(super) participants: u16,
    pub(super) unfinished: UnfinishedPops,
    pub(super) start: u64,
    marker: PhantomData<fn(T)>,
}

impl<T: Message> Layout<T> {
    /// A ring of `depth` slots, a power of two from 1 to 2^31.
    ///
    /// # Errors
    ///
    /// [`Error::BadDepth`] for another depth, [`Error::TooLarge`] when the address space cannot hold the ring.
    pub const fn new(depth: u64) -> Result<Self, Error> {
        match SlotShape::smallest::<T, SlotEnd>(depth, before(PARTICIPANTS)) {
            Ok(slots) => Ok(Self {
                slots,
                participants: PARTICIPANTS,
                unfinished: UnfinishedPops::Redeliver,
                start: 0,
                marker: PhantomData,
            }),
            Err(error) => Err(error),
        }
    }

    /// How many handles can be attached at a time, producers and consumers together, 1 to 1,023. Default: 64.
    ///
    /// Each takes 16 bytes. It is for as long as there is a ring in the region: making it anew keeps it.
    ///
    /// # Errors
    ///
    /// [`Error::BadParticipants`] for another number, [`Error::TooLarge`] as for `new`.
    pub const fn participants(mut self, participants: u16) -> Result<Self, Error> {
        if participants == 0 || participants > OWNER_MAX {
            return Err(Error::BadParticipants { participants });
        }
        self.participants = participants;
        let slot_bytes = self.slots.slot_bytes;
        self.slot_bytes(slot_bytes)
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
        match SlotShape::checked::<T, SlotEnd>(self.slots.depth, slot_bytes, self.slots_offset()) {
            Ok(slots) => self.slots = slots,
            Err(error) => return Err(error),
        }
        Ok(self)
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
        self.slots.depth
    }

    /// Bytes that the ring needs, header included.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.slots_offset() + self.slots.bytes()
    }

    /// Where the slots begin.
    pub(super) const fn slots_offset(&self) -> usize {
        before(self.participants)
    }

    /// Makes an empty ring in `region`, over whatever was there but a ring that is in use. Messages of a ring that nobody
    /// is attached to just now are lost: to go on with them, only attach.
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
        let (participants, unfinished) = Memory::<T>::options(region)?;
        let slots = SlotShape::found::<T, SlotEnd>(&shape, before(participants))?;
        let layout = Self { slots, participants, unfinished, start: 0, marker: PhantomData };
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    pub(super) fn shape(&self) -> Shape {
        self.slots.shape::<T>(super::KIND)
    }
}

/// Bytes before the slots.
pub(super) const fn before(participants: u16) -> usize {
    size_of::<Header>() + table_bytes(participants)
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
            .field("depth", &self.slots.depth)
            .field("slot_bytes", &self.slots.slot_bytes)
            .field("participants", &self.participants)
            .field("unfinished", &self.unfinished)
            .field("start", &self.start)
            .finish()
    }
}
