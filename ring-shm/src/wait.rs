//! Waiting for another process, in short sleeps.

use core::time::Duration;

use crate::sys;

/// Sleeps get longer from here,
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// to here.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// From there to here where it is told to be patient.
#[cfg(feature = "std")]
const LONGEST_PATIENT_PAUSE: Duration = Duration::from_millis(100);

/// When a wait ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    /// None: later than the clock can say.
    time: Option<Duration>,
}

impl Deadline {
    pub(crate) fn after(timeout: Duration) -> Self {
        Self { time: sys::monotonic().checked_add(timeout) }
    }

    /// Zero once the time is over.
    pub(crate) fn left(self) -> Duration {
        match self.time {
            Some(time) => time.saturating_sub(sys::monotonic()),
            None => Duration::MAX,
        }
    }
}

/// A wait that ends.
#[derive(Debug)]
pub(crate) struct Wait {
    deadline: Deadline,
    pause: Duration,
    longest: Duration,
}

impl Wait {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self::until(Deadline::after(timeout))
    }

    pub(crate) fn until(deadline: Deadline) -> Self {
        Self { deadline, pause: FIRST_PAUSE, longest: LONGEST_PAUSE }
    }

    /// With longer sleeps, where another process has work with each look.
    #[cfg(feature = "std")]
    pub(crate) fn patient(self) -> Self {
        Self { pause: LONGEST_PAUSE, longest: LONGEST_PATIENT_PAUSE, ..self }
    }

    /// Sleeps a little and returns true, or returns false when the time is over. After the last sleep the
    /// caller gets one more look.
    pub(crate) fn again(&mut self) -> bool {
        let left = self.deadline.left();
        if left.is_zero() {
            return false;
        }
        sys::sleep(self.pause.min(left));
        self.pause = (self.pause * 2).min(self.longest);
        true
    }
}
