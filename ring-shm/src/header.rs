//! The first bytes of every segment: what it is, for whoever attaches.
//!
//! All fields are words of 64 bits in the creator's byte order. The first four keep their place in every
//! version. Whoever attaches reads each field once, into a private copy, and checks it before use.
//!
//! | offset | field | content |
//! |---|---|---|
//! | 0 | magic | "ring-shm" on a little-endian machine, before the file has its name |
//! | 8 | ready | "is-ready" once the segment is published; anything else before |
//! | 16 | version | of this layout: 1 |
//! | 24 | architecture | `ring_core::ARCHITECTURE` |
//! | 32 | data offset | where the data begin: 128 |
//! | 40 | data bytes | how long they are |
//! | 48 | page bytes | size of the pages behind the segment |
//! | 56 | created | when it was made: nanoseconds since 1970; told, not checked |
//! | 64–127 | reserved | 0, not read |
//!
//! The file is exactly header and data, rounded up to whole pages, all of them with memory behind them.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | the ready word at publish | the ready word at attach | the header, and the data as initialised |

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use memoffset::offset_of;
use ring_core::{ARCHITECTURE, REGION_ALIGN};
use static_assertions::{const_assert, const_assert_eq};

use crate::{Descriptor, Errno, Error, sys};

const MAGIC: u64 = u64::from_le_bytes(*b"ring-shm");
const READY: u64 = u64::from_le_bytes(*b"is-ready");
const VERSION: u64 = 1;

/// Where the data begin.
pub(crate) const DATA_OFFSET: usize = size_of::<Header>();

/// The header as it lies in the segment. Everything is atomic, since a peer may write it at any time.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    magic: AtomicU64,
    ready: AtomicU64,
    version: AtomicU64,
    architecture: AtomicU64,
    data_offset: AtomicU64,
    data_bytes: AtomicU64,
    page_bytes: AtomicU64,
    created: AtomicU64,
    _reserved: [AtomicU64; 8],
}

const_assert_eq!(size_of::<Header>(), 128);
const_assert_eq!(align_of::<Header>(), 8);
const_assert!(DATA_OFFSET % REGION_ALIGN == 0);
const_assert_eq!(offset_of!(Header, magic), 0);
const_assert_eq!(offset_of!(Header, ready), 8);
const_assert_eq!(offset_of!(Header, version), 16);
const_assert_eq!(offset_of!(Header, architecture), 24);
const_assert_eq!(offset_of!(Header, data_offset), 32);
const_assert_eq!(offset_of!(Header, data_bytes), 40);
const_assert_eq!(offset_of!(Header, page_bytes), 48);
const_assert_eq!(offset_of!(Header, created), 56);
const_assert_eq!(offset_of!(Header, _reserved), 64);

/// Lengths that fit together: a private, checked copy of what the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) data_bytes: usize,
    pub(crate) page_bytes: usize,
    /// Header and data in whole pages.
    pub(crate) file_bytes: usize,
}

impl Layout {
    /// The layout for so many bytes of data, unless no mapping can be that long.
    pub(crate) fn new(data_bytes: usize, page_bytes: usize) -> Option<Self> {
        let file_bytes = DATA_OFFSET.checked_add(data_bytes)?.checked_next_multiple_of(page_bytes)?;
        isize::try_from(file_bytes).ok()?;
        Some(Self { data_bytes, page_bytes, file_bytes })
    }
}

