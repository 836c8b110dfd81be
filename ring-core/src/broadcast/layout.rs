//! How large a ring is, and how it is made.

use core::marker::PhantomData;

use super::memory::{Header, Memory, SlotEnd};
use crate::header::Shape;
use crate::message::assert_fits_a_slot;
use crate::region::{LINE_BYTES, check_room};
use crate::{AssumeAlive, Error, Liveness, Message, Region};

/// Largest depth.
const DEPTH_MAX: u64 = 1 << 31;

/// The shape of a ring of `T`: depth, slot size, first position.
pub struct Layout<T> {
    pub(super) depth: u64,
    pub(super) slot_bytes: usize,
    pub(super) start: u64,
    marker: PhantomData<fn(T)>,
}

impl<T: Message> Layout<T> {
    /// The smallest slot for `T`: whole cache lines that hold the message and the word.
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
        Self::checked(depth, Self::SLOT_BYTES, 0)
    }

    /// Slots of another size, a multiple of 64 bytes. Default: the smallest that holds the message.
    ///
    /// Slots of 128 bytes keep neighbours apart where the hardware fetches lines in pairs, at the price of
    /// twice the memory.
    ///
    /// # Errors
    ///
    /// [`Error::BadSlotSize`] when it is no multiple of 64 or too small, [`Error::TooLarge`] as for `new`.
    pub const fn slot_bytes(self, slot_bytes: usize) -> Result<Self, Error> {
        Self::checked(self.depth, slot_bytes, self.start)
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
        size_of::<Header>() + depth * self.slot_bytes
    }

    /// Makes an empty ring in `region`, over whatever was there but a ring whose producer is attached.
    ///
    /// Nobody knows of consumers, so they cannot keep a ring from being made anew. One that had joined the former
    /// ring gets [`PopError::Corrupted`](super::PopError::Corrupted) when it next finds nothing or is overtaken.
    /// Until then it can take messages of the new ring for those of the old, mixed ones too: tell the consumers to
    /// leave first, or have a new producer [`take_over`](super::Producer::take_over), which disturbs nobody.
    ///
    /// # Errors
    ///
    /// [`Error::RegionTooSmall`]; [`Error::Taken`] when there is a ring whose producer is attached;
    /// [`Error::NotReady`] when somebody else is making a ring here. A ring of another kind, layout version or
    /// architecture is refused with its error, since nobody can tell whether it is in use: zero the region first.
    pub fn init(&self, region: &impl Region) -> Result<(), Error> {
        self.init_over(region, &AssumeAlive)
    }

    /// As [`init`](Self::init), over a ring whose producer `liveness` knows to be gone, as is whoever was making it
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
        let bad_slot = Error::WrongSlotSize { found: shape.slot_bytes };
        let slot_bytes = usize::try_from(shape.slot_bytes).map_err(|_| bad_slot)?;
        let layout = Self::checked(shape.depth, slot_bytes, 0).map_err(|error| match error {
            Error::BadDepth { depth } => Error::WrongDepth { found: depth },
            Error::BadSlotSize { .. } => bad_slot,
            other => other,
        })?;
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    const fn checked(depth: u64, slot_bytes: usize, start: u64) -> Result<Self, Error> {
        if !depth.is_power_of_two() || depth > DEPTH_MAX {
            return Err(Error::BadDepth { depth });
        }
        if slot_bytes % LINE_BYTES != 0 || slot_bytes < Self::SLOT_BYTES {
            return Err(Error::BadSlotSize { slot_bytes, needed: Self::SLOT_BYTES });
        }
        // In 128 bits nothing overflows: 2^31 slots of at most 2^64 bytes.
        if depth as u128 * slot_bytes as u128 + size_of::<Header>() as u128 > isize::MAX as u128 {
            return Err(Error::TooLarge);
        }
        Ok(Self { depth, slot_bytes, start, marker: PhantomData })
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
            .field("start", &self.start)
            .finish()
    }
}
