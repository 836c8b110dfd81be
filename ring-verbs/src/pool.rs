//! Buffers of one size out of one registered area.
//!
//! # Safety
//!
//! A [`Slab`] owns the bytes of its number: the free list gives each number to one at a time. The area stays
//! registered while the pool or one of its slabs lives.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::{fmt, slice};

use crate::Errno;
use crate::buffer::{Buffer, Pieces};
use crate::domain::ProtectionDomain;
use crate::error::{Error, Operation};
use crate::free_list::FreeList;
use crate::memory::{Memory, MemoryRegion, PageMemory, Pages};

/// Slabs begin at multiples of a cache line, so that no two share one.
const LINE_BYTES: u32 = 64;

/// The options of a pool.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    slab_bytes: u32,
    slabs: u32,
    pages: Pages,
    node: Option<u32>,
}

impl PoolOptions {
    /// `slabs` buffers of `slab_bytes` each, rounded up to whole cache lines, on ordinary pages.
    pub fn new(slab_bytes: u32, slabs: u32) -> Self {
        Self { slab_bytes, slabs, pages: Pages::Small, node: None }
    }

    /// The pages that they lie on. By default small ones.
    pub fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// The NUMA node of the memory. By default that of the device, where it is at one.
    pub fn node(mut self, node: u32) -> Self {
        self.node = Some(node);
        self
    }

    /// Maps and registers the area.
    ///
    /// # Errors
    ///
    /// [`Error::LockedMemory`] where the limit of locked memory is too low, [`Error::TooMany`] for an area of 4 GiB or
    /// more, [`Error::Refused`] where there are not so many pages, or for no bytes at all.
    pub fn build(&self, domain: &ProtectionDomain) -> Result<Pool, Error> {
        let slab_bytes = self.slab_bytes.checked_next_multiple_of(LINE_BYTES).filter(|bytes| *bytes > 0);
        let bytes =
            slab_bytes.and_then(|bytes| usize::try_from(u64::from(bytes) * u64::from(self.slabs)).ok());
        let (Some(slab_bytes), Some(bytes)) = (slab_bytes, bytes) else {
            return Err(Error::Refused { operation: Operation::MapMemory, errno: Errno(libc::EINVAL) });
        };
        if u32::try_from(bytes).is_err() {
            // Said before the pages are brought in.
            let what = "bytes of a pool: make several";
            return Err(Error::TooMany { what, asked: bytes as u64, most: u32::MAX.into() });
        }
        let mut memory = self.map(bytes, domain.domain.open.numa_node())?;
        let (base, _) = memory.parts();
        let region = MemoryRegion::new(domain, memory)?;
        let key = region.local_key();
        let free = FreeList::new(self.slabs);
        Ok(Pool { area: Arc::new(Area { base, slab_bytes, key, free, region }) })
    }

    /// On the node that was asked for; or on that of the device, where the system lets us choose.
    fn map(&self, bytes: usize, devices: Option<u32>) -> Result<PageMemory, Error> {
        match (self.node, devices) {
            (None, Some(node)) => PageMemory::new(bytes, self.pages, Some(node))
                .or_else(|_| PageMemory::new(bytes, self.pages, None)),
            (node, _) => PageMemory::new(bytes, self.pages, node),
        }
    }
}

/// Buffers of one size out of an area that is registered once.
///
/// They are taken and given back from any thread, without a lock, a system call or the heap.
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// # let domain = ring_verbs::ProtectionDomain::new(&context)?;
/// let pool = ring_verbs::PoolOptions::new(4096, 1024).build(&domain)?;
/// let mut slab = pool.take().expect("nobody has taken one");
/// slab[..5].copy_from_slice(b"hello");
/// slab.truncate(5);
/// assert_eq!(pool.out(), 1);
/// drop(slab);
/// assert_eq!(pool.out(), 0);
/// # Ok::<(), ring_verbs::Error>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    area: Arc<Area>,
}

