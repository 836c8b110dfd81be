//! Points in time.

use core::time::Duration;

use crate::system;

/// A point in time, on the monotonic clock.
///
/// ```
/// use std::time::Duration;
///
/// let deadline = ring_verbs::Deadline::after(Duration::from_secs(60));
/// assert!(deadline.left() > Duration::from_secs(50));
/// assert_eq!(deadline.late(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// So long from now; at the latest in 500 years.
    pub fn after(wait: Duration) -> Self {
        const LONG: Duration = Duration::from_secs(500 * 366 * 86_400);
        Self(system::now() + wait.min(LONG))
    }

    /// The time until then; zero, where it is over.
    pub fn left(self) -> Duration {
        self.0.saturating_sub(system::now())
    }

    /// How long ago it was, where it is over.
    pub fn late(self) -> Option<Duration> {
        system::now().checked_sub(self.0)
    }
}
