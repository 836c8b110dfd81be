//! A lock for what changes when a queue is made or gone: never on the way of a message.
//!
//! | edge | from | to |
//! |---|---|---|
//! | R1 → A1 | `LetGo::drop` lets go | `Lock::with` takes: what the last holder wrote is seen |
//!
//! # Safety
//!
//! The value is touched only between taking the word and letting it go, which one thread at a time does.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::sync::{AtomicU64, Cell, Ordering, give_way};

/// Spins: its holders do a handful of instructions, or grow a table.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    is_taken: AtomicU64,
    value: Cell<T>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { is_taken: AtomicU64::new(0), value: Cell::new(value) }
    }

    /// Runs `action` alone. A panic in it leaves the lock free.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        let take = || {
            self.is_taken.compare_exchange(
                0,
                1,
                // ORDERING: Acquire (A1): the last holder's writes are seen; pairs with R1 in LetGo::drop.
                Ordering::Acquire,
                // ORDERING: Relaxed: it is taken, and nothing is read.
                Ordering::Relaxed,
            )
        };
        while take().is_err() {
            give_way();
        }
        let _held = LetGo(&self.is_taken);
        // SAFETY: the word is taken, and every earlier holder let it go before.
        unsafe { self.value.with(action) }
    }
}

/// Lets the lock go when it is dropped, also by a panic.
struct LetGo<'a>(&'a AtomicU64);

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        // ORDERING: Release (R1): publishes what the holder wrote; pairs with A1 in Lock::with.
        self.0.store(0, Ordering::Release);
    }
}
