//! Times as queue pairs encode them.

use core::fmt;
use core::time::Duration;

/// How long a queue pair waits for an acknowledgement before it sends again: 4.096 µs × 2^n, n from 1 to 31, or for
/// ever (InfiniBand specification, volume 1, 9.7.6.1.3). Devices may wait up to four times as long. By default 67.1 ms.
///
/// ```
/// use std::time::Duration;
///
/// use ring_verbs::AckTimeout;
///
/// let timeout = AckTimeout::at_least(Duration::from_millis(60));
/// assert_eq!(timeout.duration(), Some(Duration::from_nanos(67_108_864)));
/// assert_eq!(timeout, AckTimeout::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AckTimeout(u8);

impl AckTimeout {
    /// Never sends again by itself: a lost packet stops the queue pair without an error.
    pub const FOREVER: Self = Self(0);

    /// About 2.4 hours.
    pub const LONGEST: Self = Self(31);

    /// The shortest that is not below `wait`, and at most [`Self::LONGEST`].
    pub fn at_least(wait: Duration) -> Self {
        (1..31).map(Self).find(|timeout| timeout.duration() >= Some(wait)).unwrap_or(Self::LONGEST)
    }

    /// What is really waited, on the sender's side; none: for ever.
    pub fn duration(self) -> Option<Duration> {
        (self.0 != 0).then(|| Duration::from_nanos(4096 << self.0))
    }

    /// The exponent n; 0 means without end.
    pub fn encoding(self) -> u8 {
        self.0
    }
}

impl Default for AckTimeout {
    fn default() -> Self {
        Self(14)
    }
}

impl fmt::Debug for AckTimeout {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.duration() {
            Some(duration) => write!(to, "{duration:?}"),
            None => to.write_str("for ever"),
        }
    }
}

/// Hundredths of a millisecond by encoding (InfiniBand specification, volume 1, table 45).
const RNR_TIMERS: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
    3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// How long a receiver that has no buffer asks the sender to wait: 10 µs to 655.36 ms, in 32 steps. By default 0.64 ms.
///
/// ```
/// use std::time::Duration;
///
/// use ring_verbs::RnrTimer;
///
/// assert_eq!(RnrTimer::at_least(Duration::from_micros(700)).duration(), Duration::from_micros(960));
/// assert_eq!(RnrTimer::default().duration(), Duration::from_micros(640));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RnrTimer(u8);

impl RnrTimer {
    /// The shortest that is not below `wait`, and at most 655.36 ms.
    pub fn at_least(wait: Duration) -> Self {
        (1..32).map(Self).find(|timer| timer.duration() >= wait).unwrap_or(Self(0))
    }

    /// What the sender really waits, at least.
    pub fn duration(self) -> Duration {
        Duration::from_micros(10 * u64::from(RNR_TIMERS[usize::from(self.0)]))
    }

    /// The code, below 32. The code 0 stands for the longest.
    pub fn encoding(self) -> u8 {
        self.0
    }
}

impl Default for RnrTimer {
    fn default() -> Self {
        Self(12)
    }
}

impl fmt::Debug for RnrTimer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?}", self.duration())
    }
}

/// How often a request is sent again before the queue pair gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retries {
    /// So many times; more than 6 count as 6.
    Times(u8),
    /// Until it is done. For acknowledgements that do not come the specification has no such thing, and means seven
    /// times; soft-RoCE never gives up.
    Forever,
}

impl Retries {
    /// The code; 7 means without end.
    pub fn encoding(self) -> u8 {
        match self {
            Self::Times(times) => times.min(6),
            Self::Forever => 7,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{AckTimeout, RnrTimer};

    #[test]
    fn time_outs_are_rounded_up_and_say_what_they_are() {
        for encoding in 1..=31 {
            let timeout = AckTimeout(encoding);
            let duration = timeout.duration().expect("it ends");
            assert_eq!(AckTimeout::at_least(duration), timeout);
            assert_eq!(AckTimeout::at_least(duration - Duration::from_nanos(1)), timeout);
        }
        assert_eq!(AckTimeout::at_least(Duration::ZERO).encoding(), 1);
        assert_eq!(AckTimeout::at_least(Duration::MAX), AckTimeout::LONGEST);
        assert_eq!(AckTimeout(14).duration(), Some(Duration::from_nanos(67_108_864)));
        assert_eq!(AckTimeout::FOREVER.duration(), None);
    }

    #[test]
    fn timers_of_receivers_that_are_not_ready_are_rounded_up() {
        assert_eq!(RnrTimer::at_least(Duration::ZERO).duration(), Duration::from_micros(10));
        assert_eq!(RnrTimer::at_least(Duration::from_micros(640)).encoding(), 12);
        assert_eq!(RnrTimer::at_least(Duration::from_micros(641)).duration(), Duration::from_micros(960));
        assert_eq!(RnrTimer::at_least(Duration::from_millis(491)).encoding(), 31);
        assert_eq!(RnrTimer::at_least(Duration::MAX).duration(), Duration::from_micros(655_360));
    }
}
