//! Memory that only this process and its device use.
//!
//! # Safety
//!
//! Nobody but the value's owner and the device touches the bytes. The device does while the value is in flight, and
//! then nobody has it.
#![allow(unsafe_code)]

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::{fmt, slice};

use super::{Memory, MemoryRejected, Registration};
use crate::buffer::{Buffer, Pieces};
use crate::domain::ProtectionDomain;
use crate::error::Error;
use crate::sys::AccessFlags;

/// A registered piece of memory, which is a buffer as a whole: it moves into a request and comes back.
///
/// For many buffers of one size take a [`Pool`](crate::Pool): registering costs system calls, and a device holds a
/// limited number of regions.
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// let domain = ring_verbs::ProtectionDomain::new(&context)?;
/// let mut region = ring_verbs::MemoryRegion::new(&domain, vec![0_u8; 4096])?;
/// region[..5].copy_from_slice(b"hello");
/// let memory = region.into_memory();
/// # Ok::<(), ring_verbs::Error>(())
/// ```
pub struct MemoryRegion<M> {
    registration: Registration<M>,
    base: NonNull<u8>,
    bytes: u32,
    key: u32,
}

// SAFETY: the pointer is to memory of the registration, which can be sent.
unsafe impl<M: Send> Send for MemoryRegion<M> {}
// SAFETY: as above; shared, the bytes are read only.
unsafe impl<M: Sync> Sync for MemoryRegion<M> {}

impl<M: Memory> MemoryRegion<M> {
    /// Registers memory for this process's own requests: to be sent, received into, written from and read into.
    ///
    /// # Errors
    ///
    /// [`Error::LockedMemory`], [`Error::TooMany`] for 4 GiB or more, [`Error::Refused`]; the memory comes back with it.
    /// No memory at all is refused with EINVAL.
    pub fn new(domain: &ProtectionDomain, mut memory: M) -> Result<Self, MemoryRejected<M>> {
        let (base, length) = memory.parts();
        let Ok(bytes) = u32::try_from(length) else {
            let what = "bytes of a region that is a buffer";
            return Err(MemoryRejected {
                memory,
                error: Error::TooMany { what, asked: length as u64, most: u32::MAX.into() },
            });
        };
        // SAFETY: they are those of the memory, which keeps the promise of the trait.
        let registration =
            unsafe { Registration::new(domain, memory, base, length, AccessFlags::LOCAL_WRITE) }?;
        let key = registration.local_key();
        Ok(Self { registration, base, bytes, key })
    }

    /// Ends the registration. None where that fails: the memory stays with the device for ever.
    pub fn into_memory(self) -> Option<M> {
        self.registration.end()
    }

    /// What requests name it by.
    pub fn local_key(&self) -> u32 {
        self.key
    }
}

// SAFETY: the region owns memory that is registered until it is dropped, and lends it only by itself.
unsafe impl<M: Memory> Buffer for MemoryRegion<M> {
    #[inline(always)]
    fn add_pieces(&self, pieces: &mut Pieces<'_>) {
        pieces.add(self.base.as_ptr(), self.bytes, self.key);
    }
}

impl<M: Memory> Deref for MemoryRegion<M> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the promise of `Memory`; the device has the bytes only while nobody has this value.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.bytes as usize) }
    }
}

impl<M: Memory> DerefMut for MemoryRegion<M> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the value is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes as usize) }
    }
}

impl<M: Memory> fmt::Debug for MemoryRegion<M> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("MemoryRegion")
            .field("bytes", &self.bytes)
            .field("local_key", &self.local_key())
            .finish()
    }
}