struct Area {
    base: NonNull<u8>,
    slab_bytes: u32,
    key: u32,
    free: FreeList,
    /// Never borrowed: its slabs are.
    region: MemoryRegion<PageMemory>,
}

// SAFETY: the pointer is to memory of the region, of which each slab has its own part.
unsafe impl Send for Area {}
// SAFETY: as above; the free list is made for several threads.
unsafe impl Sync for Area {}

impl Pool {
    /// A slab of the full length, with what its last user left in it; none where all are out.
    #[inline]
    pub fn take(&self) -> Option<Slab> {
        let number = self.area.free.take()?;
        let offset = number as usize * self.area.slab_bytes as usize;
        // SAFETY: numbers are below the count of slabs, all of which lie in the area.
        let at = unsafe { self.area.base.add(offset) };
        let extent = u64::from(number) << 32 | u64::from(self.area.slab_bytes);
        Some(Slab { area: Arc::clone(&self.area), at, extent })
    }

    /// Bytes of each slab.
    pub fn slab_bytes(&self) -> u32 {
        self.area.slab_bytes
    }

    /// How many slabs there are, in all.
    pub fn slabs(&self) -> u32 {
        self.area.free.places()
    }

    /// How many are out: with the program or in flight. It looks at each, and may be old when several threads take.
    pub fn out(&self) -> u32 {
        self.area.free.out()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Pool")
            .field("slabs", &self.slabs())
            .field("slab_bytes", &self.slab_bytes())
            .field("out", &self.out())
            .field("region", &self.area.region)
            .finish()
    }
}

/// A buffer of a pool, which goes back there when it is dropped.
pub struct Slab {
    area: Arc<Area>,
    at: NonNull<u8>,
    /// Its number in the upper half, its length in the lower: one word moves faster than two.
    extent: u64,
}

// SAFETY: the bytes belong to the slab alone.
unsafe impl Send for Slab {}
// SAFETY: shared, they can be read.
unsafe impl Sync for Slab {}

impl Slab {
    /// Bytes that it could have.
    pub fn capacity(&self) -> u32 {
        self.area.slab_bytes
    }

    #[allow(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    #[inline(always)]
    fn length(&self) -> u32 {
        self.extent as u32
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper half is meant")]
    #[inline(always)]
    fn number(&self) -> u32 {
        (self.extent >> 32) as u32
    }

    /// Makes it so many bytes long: what is sent, or what can be received. The bytes keep their contents.
    ///
    /// # Panics
    ///
    /// If that is more than its capacity.
    #[inline]
    pub fn set_len(&mut self, bytes: u32) {
        let capacity = self.area.slab_bytes;
        assert!(bytes <= capacity, "{bytes} bytes are more than the slab's {capacity}");
        self.extent = self.extent & !u64::from(u32::MAX) | u64::from(bytes);
    }

    /// Shortens it, where it is longer.
    #[inline]
    pub fn truncate(&mut self, bytes: u32) {
        self.set_len(self.length().min(bytes));
    }
}

impl Deref for Slab {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the slab owns these bytes, which were zeroed by the kernel at first.
        unsafe { slice::from_raw_parts(self.at.as_ptr(), self.length() as usize) }
    }
}

impl DerefMut for Slab {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.at.as_ptr(), self.length() as usize) }
    }
}

// SAFETY: the slab's bytes lie in the area, which stays registered as long as the slab lives, and are its own.
unsafe impl Buffer for Slab {
    #[inline(always)]
    fn add_pieces(&self, pieces: &mut Pieces<'_>) {
        pieces.add(self.at.as_ptr(), self.length(), self.area.key);
    }
}

impl Drop for Slab {
    #[inline]
    fn drop(&mut self) {
        self.area.free.give_back(self.number());
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Slab").field("number", &self.number()).field("bytes", &self.length()).finish()
    }
}
