//! The one place where a build for loom differs from a production build.
//!
//! # Safety
//!
//! `Cell` gives access to what lies in it as `UnsafeCell` does; who may take it when is stated where it is used.
#![allow(unsafe_code)]

#[cfg(loom)]
pub(crate) use ring_core::sync::spin_loop as give_way;
pub(crate) use ring_core::sync::{AtomicU64, Ordering};

#[cfg(not(loom))]
pub(crate) use crate::system::yield_now as give_way;

/// What one thread at a time may touch. Under loom a second one at the same time, or one without an edge to the
/// first, is reported.
#[derive(Debug)]
pub(crate) struct Cell<T> {
    #[cfg(not(loom))]
    inner: core::cell::UnsafeCell<T>,
    #[cfg(loom)]
    inner: loom::cell::UnsafeCell<T>,
}

// SAFETY: whoever calls `with` promises to be alone; the value itself moves between threads.
unsafe impl<T: Send> Sync for Cell<T> {}

impl<T> Cell<T> {
    pub(crate) fn new(value: T) -> Self {
        #[cfg(not(loom))]
        let inner = core::cell::UnsafeCell::new(value);
        #[cfg(loom)]
        let inner = loom::cell::UnsafeCell::new(value);
        Self { inner }
    }

    /// Runs `action` with the value.
    ///
    /// # Safety
    ///
    /// Nobody else is in a call of this until it returns, and all earlier calls happened before it.
    #[inline(always)]
    pub(crate) unsafe fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(not(loom))]
        let at = self.inner.get();
        #[cfg(not(loom))]
        // SAFETY: the caller's promise: this is the only access.
        let result = action(unsafe { &mut *at });
        #[cfg(loom)]
        // SAFETY: the caller's promise: this is the only access.
        let result = self.inner.with_mut(|at| action(unsafe { &mut *at }));
        result
    }
}
