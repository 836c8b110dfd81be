//! What the tests of all rings share, and of the crates that have models of their own: bodies run under loom, exhaustively
//! and small, and natively, many times and large. No part of the API.

#[cfg(all(test, feature = "alloc"))]
use alloc::sync::Arc;

#[cfg(all(test, feature = "alloc"))]
use crate::HeapRegion;

#[cfg(loom)]
pub use loom::thread;
#[cfg(all(test, not(loom)))]
pub(crate) use std::thread;

#[cfg(loom)]
pub use loom::model;

/// As `model`, for a ring whose calls take many steps: with fewer interruptions of a thread, and longer.
#[cfg(loom)]
pub fn wide_model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.preemption_bound = Some(2);
    builder.check(body);
}

#[cfg(not(loom))]
pub use model as wide_model;

/// Runs `body` in real threads, again and again.
#[cfg(not(loom))]
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    for _ in 0..10 {
        body();
    }
}

/// As many as `native`, or as `loom` where every step is a branch of the search.
pub const fn scaled(loom: u64, native: u64) -> u64 {
    if cfg!(loom) { loom } else { native }
}

#[cfg(all(test, feature = "alloc"))]
pub(crate) fn heap(bytes: usize) -> Arc<HeapRegion> {
    Arc::new(HeapRegion::new(bytes))
}