impl Header {
    /// A private copy of what a file begins with. It is read by a call: to touch a mapping could allocate, and kill this
    /// process where that fails.
    pub(crate) fn of_file(descriptor: &Descriptor) -> Result<Self, Errno> {
        let mut bytes = [0; DATA_OFFSET];
        sys::read_start(descriptor, &mut bytes)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// A private copy, as it was read from the file.
    fn from_bytes(bytes: &[u8; DATA_OFFSET]) -> Self {
        let mut words = bytes.chunks_exact(8).map(|bytes| {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            AtomicU64::new(u64::from_ne_bytes(word))
        });
        let mut next = || words.next().unwrap_or_default();
        Self {
            magic: next(),
            ready: next(),
            version: next(),
            architecture: next(),
            data_offset: next(),
            data_bytes: next(),
            page_bytes: next(),
            created: next(),
            _reserved: Default::default(),
        }
    }

    /// Whether the bytes are those of a segment, published or not; or else the first word.
    pub(crate) fn check_magic(&self) -> Result<(), u64> {
        // ORDERING: Relaxed: tells a foreign file from a segment; nothing else is read because of it.
        match self.magic.load(Ordering::Relaxed) {
            found if found == MAGIC || found == MAGIC.swap_bytes() => Ok(()),
            found => Err(found),
        }
    }

    /// Whether a private copy says that the segment was published.
    pub(crate) fn is_published(&self) -> bool {
        // ORDERING: Relaxed: of a private copy.
        let ready = self.ready.load(Ordering::Relaxed);
        ready == READY || ready == READY.swap_bytes()
    }

    /// When the segment was made, since 1970, as a private copy says it. None: in another byte order, or not told.
    pub(crate) fn created(&self) -> Option<Duration> {
        // ORDERING: Relaxed: of a private copy.
        let (magic, created) = (self.magic.load(Ordering::Relaxed), self.created.load(Ordering::Relaxed));
        (magic == MAGIC && created != 0).then_some(Duration::from_nanos(created))
    }

    /// Describes the segment. Only its creator calls this, before `publish`.
    pub(crate) fn write(&self, layout: &Layout) {
        let created = u64::try_from(sys::since_1970().as_nanos()).unwrap_or(0);
        let words = [
            (&self.version, VERSION),
            (&self.architecture, ARCHITECTURE),
            (&self.data_offset, DATA_OFFSET as u64),
            (&self.data_bytes, layout.data_bytes as u64),
            (&self.page_bytes, layout.page_bytes as u64),
            (&self.created, created),
            (&self.magic, MAGIC),
        ];
        for (word, value) in words {
            // ORDERING: Relaxed: the ready word publishes it (R1).
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Says that the segment is complete.
    pub(crate) fn publish(&self) {
        // ORDERING: Release (R1): publishes header and data; pairs with A1 in Header::read.
        self.ready.store(READY, Ordering::Release);
    }

    /// Reads and checks the header of a mapped file of `file_bytes` in pages of `page_bytes`; `None` if its
    /// creator is not done.
    pub(crate) fn read(&self, file_bytes: usize, page_bytes: usize) -> Result<Option<Layout>, Error> {
        // ORDERING: Relaxed: tells a foreign file from a segment; nothing else is read because of it.
        match self.magic.load(Ordering::Relaxed) {
            MAGIC => {}
            found if found == MAGIC.swap_bytes() => {
                let found = read(&self.architecture).swap_bytes();
                return Err(Error::WrongArchitecture { found, expected: ARCHITECTURE });
            }
            found => return Err(Error::WrongMagic { found }),
        }
        // ORDERING: Acquire (A1): the header and the data; pairs with R1 in Header::publish.
        if self.ready.load(Ordering::Acquire) != READY {
            return Ok(None);
        }
        match read(&self.version) {
            VERSION => {}
            found => return Err(Error::WrongVersion { found, expected: VERSION }),
        }
        match read(&self.architecture) {
            ARCHITECTURE => {}
            found => return Err(Error::WrongArchitecture { found, expected: ARCHITECTURE }),
        }
        match read(&self.data_offset) {
            found if found == DATA_OFFSET as u64 => {}
            found => return Err(Error::Corrupted { field: "data offset", found }),
        }
        match read(&self.page_bytes) {
            found if found == page_bytes as u64 => {}
            found => return Err(Error::Corrupted { field: "page size", found }),
        }
        check_lengths(read(&self.data_bytes), file_bytes, page_bytes).map(Some)
    }
}

/// Holds the length that the header claims against the length that the kernel tells.
fn check_lengths(claimed_bytes: u64, file_bytes: usize, page_bytes: usize) -> Result<Layout, Error> {
    let layout = usize::try_from(claimed_bytes).ok().and_then(|bytes| Layout::new(bytes, page_bytes));
    let needed_bytes = claimed_bytes.saturating_add(DATA_OFFSET as u64);
    match layout {
        Some(layout) if needed_bytes <= file_bytes as u64 => {
            if layout.file_bytes < file_bytes {
                return Err(Error::Corrupted { field: "data length", found: claimed_bytes });
            }
            Ok(layout)
        }
        _ => Err(Error::TooSmall { file_bytes: file_bytes as u64, needed_bytes }),
    }
}

fn read(word: &AtomicU64) -> u64 {
    // ORDERING: Relaxed: the ready word was read before (A1), or the value only goes into an error.
    word.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests;
