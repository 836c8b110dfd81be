//! The atomics of a model: those of loom, of which one can be weakened and whose writer can be killed.

use super::{Ordering, death, mutant};

/// An atomic of loom's that can be laid over zeroed memory: [`place`](super::place) sees whether it was made already.
///
/// loom compares an operation with the last one on the same atomic, so a thread's own load just before its exchange
/// hides that of a peer. Touching a second atomic keeps the peer's in sight.
#[derive(Debug)]
#[repr(C)]
pub struct AtomicU64 {
    made: u64,
    touched: loom::sync::atomic::AtomicU64,
    inner: loom::sync::atomic::AtomicU64,
}

impl AtomicU64 {
    pub fn new(value: u64) -> Self {
        let atomic = loom::sync::atomic::AtomicU64::new;
        Self { made: 1, touched: atomic(0), inner: atomic(value) }
    }

    fn touch(&self) {
        // ORDERING: Relaxed: it orders nothing, and is there to be seen.
        self.touched.fetch_add(1, Ordering::Relaxed);
    }

    #[track_caller]
    pub fn load(&self, order: Ordering) -> u64 {
        if death::has_struck() {
            return 0;
        }
        self.touch();
        self.inner.load(mutant::ordering(order, 0))
    }

    #[track_caller]
    pub fn store(&self, value: u64, order: Ordering) {
        if !death::spares_write() {
            return;
        }
        self.touch();
        self.inner.store(value, mutant::ordering(order, 0));
    }

    #[track_caller]
    pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        if !death::spares_write() {
            return 0;
        }
        self.touch();
        self.inner.fetch_add(value, mutant::ordering(order, 0))
    }

    #[track_caller]
    pub fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if !death::spares_write() {
            return Err(0);
        }
        self.touch();
        let (success, failure) = (mutant::ordering(success, 0), mutant::ordering(failure, 1));
        self.inner.compare_exchange(current, new, success, failure)
    }
}

/// As core's, unless the models are to miss it.
#[track_caller]
pub fn fence(order: Ordering) {
    if !mutant::is_here(0) && !death::has_struck() {
        loom::sync::atomic::fence(order);
    }
}

/// A fence like any other: the system call on the other side makes it one.
#[track_caller]
pub fn light_fence() {
    fence(Ordering::SeqCst);
}
