//! Memory that a peer may read or write.
//!
//! # Safety
//!
//! The peer's device touches the bytes at any time, so nothing here borrows them: they are copied in and out by
//! relaxed atomics, byte by byte.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use ring_core::Region;

use super::{Memory, MemoryRejected, Registration, RingMemory};
use crate::domain::ProtectionDomain;
use crate::sys::AccessFlags;

/// Where memory of a peer is: what it tells us, so that our requests can name it.
///
/// ```
/// let memory = ring_verbs::RemoteMemory { address: 0x1000, bytes: 4096, key: 7 };
/// assert_eq!(memory.part(64, 8).map(|part| (part.address, part.bytes)), Some((0x1040, 8)));
/// assert_eq!(memory.part(4090, 8), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteMemory {
    /// The address of the first byte, in the peer's process.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The key that gives the right.
    pub key: u32,
}

impl RemoteMemory {
    /// The part from `offset` on, where it lies inside. A request is as long as its buffer, whatever the part's length: the
    /// peer's region is the bound.
    pub fn part(self, offset: u64, bytes: u64) -> Option<Self> {
        let end = offset.checked_add(bytes)?;
        let address = self.address.checked_add(offset)?;
        (end <= self.bytes).then_some(Self { address, bytes, key: self.key })
    }
}

/// Registered memory that whoever knows its key may read, write, or do atomics on, as its rights say.
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// # let domain = ring_verbs::ProtectionDomain::new(&context)?;
/// use ring_verbs::{AccessFlags, ExposedRegion};
///
/// let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
/// let inbox = ExposedRegion::new(&domain, vec![0; 4096], access)?;
/// println!("tell the peer: {:?}", inbox.remote());
/// let mut head = [0; 16];
/// inbox.read(0, &mut head);
/// # Ok::<(), ring_verbs::Error>(())
/// ```
pub struct ExposedRegion<M> {
    registration: Registration<M>,
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pointer is to memory of the registration, which can be sent, and is used for atomics only.
unsafe impl<M: Send> Send for ExposedRegion<M> {}
// SAFETY: as above; shared, the bytes are touched by atomics only.
unsafe impl<M: Sync> Sync for ExposedRegion<M> {}

impl<M: Memory> ExposedRegion<M> {
    /// Registers memory with rights for peers: `REMOTE_READ`, `REMOTE_WRITE`, `REMOTE_ATOMIC`; the latter two need
    /// `LOCAL_WRITE`.
    ///
    /// # Errors
    ///
    /// [`Error::RemoteWithoutLocal`](crate::Error::RemoteWithoutLocal), or as [`MemoryRegion::new`](crate::MemoryRegion::new).
    pub fn new(
        domain: &ProtectionDomain,
        mut memory: M,
        access: AccessFlags,
    ) -> Result<Self, MemoryRejected<M>> {
        let (base, bytes) = memory.parts();
        // SAFETY: they are those of the memory, which keeps the promise of the trait.
        let registration = unsafe { Registration::new(domain, memory, base, bytes, access) }?;
        Ok(Self { registration, base, bytes })
    }
}

impl<R: Region + Send + 'static> ExposedRegion<RingMemory<R>> {
    /// As [`Self::new`], for a region that rings lie in. Whoever else has a way to the same bytes goes through rings
    /// or atomics, which is what a [`Region`] promises.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn of_region(
        domain: &ProtectionDomain,
        region: R,
        access: AccessFlags,
    ) -> Result<Self, MemoryRejected<RingMemory<R>>> {
        let (base, bytes) = (region.base(), region.bytes());
        // SAFETY: they are those of the region, which keeps the promise of its trait.
        let registration = unsafe { Registration::new(domain, RingMemory(region), base, bytes, access) }?;
        Ok(Self { registration, base, bytes })
    }

    /// The region, for its rings.
    pub fn region(&self) -> &R {
        &self.registration.memory.0
    }
}

