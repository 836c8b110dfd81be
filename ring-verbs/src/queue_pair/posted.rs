//! What is remembered of a request until its end, beside the buffer: one word.
//!
//! # Safety
//!
//! The word is a pointer that `Arc::into_raw` gave, or null, with the opcode in the bits that are 0 in such a pointer. It
//! owns that reference.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::mem::align_of;

use crate::address::Handle;
use crate::completion::Opcode;

/// The bits that hold the opcode.
const OPCODE: usize = 7;

const _: () = assert!(align_of::<Handle>() > OPCODE);

/// The operation, and the address handle that a datagram names, which must not go before it.
pub(crate) struct Posted(*const Handle);

// SAFETY: a handle can be shared between threads, and so can a reference to it be sent.
unsafe impl Send for Posted {}
// SAFETY: as above; shared, it gives the opcode.
unsafe impl Sync for Posted {}

impl Posted {
    #[inline(always)]
    pub(crate) fn new(opcode: Opcode) -> Self {
        Self(core::ptr::without_provenance(opcode as usize))
    }

    pub(super) fn with_handle(opcode: Opcode, handle: Arc<Handle>) -> Self {
        Self(Arc::into_raw(handle).map_addr(|at| at | opcode as usize))
    }

    pub(crate) fn opcode(&self) -> Opcode {
        Opcode::from_number(self.number())
    }

    /// The opcode's number.
    #[inline(always)]
    pub(crate) fn number(&self) -> usize {
        self.0.addr() & OPCODE
    }

    /// Whether a post has to look twice: at an atomic, or at one with a handle.
    #[inline(always)]
    pub(super) fn is_special(&self) -> bool {
        self.0.addr() >= Opcode::CompareAndSwap as usize
    }

    /// Whether it is an atomic.
    pub(super) fn is_atomic(&self) -> bool {
        matches!(self.opcode(), Opcode::CompareAndSwap | Opcode::FetchAndAdd)
    }

    /// What a datagram is sent along.
    pub(super) fn handle(&self) -> Option<&Handle> {
        // SAFETY: the word owns a reference, where it has one.
        unsafe { self.pointer().as_ref() }
    }

    /// Whether there is a handle: a pointer is larger than any opcode.
    #[inline(always)]
    fn has_handle(&self) -> bool {
        self.0.addr() > OPCODE
    }

    fn pointer(&self) -> *const Handle {
        self.0.map_addr(|at| at & !OPCODE)
    }

    /// Another one, where there is no handle.
    #[inline(always)]
    pub(super) fn copy_plain(&self) -> Self {
        debug_assert!(!self.has_handle(), "a handle is counted");
        Self(core::ptr::without_provenance(self.0.addr()))
    }
}

impl Clone for Posted {
    #[inline(always)]
    fn clone(&self) -> Self {
        if self.has_handle() {
            // SAFETY: the word owns a reference, so the handle is there.
            unsafe { Arc::increment_strong_count(self.pointer()) };
        }
        Self(self.0)
    }
}

impl Drop for Posted {
    #[inline(always)]
    fn drop(&mut self) {
        if self.has_handle() {
            // SAFETY: the word owns this reference, and goes.
            drop(unsafe { Arc::from_raw(self.pointer()) });
        }
    }
}

impl fmt::Debug for Posted {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.opcode(), to)
    }
}
