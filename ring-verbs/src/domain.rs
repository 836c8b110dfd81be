//! Protection domains: what was made in one can be used together.
//!
//! # Safety
//!
//! A domain is given back after everything that was made in it: each such object holds it by a reference count.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::Errno;
use crate::context::{Context, Open};
use crate::error::{Error, Operation};
use crate::sys::{self, ibv_parent_domain_init_attr, ibv_pd, ibv_td, ibv_td_init_attr};

/// What memory regions, queue pairs, shared receive queues and address handles belong to: they work together only in
/// the same one.
#[derive(Debug)]
pub struct ProtectionDomain {
    pub(crate) domain: Arc<Domain>,
}

impl ProtectionDomain {
    /// A domain of the device, with nothing in it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device has no more.
    pub fn new(context: &Context) -> Result<Self, Error> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.open.functions.ibv_alloc_pd)(context.as_raw()) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::of(Operation::AllocateDomain, Errno::last()))?;
        Ok(Self {
            domain: Arc::new(Domain {
                raw,
                open: Arc::clone(&context.open),
                thread: ManuallyDrop::new(None),
            }),
        })
    }

    /// A domain inside `outer`, where memory of either can be used, and whose queue pairs are used by one thread at a
    /// time: the driver may do without locks and share what the device has for a thread.
    ///
    /// # Safety
    ///
    /// What is made in it is used by one thread at a time.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] where the driver has no thread domains, [`Error::Refused`] where the device has no more.
    pub unsafe fn for_one_thread(outer: &Self) -> Result<Self, Error> {
        let open = &outer.domain.open;
        let mut nothing = ibv_td_init_attr::default();
        // SAFETY: the context is open, and the attributes are there.
        let thread = unsafe { sys::alloc_td(open.raw.as_ptr(), &raw mut nothing) };
        let Some(thread) = NonNull::new(thread) else {
            return Err(Error::of(Operation::AllocateThreadDomain, Errno::last()));
        };
        let thread = Thread { raw: thread, outer: Arc::clone(&outer.domain) };
        let mut attributes = ibv_parent_domain_init_attr {
            pd: outer.as_raw(),
            td: thread.raw.as_ptr(),
            ..ibv_parent_domain_init_attr::default()
        };
        // SAFETY: the context is open, and both domains are there.
        let raw = unsafe { sys::alloc_parent_domain(open.raw.as_ptr(), &raw mut attributes) };
        let raw =
            NonNull::new(raw).ok_or_else(|| Error::of(Operation::AllocateThreadDomain, Errno::last()))?;
        let domain = Domain { raw, open: Arc::clone(open), thread: ManuallyDrop::new(Some(thread)) };
        Ok(Self { domain: Arc::new(domain) })
    }

    /// For calls that this crate does not have. It is given back with the last object that was made in it.
    pub fn as_raw(&self) -> *mut ibv_pd {
        self.domain.raw.as_ptr()
    }
}

/// Given back with the last reference.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) raw: NonNull<ibv_pd>,
    pub(crate) open: Arc<Open>,
    /// Of a domain for one thread. It goes after the domain, and stays where that does.
    thread: ManuallyDrop<Option<Thread>>,
}

/// The library's part of a domain for one thread, and the domain around it.
#[derive(Debug)]
struct Thread {
    raw: NonNull<ibv_td>,
    outer: Arc<Domain>,
}

// SAFETY: the library's verbs can be called from any thread.
unsafe impl Send for Domain {}
// SAFETY: as above, from several at the same time.
unsafe impl Sync for Domain {}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: whatever was made in it held a reference. What could not be destroyed has leaked its reference, so that
        // this is not reached then.
        if self.open.is_ours() && unsafe { (self.open.functions.ibv_dealloc_pd)(self.raw.as_ptr()) } == 0 {
            // SAFETY: this is the drop.
            unsafe { ManuallyDrop::drop(&mut self.thread) };
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.outer.open.is_ours() {
            // SAFETY: the domain that was made of it is gone.
            unsafe { sys::dealloc_td(self.raw.as_ptr()) };
        }
    }
}
