//! How many queues were left so far, so that whoever polls knows when to look for them.

#[cfg(test)]
mod tests;

use crate::sync::{AtomicU64, Ordering};

/// Counts queues that were left.
#[derive(Debug)]
pub(crate) struct Departures(AtomicU64);

impl Departures {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// After queues were left.
    pub(crate) fn say(&self, queues: u64) {
        // ORDERING: Release (R1): they were left before; pairs with A1 in Departures::so_far.
        self.0.fetch_add(queues, Ordering::Release);
    }

    /// How many there were: so many are found from now on.
    pub(crate) fn so_far(&self) -> u64 {
        // ORDERING: Acquire (A1): so many are seen to be left; pairs with R1 in Departures::say.
        self.0.load(Ordering::Acquire)
    }

    /// Whether there are others than those that were looked for.
    pub(crate) fn are_more_than(&self, looked_for: u64) -> bool {
        // ORDERING: Relaxed: only a hint; who acts on it reads again.
        self.0.load(Ordering::Relaxed) != looked_for
    }
}
