//! Models of waiting: nobody sleeps on while there is something. Natively the same bodies run in threads.

mod orders;
mod pair;
mod slot;
mod wakes;

use std::vec::Vec;

use crate::{Barrier, Options, Strategy};

#[cfg(loom)]
pub(crate) use loom::thread;
#[cfg(not(loom))]
pub(crate) use std::thread;

/// Explores every schedule of `body`.
#[cfg(loom)]
pub(crate) fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.check(body);
}

/// As `model`, for more threads: they are switched wherever one sleeps or ends, and so many times elsewhere.
#[cfg(loom)]
pub(crate) fn wide_model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

#[cfg(not(loom))]
pub(crate) fn wide_model(_: usize, body: impl Fn() + Send + Sync + 'static) {
    model(body);
}

/// Runs `body` in real threads, again and again.
#[cfg(not(loom))]
pub(crate) fn model(body: impl Fn() + Send + Sync + 'static) {
    for _ in 0..200 {
        body();
    }
}

/// Options that sleep at once and for ever.
fn sleepy(barrier: Barrier) -> Options {
    Options::new().strategy(Strategy::futex().spins(0)).barrier(barrier).slice(None)
}

/// Each barrier for both sides, and one of each.
fn barriers() -> Vec<[Barrier; 2]> {
    use Barrier::{Asymmetric, Plain};
    std::vec![[Asymmetric, Asymmetric], [Plain, Plain], [Asymmetric, Plain]]
}
