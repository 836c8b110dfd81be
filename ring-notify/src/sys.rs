//! What the kernel does for who waits: the one place where a build for loom differs from a production build.
//!
//! Under loom a model stands for the kernel, with the same functions.

#[cfg(not(loom))]
mod linux;
#[cfg(loom)]
mod model;

use core::time::Duration;

#[cfg(not(loom))]
use linux as system;
#[cfg(loom)]
use model as system;
#[cfg(feature = "std")]
pub(crate) use system::wait_for_any;
#[cfg(feature = "std")]
pub use system::{Event, EventKind};
pub(crate) use system::{
    cpu, doze, futex_wait, futex_wait_any, futex_wake, has_heavy_barriers, heavy_barrier, now,
    register_for_heavy_barriers, yield_now,
};

/// Words that one call waits for at most, from linux/futex.h.
pub(crate) const WAITV_MAX: usize = 128;

/// A point on the monotonic clock; none: never.
pub(crate) type Deadline = Option<Duration>;

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Somebody woke it, a signal came, or there was no need to sleep.
    Up,
    /// The time is over.
    TimedOut,
    /// The kernel does not do this, or a sandbox forbids it.
    Refused,
}

/// The earlier of two points.
pub(crate) fn earlier(one: Deadline, other: Deadline) -> Deadline {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
