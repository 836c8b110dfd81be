//! How large a ring is, and how it is made.

use core::marker::PhantomData;

use super::memory::{Memory, SlotEnd};
use crate::header::Shape;
use crate::pair::Header;
use crate::region::check_room;
use crate::slots::SlotShape;
use crate::{AssumeAlive, Error, Liveness, Message, Region};

/// The shape of a ring of `T`: depth, slot size, first position.
pub struct Layout<T> {
    pub(super) slots: SlotShape,
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
        match SlotShape::smallest::<T, SlotEnd>(depth, size_of::<Header>()) {
            Ok(slots) => Ok(Self { slots, start: 0, marker: PhantomData }),
            Err(error) => Err(error),
        }
    }

    /// Slots of another size, a multiple of 64 bytes. Default: the smallest that holds the message.
    ///
    /// Slots of 128 bytes keep neighbours apart where the hardware fetches lines in pairs, at the price of
    /// twice the memory.
    ///
    /// # Errors
    ///
    /// [`Error::BadSlotSize`] when it is no multiple of 64 or too small, [`Error::TooLarge`] as for `new`.
    pub const fn slot_bytes(mut self, slot_bytes: usize) -> Result<Self, Error> {
        match SlotShape::checked::<T, SlotEnd>(self.slots.depth, slot_bytes, size_of::<Header>()) {
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
        size_of::<Header>() + self.slots.bytes()
    }

    /// Makes an empty ring in `region`, over whatever was there but a ring that is in use. Messages of a ring that nobody
    /// is attached to just now are lost: to go on with them, only attach.
    ///
    /// # Errors
    ///
    /// [`Error::RegionTooSmall`]; [`Error::Taken`] when there is a ring whose producer or consumer is attached;
    /// [`Error::NotReady`] when somebody else is making a ring here. A ring of another kind, layout version or
    /// architecture is refused with its error, since nobody can tell whether it is in use: zero the region first.
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
    ///
    /// # Errors
    ///
    /// Each guard has its own: see [`Error`].
    pub(super) fn read(region: &impl Region) -> Result<Self, Error> {
        let shape = Memory::<T>::check(region)?;
        let slots = SlotShape::found::<T, SlotEnd>(&shape, size_of::<Header>())?;
        let layout = Self { slots, start: 0, marker: PhantomData };
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    pub(super) fn shape(&self) -> Shape {
        self.slots.shape::<T>(super::KIND)
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
            .field("depth", &self.slots.depth)
            .field("slot_bytes", &self.slots.slot_bytes)
            .field("start", &self.start)
            .finish()
    }
}
