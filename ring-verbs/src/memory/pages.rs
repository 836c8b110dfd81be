//! Whole pages, to be registered.
//!
//! # Safety
//!
//! A mapping is made, belongs to one `PageMemory`, and is unmapped with it.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_ulong};
use core::ptr::{self, NonNull};

use ring_core::Region;

use super::Memory;
use crate::error::{Error, Operation};
use crate::{Errno, system};

/// Which pages memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Pages {
    /// The system's ordinary ones.
    #[default]
    Small,
    /// Of 2 MiB, from the system's pool (`/proc/sys/vm/nr_hugepages`). A device needs one entry of its own tables for
    /// each page, and caches few of them.
    Huge2MiB,
    /// Of 1 GiB, from the system's pool.
    Huge1GiB,
}

impl Pages {
    /// Bytes of one. Of small ones: 4,096, as mappings are aligned.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Small => 4096,
            Self::Huge2MiB => 2 << 20,
            Self::Huge1GiB => 1 << 30,
        }
    }

    fn map_flags(self) -> c_int {
        match self {
            Self::Small => 0,
            Self::Huge2MiB => libc::MAP_HUGETLB | libc::MAP_HUGE_2MB,
            Self::Huge1GiB => libc::MAP_HUGETLB | libc::MAP_HUGE_1GB,
        }
    }
}

/// Zeroed pages of this process alone, all there from the start. They are locked by registering them. A forked child
/// does not have them: what the device writes would go to either of two copies.
#[derive(Debug)]
pub struct PageMemory {
    base: NonNull<u8>,
    bytes: usize,
    /// Who mapped it.
    process: c_int,
}

// SAFETY: the mapping belongs to the value alone.
unsafe impl Send for PageMemory {}
// SAFETY: shared, it gives an address and a length.
unsafe impl Sync for PageMemory {}

impl PageMemory {
    /// At least `bytes`, rounded up to whole pages, on the memory of the NUMA node `node` where one is named: best that
    /// [of the device](crate::Context::numa_node).
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with ENOMEM where there are not so many pages, EINVAL for no bytes at all or a node that is
    /// not there.
    pub fn new(bytes: usize, pages: Pages, node: Option<u32>) -> Result<Self, Error> {
        let refused = |errno| Error::of(Operation::MapMemory, errno);
        let bytes =
            bytes.checked_next_multiple_of(pages.bytes()).ok_or_else(|| refused(Errno(libc::ENOMEM)))?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | pages.map_flags();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(refused(Errno::last()));
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| refused(Errno(libc::ENOMEM)))?;
        let memory = Self { base, bytes, process: system::process() };
        if let Some(node) = node {
            memory.bind(node).map_err(refused)?;
        }
        memory.advise(libc::MADV_DONTFORK).map_err(refused)?;
        match memory.advise(libc::MADV_POPULATE_WRITE) {
            // Before Linux 5.14 there is no such advice, and registering brings the pages in.
            Ok(()) | Err(Errno(libc::EINVAL)) => Ok(memory),
            Err(errno) => Err(refused(errno)),
        }
    }

    fn advise(&self, advice: c_int) -> Result<(), Errno> {
        // SAFETY: the mapping is this value's.
        match unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(Errno::last()),
        }
    }

    fn bind(&self, node: u32) -> Result<(), Errno> {
        const NODES: usize = 1024;
        const BITS: usize = c_ulong::BITS as usize;
        let node = node as usize;
        if node >= NODES {
            return Err(Errno(libc::EINVAL));
        }
        let mut mask: [c_ulong; NODES / BITS] = [0; NODES / BITS];
        mask[node / BITS] = 1 << (node % BITS);
        // SAFETY: the mapping is this value's, and the mask has as many bits as are named, of which the kernel uses one less.
        let returned = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.base.as_ptr(),
                self.bytes,
                libc::MPOL_BIND,
                mask.as_ptr(),
                NODES + 1,
                0,
            )
        };
        if returned == 0 { Ok(()) } else { Err(Errno::last()) }
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        // A forked child does not have the mapping, and may have something else at its place.
        if self.process == system::process() {
            // SAFETY: the mapping is this value's, and nobody uses it any more.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }
}

// SAFETY: the mapping stays where it is, was zeroed by the kernel, and belongs to the value alone.
unsafe impl Memory for PageMemory {
    fn parts(&mut self) -> (NonNull<u8>, usize) {
        (self.base, self.bytes)
    }
}

// SAFETY: as above; pages are aligned to more than a region needs.
unsafe impl Region for PageMemory {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
