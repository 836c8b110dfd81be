//! The first line of every ring: what it is, for whoever attaches.
//!
//! All fields are words of 64 bits, so that the layout is the same on every architecture. Whoever attaches
//! reads each field once, into a private copy, and checks it before use.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R4 → A4 | the magic word, once all else is written | the magic word at attach | the ring as it was made |

#[cfg(all(test, feature = "alloc"))]
mod tests;

use crate::region::LINE_BYTES;
use crate::sync::{AtomicU64, Ordering};
use crate::{Error, Liveness, Role};

/// Says that a ring is ready: "ring-mem" in the bytes of a little-endian machine.
const MAGIC: u64 = u64::from_le_bytes(*b"ring-mem");

/// Says that a ring is being made: nobody else may begin to.
const BUSY: u64 = u64::from_le_bytes(*b"ring-new");

/// Raised whenever the meaning of a byte in the region changes.
const VERSION: u64 = 1;

/// Byte order, pointer width in bits and cache-line size, as whoever shares a ring must agree on them.
pub const ARCHITECTURE: u64 = {
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    order | (usize::BITS as u64) << 8 | (LINE_BYTES as u64) << 16
};

/// What the header says about the shape of a ring. Compared with what the attaching type expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) kind: u64,
    pub(crate) element_bytes: u64,
    pub(crate) element_align: u64,
    pub(crate) slot_bytes: u64,
    pub(crate) depth: u64,
}

/// The guards in the region.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Guard {
    magic: AtomicU64,
    version: AtomicU64,
    architecture: AtomicU64,
    kind: AtomicU64,
    element_bytes: AtomicU64,
    element_align: AtomicU64,
    slot_bytes: AtomicU64,
    depth: AtomicU64,
}

impl Guard {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            magic: zero(),
            version: zero(),
            architecture: zero(),
            kind: zero(),
            element_bytes: zero(),
            element_align: zero(),
            slot_bytes: zero(),
            depth: zero(),
        }
    }

    /// Reserves the region for making a ring in it, and says whether one was there before.
    pub(crate) fn begin(&self, liveness: &impl Liveness) -> Result<bool, Error> {
        // ORDERING: Relaxed: the exchange below decides, and it acquires.
        let found = self.magic.load(Ordering::Relaxed);
        if found == BUSY && !liveness.is_gone(Role::Maker, 0) {
            return Err(Error::NotReady);
        }
        // ORDERING: Acquire (A4): the former ring's owner words; pairs with R4 in Guard::publish.
        // ORDERING: Relaxed on failure: somebody else makes the ring, and nothing is read.
        match self.magic.compare_exchange(found, BUSY, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(found == MAGIC),
            Err(_) => Err(Error::NotReady),
        }
    }

    /// Says what the ring is. Between `begin` and `publish`.
    pub(crate) fn describe(&self, shape: &Shape) {
        for (word, value) in [
            (&self.version, VERSION),
            (&self.architecture, ARCHITECTURE),
            (&self.kind, shape.kind),
            (&self.element_bytes, shape.element_bytes),
            (&self.element_align, shape.element_align),
            (&self.slot_bytes, shape.slot_bytes),
            (&self.depth, shape.depth),
        ] {
            // ORDERING: Relaxed: the magic word publishes it (R4).
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Makes the ring visible to whoever attaches.
    pub(crate) fn publish(&self) {
        // ORDERING: Release (R4): the header and the slots; pairs with A4 in Guard::check and Guard::begin.
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// Compares what the words mean, rather than the shape of the ring, with what this program knows.
    pub(crate) fn check_kind(&self, kind: u64) -> Result<(), Error> {
        expect(&self.architecture, ARCHITECTURE, |found, expected| Error::WrongArchitecture {
            found,
            expected,
        })?;
        expect(&self.version, VERSION, |found, expected| Error::WrongVersion { found, expected })?;
        expect(&self.kind, kind, |found, expected| Error::WrongKind { found, expected })
    }

    /// Compares the guards with what the caller expects. Slot size and depth are as found: the ring checks them.
    pub(crate) fn check(
        &self,
        kind: u64,
        element_bytes: usize,
        element_align: usize,
    ) -> Result<Shape, Error> {
        // ORDERING: Acquire (A4): the ring as it was made; pairs with R4 in Guard::publish.
        match self.magic.load(Ordering::Acquire) {
            MAGIC => {}
            0 | BUSY => return Err(Error::NotReady),
            found if found == MAGIC.swap_bytes() => {
                let found = read(&self.architecture);
                return Err(Error::WrongArchitecture { found, expected: ARCHITECTURE });
            }
            found => return Err(Error::WrongMagic { found }),
        }
        self.check_kind(kind)?;
        expect(&self.element_bytes, element_bytes as u64, |found, expected| Error::WrongElementSize {
            found,
            expected,
        })?;
        expect(&self.element_align, element_align as u64, |found, expected| Error::WrongElementAlign {
            found,
            expected,
        })?;
        Ok(Shape {
            kind,
            element_bytes: element_bytes as u64,
            element_align: element_align as u64,
            slot_bytes: read(&self.slot_bytes),
            depth: read(&self.depth),
        })
    }
}

fn expect(word: &AtomicU64, expected: u64, error: impl FnOnce(u64, u64) -> Error) -> Result<(), Error> {
    match read(word) {
        found if found == expected => Ok(()),
        found => Err(error(found, expected)),
    }
}

fn read(word: &AtomicU64) -> u64 {
    // ORDERING: Relaxed: the magic word was read before (A4).
    word.load(Ordering::Relaxed)
}

#[cfg(not(loom))]
const _: () = {
    static_assertions::const_assert_eq!(size_of::<Guard>(), 128);
    assert!(memoffset::offset_of!(Guard, magic) == 0);
    assert!(memoffset::offset_of!(Guard, version) == 8);
    assert!(memoffset::offset_of!(Guard, architecture) == 16);
    assert!(memoffset::offset_of!(Guard, kind) == 24);
    assert!(memoffset::offset_of!(Guard, element_bytes) == 32);
    assert!(memoffset::offset_of!(Guard, element_align) == 40);
    assert!(memoffset::offset_of!(Guard, slot_bytes) == 48);
    assert!(memoffset::offset_of!(Guard, depth) == 56);
};
