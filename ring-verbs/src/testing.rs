//! What the models share: bodies run under loom, exhaustively and small, and natively, many times and large.

#[cfg(not(loom))]
pub(crate) use std::thread;

#[cfg(loom)]
pub(crate) use loom::{model, thread};

/// As `model`, for what takes many steps: with fewer interruptions of a thread.
#[cfg(loom)]
pub(crate) fn wide_model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.preemption_bound = Some(2);
    builder.check(body);
}

#[cfg(not(loom))]
pub(crate) use model as wide_model;

/// Runs `body` in real threads, again and again.
#[cfg(not(loom))]
pub(crate) fn model(body: impl Fn() + Send + Sync + 'static) {
    for _ in 0..20 {
        body();
    }
}

/// As many as `native`, or as `loom` where every step is a branch of the search.
pub(crate) const fn scaled(loom: u64, native: u64) -> u64 {
    if cfg!(loom) { loom } else { native }
}