impl<M> ExposedRegion<M> {
    /// What a peer has to know.
    pub fn remote(&self) -> RemoteMemory {
        RemoteMemory {
            address: self.base.as_ptr().addr() as u64,
            bytes: self.bytes as u64,
            key: self.registration.remote_key(),
        }
    }

    /// What requests of this process name it by.
    pub fn local_key(&self) -> u32 {
        self.registration.local_key()
    }

    /// Gives peers other rights, without registering the memory anew: its key may change.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`](crate::Error::NotSupported) and others. The registration is ended then, and the memory
    /// comes back; none where that fails too.
    pub fn change_access(self, access: AccessFlags) -> Result<Self, MemoryRejected<Option<M>>> {
        let Self { registration, base, bytes } = self;
        Ok(Self { registration: registration.change_access(access)?, base, bytes })
    }

    /// Ends the registration, after which no peer reaches the memory. None where that fails: the memory stays with
    /// the device for ever.
    ///
    /// A region that rings lie in comes back in its [`RingMemory`], with the rings as they are:
    ///
    /// ```no_run
    /// # let context = ring_verbs::Context::open("rxe0")?;
    /// # let domain = ring_verbs::ProtectionDomain::new(&context)?;
    /// use ring_core::HeapRegion;
    /// use ring_verbs::{AccessFlags, ExposedRegion, RingMemory};
    ///
    /// let exposed = ExposedRegion::of_region(&domain, HeapRegion::new(4096), AccessFlags::REMOTE_READ)?;
    /// if let Some(RingMemory(region)) = exposed.into_memory() {
    ///     drop(region); // nobody reads it any more
    /// }
    /// # Ok::<(), ring_verbs::Error>(())
    /// ```
    pub fn into_memory(self) -> Option<M> {
        self.registration.end()
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies bytes out, as they are at the time. Those that a peer writes meanwhile may be old or new, each by itself.
    ///
    /// # Panics
    ///
    /// If they lie beyond the end.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.check(offset, bytes.len());
        for (index, byte) in bytes.iter_mut().enumerate() {
            // ORDERING: Relaxed: the device's writes have no edge; who is told by a completion reads what came before.
            *byte = self.byte(offset + index).load(Ordering::Relaxed);
        }
    }

    /// Copies bytes in. Those that a peer reads meanwhile may be old or new, each by itself.
    ///
    /// # Panics
    ///
    /// If they lie beyond the end.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        for (index, byte) in bytes.iter().enumerate() {
            // ORDERING: Relaxed: a request that is posted afterwards orders them by the doorbell's barrier.
            self.byte(offset + index).store(*byte, Ordering::Relaxed);
        }
    }

    /// The word at an offset, to be polled, or counted by peers' atomics. Most devices' atomics are atomic among those of
    /// the same device only (`atomic_cap` of its attributes is HCA): then this process must not add to it meanwhile.
    ///
    /// # Panics
    ///
    /// If it lies beyond the end, or if its address is not a multiple of 8: take [`PageMemory`](crate::PageMemory), since
    /// a vector of bytes may begin anywhere.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8);
        // SAFETY: it lies inside, as checked.
        let at = unsafe { self.base.add(offset) }.cast::<AtomicU64>();
        assert!(at.is_aligned(), "the word at {offset} has the address {at:p}, which is not a multiple of 8");
        // SAFETY: aligned, inside, initialised, and touched by atomics only.
        unsafe { at.as_ref() }
    }

    fn check(&self, offset: usize, bytes: usize) {
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(is_inside, "{bytes} bytes at {offset} lie beyond the {} of the region", self.bytes);
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: the caller has checked that it lies inside.
        let at = unsafe { self.base.add(offset) }.cast::<AtomicU8>();
        // SAFETY: inside, initialised, and touched by atomics only.
        unsafe { at.as_ref() }
    }
}

impl<M> fmt::Debug for ExposedRegion<M> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ExposedRegion").field("remote", &self.remote()).finish()
    }
}
