//! The first lines of every ring: what it is, for whoever attaches, and the words of those who wait.
//!
//! All fields are words of 64 bits, so that the layout is the same on every architecture. Whoever attaches
//! reads each field once, into a private copy, and checks it before use.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R4 → A4 | the magic word, once all else is written | the magic word at attach | the ring as it was made |

#[cfg(all(test, feature = "alloc"))]
mod tests;

use crate::Error;
use crate::region::LINE_BYTES;
use crate::sync::{AtomicU64, Ordering, WaitWords};

/// Says that a ring is ready: "ring-mem" in the bytes of a little-endian machine.
const MAGIC: u64 = u64::from_le_bytes(*b"ring-mem");

/// Says that a ring is being made where none was: the owner words mean nothing yet.
const MAKING: u64 = u64::from_le_bytes(*b"ring-new");

/// Says that a ring is being made anew: its maker holds both roles.
const REMAKING: u64 = u64::from_le_bytes(*b"ring-old");

/// Raised whenever the meaning of a byte in the region changes.
const VERSION: u64 = 2;

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
    /// Of those who wait, and who wake them. Not of the ring, which leaves them alone also when it is made anew:
    /// whatever they hold, a sleeper is woken once too often at worst.
    pub(crate) waiting: WaitWords,
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
            waiting: WaitWords::default(),
        }
    }

    /// Reserves a region that holds no ring for making one, and says whether it did. False: there is one, and who
    /// holds its roles may make it anew.
    pub(crate) fn begin(&self) -> Result<bool, Error> {
        // ORDERING: Acquire (A4): the kind and the owner words of the ring; pairs with R4 in Guard::publish and
        // Guard::begin_anew.
        let found = self.magic.load(Ordering::Acquire);
        match found {
            MAGIC | REMAKING => return Ok(false),
            MAKING => return Err(Error::NotReady),
            found => self.check_byte_order(found)?,
        }
        // ORDERING: Relaxed: there is no ring, so nothing that somebody wrote is used.
        // ORDERING: Relaxed on failure: somebody else makes the ring, and nothing is read.
        match self.magic.compare_exchange(found, MAKING, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(true),
            Err(_) => Err(Error::NotReady),
        }
    }

    /// Takes a ring back, whose roles the caller holds: should it be killed before `publish`, its successor sees
    /// that the ring is not whole.
    pub(crate) fn begin_anew(&self) {
        // ORDERING: Release (R4): the kind, which stays, for whoever else would make the ring anew and reads it before
        // it asks for a role; pairs with A4 in Guard::begin, and in Guard::check_magic, which uses nothing of it.
        self.magic.store(REMAKING, Ordering::Release);
    }

    /// Says what the ring is. Between `begin` or `begin_anew` and `publish`.
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
        // ORDERING: Release (R4): the header and the slots; pairs with A4 in Guard::check_magic and Guard::begin.
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// Whether a ring is ready whose words mean what those of `kind` do in this program.
    pub(crate) fn check_ready(&self, kind: u64) -> Result<(), Error> {
        self.check_magic()?;
        self.check_kind(kind)
    }

    /// Whether a ring is ready.
    fn check_magic(&self) -> Result<(), Error> {
        // ORDERING: Acquire (A4): the ring as it was made; pairs with R4 in Guard::publish, and in Guard::begin_anew, of
        // which it uses nothing.
        match self.magic.load(Ordering::Acquire) {
            MAGIC => Ok(()),
            0 | MAKING | REMAKING => Err(Error::NotReady),
            found => {
                self.check_byte_order(found)?;
                Err(Error::WrongMagic { found })
            }
        }
    }

    /// Refuses a ring, whole or not, of a machine with the other byte order.
    fn check_byte_order(&self, magic: u64) -> Result<(), Error> {
        if [MAGIC, MAKING, REMAKING].contains(&magic.swap_bytes()) {
            let found = read(&self.architecture).swap_bytes();
            return Err(Error::WrongArchitecture { found, expected: ARCHITECTURE });
        }
        Ok(())
    }

    /// Whether the words of the ring mean what those of `kind` do in this program.
    pub(crate) fn check_kind(&self, kind: u64) -> Result<(), Error> {
        self.check_version()?;
        expect(&self.kind, kind, |found, expected| Error::WrongKind { found, expected })
    }

    /// Whether the words before the kind mean what they do in this program, and so do those of any kind that it knows.
    fn check_version(&self) -> Result<(), Error> {
        expect(&self.architecture, ARCHITECTURE, |found, expected| Error::WrongArchitecture {
            found,
            expected,
        })?;
        expect(&self.version, VERSION, |found, expected| Error::WrongVersion { found, expected })
    }

    /// What the ring in the region is, whatever it is, for who takes no role. Unchecked but for magic word, architecture
    /// and version. Without a role nothing keeps others from making the ring anew meanwhile, so it may be a mixture of two
    /// shapes; another look then finds another one.
    pub(crate) fn look(&self) -> Result<Shape, Error> {
        self.check_magic()?;
        self.check_version()?;
        Ok(Shape {
            kind: read(&self.kind),
            element_bytes: read(&self.element_bytes),
            element_align: read(&self.element_align),
            slot_bytes: read(&self.slot_bytes),
            depth: read(&self.depth),
        })
    }

    /// Compares all guards with what the caller expects. Slot size and depth are as found: the ring checks them.
    /// The caller holds a role, so that nobody makes the ring anew meanwhile.
    pub(crate) fn check(
        &self,
        kind: u64,
        element_bytes: usize,
        element_align: usize,
    ) -> Result<Shape, Error> {
        self.check_ready(kind)?;
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
    assert!(memoffset::offset_of!(Guard, waiting) == 64);
};
