//! Descriptors that a forked child does not keep.
//!
//! A forked child shares the descriptions of its parent's files, and with them the locks: a child that outlives its parent
//! would keep the parent's roles. No flag makes a descriptor close on fork, so a handler does it that the C library runs
//! in the child. From the moment at which such a descriptor is opened until it is listed nobody can fork.
//!
//! Children that are made without the C library's `fork` (a raw `clone`) are not noticed: they keep the roles of their
//! parent, and give them back if they drop the claims; those of `vfork` and
//! `posix_spawn` lose the descriptors when they start a program.
//!
//! # Safety
//!
//! The list is reached by who holds its mutex alone. A number in it is open, and its [`Unforked`] closes it, or the handler
//! in a forked child.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::sys::{self, Mutex};
use crate::{Descriptor, Error};

/// How many forks lie between this process and the first of its program.
static GENERATION: AtomicU64 = AtomicU64::new(0);

static OPEN: Open =
    Open { mutex: Mutex::new(), list: UnsafeCell::new(List { numbers: Vec::new(), is_watched: false }) };

struct Open {
    mutex: Mutex,
    list: UnsafeCell<List>,
}

// SAFETY: the list is reached by who holds the mutex.
unsafe impl Sync for Open {}

struct List {
    /// Descriptors that a forked child closes.
    numbers: Vec<c_int>,
    /// Whether the handlers are installed.
    is_watched: bool,
}

/// While it lives, no other thread forks or changes the list. It stays in its thread, as a mutex that is locked does.
#[derive(Debug)]
pub(crate) struct NoForks(PhantomData<*const ()>);

impl NoForks {
    /// Waits for a thread that has it.
    pub(crate) fn begin() -> Result<Self, Error> {
        let mut this = Self::lock();
        if !this.list().is_watched {
            sys::at_fork(before_fork, after_fork_in_parent, after_fork_in_child)
                .map_err(|error| Error::os("prepare for forks", error))?;
            this.list().is_watched = true;
        }
        Ok(this)
    }

    fn lock() -> Self {
        OPEN.mutex.lock();
        Self(PhantomData)
    }

    fn list(&mut self) -> &mut List {
        // SAFETY: whoever has this value holds the mutex, and the borrow ends before it is given up.
        unsafe { &mut *OPEN.list.get() }
    }

    /// Takes a descriptor that was opened while this value lived.
    pub(crate) fn adopt(&mut self, descriptor: Descriptor) -> Unforked {
        self.list().numbers.push(descriptor.raw());
        Unforked { descriptor: ManuallyDrop::new(descriptor), generation: generation() }
    }
}

impl Drop for NoForks {
    fn drop(&mut self) {
        OPEN.mutex.unlock();
    }
}

/// A descriptor that only the process that opened it has.
#[derive(Debug)]
pub(crate) struct Unforked {
    descriptor: ManuallyDrop<Descriptor>,
    generation: u64,
}

impl Unforked {
    /// None in a forked child, in which it is closed.
    pub(crate) fn get(&self) -> Option<&Descriptor> {
        (self.generation == generation()).then_some(&*self.descriptor)
    }
}

impl Drop for Unforked {
    fn drop(&mut self) {
        let mut no_forks = NoForks::lock();
        if self.generation == generation() {
            let number = self.descriptor.raw();
            no_forks.list().numbers.retain(|listed| *listed != number);
            // SAFETY: it is dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.descriptor) };
        }
    }
}

fn generation() -> u64 {
    // ORDERING: Relaxed: it changes in a process that has one thread, before that goes on.
    GENERATION.load(Ordering::Relaxed)
}

extern "C" fn before_fork() {
    OPEN.mutex.lock();
}

extern "C" fn after_fork_in_parent() {
    OPEN.mutex.unlock();
}

extern "C" fn after_fork_in_child() {
    // The thread that forked locked the mutex, and its copy is the only thread here.
    let mut no_forks = NoForks(PhantomData);
    // ORDERING: Relaxed: there is no other thread.
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for number in &no_forks.list().numbers {
        sys::close_number(*number);
    }
    // Nothing is freed: another thread of the parent may have been in the allocator.
    no_forks.list().numbers.clear();
}
