//! Owners within one process that are gone.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R6 → A6 | an owner's entry when it is declared gone | the same entry when somebody asks | all that the owner wrote |
//!
//! # Safety
//!
//! [`Registry::declare_gone`] is where the promise of [`Liveness`] is made.
#![allow(unsafe_code)]

#[cfg(all(test, feature = "alloc"))]
mod tests;

use core::ptr::NonNull;

use crate::sync::{AtomicU64, Ordering};
use crate::{Liveness, Owner, Role};

/// Who is gone, within one process: a thread whose handle was leaked, say. Whoever knows it says so.
///
/// An owner between processes needs the kernel's word instead: a lock that it drops at death.
///
/// ```
/// use std::sync::Arc;
/// use ring_core::{HeapRegion, Registry, Role, spsc};
///
/// let layout = spsc::Layout::<u64>::new(8)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (producer, consumer) = spsc::create(Arc::clone(&region), &layout)?;
/// let incarnation = consumer.peer().incarnation;
/// std::mem::forget(producer);
///
/// let registry = Registry::<0>::new();
/// assert!(spsc::Producer::<u64, _>::take_over(Arc::clone(&region), &registry).is_err());
/// // SAFETY: the handle was forgotten.
/// unsafe { registry.declare_gone(Role::Producer, incarnation) };
/// assert!(spsc::Producer::<u64, _>::take_over(region, &registry).is_ok());
/// # Ok::<(), ring_core::Error>(())
/// ```
/// It answers for one ring. `PARTICIPANTS` is the number of places of an mpmc ring, 0 for the other kinds.
#[derive(Debug)]
pub struct Registry<const PARTICIPANTS: usize = 0> {
    /// For each role the last incarnation that is gone.
    producer: AtomicU64,
    consumer: AtomicU64,
    participants: [AtomicU64; PARTICIPANTS],
}

impl<const PARTICIPANTS: usize> Registry<PARTICIPANTS> {
    /// Nobody is gone yet.
    #[must_use]
    pub fn new() -> Self {
        let nobody = || AtomicU64::new(0);
        Self { producer: nobody(), consumer: nobody(), participants: core::array::from_fn(|_| nobody()) }
    }

    /// Says that the owner of `role` in this incarnation is gone, and so are those before it.
    ///
    /// # Panics
    ///
    /// For a participant beyond `PARTICIPANTS`, or 0.
    ///
    /// # Safety
    ///
    /// It will never touch the ring again, and all that it did there happened before this call. This registry is asked
    /// about that ring alone, and no longer once the region was zeroed: incarnations of another ring are other owners.
    pub unsafe fn declare_gone(&self, role: Role, incarnation: u64) {
        let gone = self.gone(role).expect("a registry for as many participants as the ring has");
        // ORDERING: Release (R6): what the owner wrote; pairs with A6 in Registry::is_gone.
        gone.store(incarnation, Ordering::Release);
    }

    fn gone(&self, role: Role) -> Option<&AtomicU64> {
        match role {
            Role::Producer => Some(&self.producer),
            Role::Consumer => Some(&self.consumer),
            Role::Participant(number) => self.participants.get(usize::from(number).checked_sub(1)?),
        }
    }
}

impl<const PARTICIPANTS: usize> Default for Registry<PARTICIPANTS> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: it answers true only for what was declared gone, and that was promised.
unsafe impl<const PARTICIPANTS: usize> Liveness for Registry<PARTICIPANTS> {
    fn is_gone(&self, _: NonNull<u8>, role: Role, owner: Owner) -> bool {
        // ORDERING: Acquire (A6): what the owner wrote; pairs with R6 in Registry::declare_gone.
        self.gone(role).is_some_and(|gone| gone.load(Ordering::Acquire) >= owner.incarnation)
    }
}
