//! How large a ring is, and how it is made.

use super::memory::Memory;
use crate::header::Shape;
use crate::pair::Header;
use crate::region::{LINE_BYTES, check_room};
use crate::sync::bytes::{WORD_BYTES, Words};
use crate::{AssumeAlive, Error, Liveness, Region};

/// The shape of a byte ring: its size, its first position.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub(super) ring_bytes: usize,
    pub(super) start: u64,
}

impl Layout {
    /// A ring of `ring_bytes` bytes, a power of two of 64 or more. The longest message has half of them less 8.
    ///
    /// # Errors
    ///
    /// [`Error::BadRingBytes`] for another size, [`Error::TooLarge`] when the address space cannot hold the ring.
    pub const fn new(ring_bytes: usize) -> Result<Self, Error> {
        if !ring_bytes.is_power_of_two() || ring_bytes < LINE_BYTES {
            return Err(Error::BadRingBytes { ring_bytes });
        }
        // Half the address space and more is too large; below, the header still fits beside the ring.
        if ring_bytes > isize::MAX as usize / 2 {
            return Err(Error::TooLarge);
        }
        Ok(Self { ring_bytes, start: 0 })
    }

    /// The position of the first message, of which the multiple of 8 below is taken. Default: 0. Of use to test what
    /// happens near the wrap at 2^64.
    #[must_use]
    pub const fn start(mut self, start: u64) -> Self {
        self.start = start & !(WORD_BYTES as u64 - 1);
        self
    }

    /// Bytes of the ring: headers of messages and padding included, its own header not.
    #[must_use]
    pub const fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// Bytes of the longest message.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.ring_bytes / 2 - WORD_BYTES
    }

    /// Bytes that the ring needs, header included.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        size_of::<Header>() + Words::region_bytes(self.ring_bytes)
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
        Self::found(region, &Memory::check(region)?)
    }

    /// What the guards in `region` say, checked as if the ring were to be made.
    pub(super) fn found(region: &impl Region, shape: &Shape) -> Result<Self, Error> {
        if shape.slot_bytes != WORD_BYTES as u64 {
            return Err(Error::WrongSlotSize { found: shape.slot_bytes });
        }
        let bad_depth = Error::WrongDepth { found: shape.depth };
        let ring_bytes = usize::try_from(shape.depth).map_err(|_| bad_depth)?;
        let layout = Self::new(ring_bytes).map_err(|error| match error {
            Error::BadRingBytes { .. } => bad_depth,
            other => other,
        })?;
        check_room(region, layout.bytes())?;
        Ok(layout)
    }

    pub(super) fn shape(&self) -> Shape {
        Shape {
            kind: super::KIND,
            element_bytes: Self::ELEMENT_BYTES as u64,
            element_align: WORD_BYTES as u64,
            slot_bytes: WORD_BYTES as u64,
            depth: self.ring_bytes as u64,
        }
    }

    /// Messages are rows of single bytes.
    pub(super) const ELEMENT_BYTES: usize = 1;
}
