//! Waiting for a creator, in short sleeps.

use core::time::Duration;

use crate::sys;

/// Sleeps get longer from here,
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// to here.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// A wait that ends.
#[derive(Debug)]
pub(crate) struct Wait {
    /// None: later than the clock can say.
    deadline: Option<Duration>,
    pause: Duration,
}

impl Wait {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { deadline: sys::monotonic().checked_add(timeout), pause: FIRST_PAUSE }
    }

    /// Sleeps a little and returns true, or returns false when the time is over. After the last sleep the
    /// caller gets one more look.
    pub(crate) fn again(&mut self) -> bool {
        let left = match self.deadline {
            Some(deadline) => deadline.saturating_sub(sys::monotonic()),
            None => Duration::MAX,
        };
        if left.is_zero() {
            return false;
        }
        sys::sleep(self.pause.min(left));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}
