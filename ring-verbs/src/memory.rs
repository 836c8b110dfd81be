//! Registered memory.
//!
//! # Safety
//!
//! Memory is freed only after its registration was given back: where that fails, both leak, and in a forked child
//! too. A [`Registration`] owns the memory that it names.
#![allow(unsafe_code)]

mod exposed;
mod local;
mod pages;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

pub use exposed::{ExposedRegion, RemoteMemory};
pub use local::MemoryRegion;
pub use pages::{PageMemory, Pages};

use crate::domain::{Domain, ProtectionDomain};
use crate::error::{Error, Operation};
use crate::sys::{self, AccessFlags, ReregMrFlags, ibv_mr};
use crate::{Errno, system};

/// Memory that can be registered, since it is owned and stays where it is.
///
/// # Safety
///
/// From the call of `parts` on, as long as nothing is done with the value but to move and drop it, the bytes are
/// initialised and can be read and written by that address, and nobody else in this program touches them.
pub unsafe trait Memory: Send + 'static {
    /// The address of the first byte, and how many there are.
    fn parts(&mut self) -> (NonNull<u8>, usize);
}

// SAFETY: the vector owns its bytes, which move only when it is changed.
unsafe impl Memory for Vec<u8> {
    fn parts(&mut self) -> (NonNull<u8>, usize) {
        // A vector's pointer is never null.
        (NonNull::new(self.as_mut_ptr()).unwrap_or(NonNull::dangling()), self.len())
    }
}

/// A region that rings lie in, to be registered: a heap region, a segment.
///
/// Others may touch its bytes, by way of rings, so it can only be [exposed](ExposedRegion), not borrowed.
#[derive(Debug)]
pub struct RingMemory<R>(pub R);

/// The library's part, and the memory, which outlives it.
#[derive(Debug)]
struct Registration<M> {
    raw: NonNull<ibv_mr>,
    domain: ManuallyDrop<Arc<Domain>>,
    memory: ManuallyDrop<M>,
}

// SAFETY: the library's verbs can be called from any thread, and the memory can be sent.
unsafe impl<M: Send> Send for Registration<M> {}
// SAFETY: shared, it gives numbers only.
unsafe impl<M: Sync> Sync for Registration<M> {}

impl<M> Registration<M> {
    /// # Safety
    ///
    /// `base` and `bytes` are those of `memory`, which keeps them as [`Memory`] or [`Region`](ring_core::Region) has it.
    unsafe fn new(
        domain: &ProtectionDomain,
        memory: M,
        base: NonNull<u8>,
        bytes: usize,
        access: AccessFlags,
    ) -> Result<Self, MemoryRejected<M>> {
        if let Err(error) = check(access) {
            return Err(MemoryRejected { memory, error });
        }
        // Devices differ, and so does the kernel by the address.
        if bytes == 0 {
            let error = Error::of(Operation::Register, Errno(libc::EINVAL));
            return Err(MemoryRejected { memory, error });
        }
        let functions = domain.domain.open.functions;
        // SAFETY: the memory is there until the registration is given back.
        let raw = unsafe { sys::reg_mr(functions, domain.as_raw(), base.as_ptr().cast(), bytes, access) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw,
                domain: ManuallyDrop::new(Arc::clone(&domain.domain)),
                memory: ManuallyDrop::new(memory),
            }),
            None => Err(MemoryRejected { memory, error: why(Errno::last(), bytes) }),
        }
    }

    fn local_key(&self) -> u32 {
        // SAFETY: the registration is there, and nobody writes this.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    fn remote_key(&self) -> u32 {
        // SAFETY: the registration is there, and nobody writes this.
        unsafe { (*self.raw.as_ptr()).rkey }
    }

    /// Gives the registration back; none: it has leaked, with the memory.
    fn end(self) -> Option<M> {
        let mut this = ManuallyDrop::new(self);
        if !this.deregister() {
            return None;
        }
        // SAFETY: `this` is never used or dropped again.
        let memory = unsafe { ManuallyDrop::take(&mut this.memory) };
        // SAFETY: as above.
        drop(unsafe { ManuallyDrop::take(&mut this.domain) });
        Some(memory)
    }

    /// Has other rights from now on. Where that fails the registration is ended.
    fn change_access(self, access: AccessFlags) -> Result<Self, MemoryRejected<Option<M>>> {
        let result = check(access).and_then(|()| {
            let change = self.domain.open.functions.ibv_rereg_mr;
            let (raw, flags) = (self.raw.as_ptr(), ReregMrFlags::CHANGE_ACCESS);
            let access = c_int::from_ne_bytes(access.bits().to_ne_bytes());
            // SAFETY: it is registered, and only its rights change: domain and memory are not looked at.
            let returned = unsafe { change(raw, flags, ptr::null_mut(), ptr::null_mut(), 0, access) };
            if returned == 0 { Ok(()) } else { Err(Error::of(Operation::Reregister, Errno::last())) }
        });
        // After an error of the command the region may be used no more, but is to be given back.
        match result {
            Ok(()) => Ok(self),
            Err(error) => Err(MemoryRejected { memory: self.end(), error }),
        }
    }

    /// Has the library give it back; false: it has not, and the device may have a way to the memory for ever.
    fn deregister(&mut self) -> bool {
        let open = &self.domain.open;
        // SAFETY: it was registered, and this is called once.
        open.is_ours() && unsafe { (open.functions.ibv_dereg_mr)(self.raw.as_ptr()) } == 0
    }
}

impl<M> Drop for Registration<M> {
    fn drop(&mut self) {
        if self.deregister() {
            // SAFETY: this is the drop, and the device has no way to it any more.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
            // SAFETY: this is the drop.
            unsafe { ManuallyDrop::drop(&mut self.domain) };
        }
    }
}

/// Memory that could not be registered, and why.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct MemoryRejected<M> {
    /// It comes back as it was.
    pub memory: M,
    /// Why.
    pub error: Error,
}

impl<M> From<MemoryRejected<M>> for Error {
    fn from(rejected: MemoryRejected<M>) -> Self {
        rejected.error
    }
}

/// That the rights go together: some drivers do not look, and others say no more than EINVAL.
fn check(access: AccessFlags) -> Result<(), Error> {
    let writes = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC;
    if access.intersects(writes) && !access.contains(AccessFlags::LOCAL_WRITE) {
        return Err(Error::RemoteWithoutLocal);
    }
    Ok(())
}

/// Why so many bytes could not be registered: mostly the limit of locked memory.
fn why(errno: Errno, bytes: usize) -> Error {
    let limit_bytes = system::lockable_bytes();
    match errno {
        Errno(libc::ENOMEM) if limit_bytes != u64::MAX => {
            Error::LockedMemory { operation: Operation::Register, bytes: bytes as u64, limit_bytes }
        }
        errno => Error::of(Operation::Register, errno),
    }
}
