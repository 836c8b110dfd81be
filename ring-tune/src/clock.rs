//! A clock for short intervals: ordered against the code around it, calibrated, with its own cost known.
//!
//! | source | start | stop |
//! |---|---|---|
//! | invariant TSC (x86-64) | `lfence; rdtsc` | `rdtscp; lfence` |
//! | generic timer (AArch64) | `isb; mrs cntvct_el0` | `isb; mrs cntvct_el0; isb` |
//! | `CLOCK_MONOTONIC` | `clock_gettime` | `clock_gettime` |
//!
//! The start waits until earlier code is done, so that its time is not charged to the interval; the stop waits
//! for the interval's own code, and later code waits for the stop.

mod counter;
mod system;
#[cfg(test)]
mod tests;

use system::{monotonic_ns, monotonic_raw_ns};

/// How long the counter is compared with the kernel's clock; the two stamps are good to some 50 ns each.
const CALIBRATION_NS: u64 = 20_000_000;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Reads stamps in raw ticks and converts their differences to nanoseconds.
///
/// Ticks of the processor's counter are comparable between the cores and processes of one machine, so raw
/// stamps may travel in messages and be converted by one clock. Whether the cores agree is up to the machine: the
/// command `ring-tune clock` tries it, and [`between_ns`](Self::between_ns) bears it. A clock is a small value: copy it
/// to where it is used.
///
/// ```
/// let clock = ring_tune::Clock::new();
/// let start = clock.start();
/// std::thread::sleep(std::time::Duration::from_millis(2));
/// let stop = clock.stop();
/// assert!(clock.between_ns(start, stop) >= 1_900_000.0);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    source: Source,
    hz: f64,
    ns_per_tick: f64,
}

/// Where a [`Clock`] reads its ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The time stamp counter of x86-64, which runs at one rate in all power states.
    Tsc,
    /// The virtual counter of the generic timer of AArch64.
    Cntvct,
    /// The kernel's `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic,
}

impl Clock {
    /// The best clock of this machine: the processor's counter where it is invariant, else
    /// [`monotonic`](Self::monotonic).
    ///
    /// Takes 20 ms on x86-64, to calibrate the counter against `CLOCK_MONOTONIC_RAW`.
    ///
    /// ```
    /// let clock = ring_tune::Clock::new();
    /// assert!(clock.hz() > 1e6);
    /// println!("{:?} at {:.0} Hz", clock.source(), clock.hz());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        let Some(source) = counter::source() else { return Self::monotonic() };
        match counter::announced_hz().or_else(|| calibrated_hz(counter::start)) {
            Some(hz) => Self::with_rate(source, hz),
            None => Self::monotonic(),
        }
    }

    /// A clock that asks the kernel for `CLOCK_MONOTONIC`: available everywhere, slower, one tick is 1 ns.
    ///
    /// ```
    /// use ring_tune::{Clock, Source};
    ///
    /// let clock = Clock::monotonic();
    /// assert_eq!(clock.source(), Source::Monotonic);
    /// assert_eq!(clock.ticks_to_ns(7), 7.0);
    /// ```
    #[must_use]
    pub fn monotonic() -> Self {
        Self::with_rate(Source::Monotonic, NS_PER_SECOND as f64)
    }

    fn with_rate(source: Source, hz: f64) -> Self {
        Self { source, hz, ns_per_tick: NS_PER_SECOND as f64 / hz }
    }

    /// Stamps the start of an interval, in ticks, once earlier code is done.
    ///
    /// Stores before it may still be on their way to the cache.
    #[inline(always)]
    #[must_use]
    pub fn start(&self) -> u64 {
        match self.source {
            Source::Monotonic => monotonic_ns(),
            Source::Tsc | Source::Cntvct => counter::start(),
        }
    }

    /// Stamps the end of an interval, in ticks, once the code of the interval is done.
    #[inline(always)]
    #[must_use]
    pub fn stop(&self) -> u64 {
        match self.source {
            Source::Monotonic => monotonic_ns(),
            Source::Tsc | Source::Cntvct => counter::stop(),
        }
    }

    /// Converts a difference of stamps to nanoseconds.
    ///
    /// The fraction matters where a block of many exchanges is divided by their number.
    ///
    /// ```
    /// let clock = ring_tune::Clock::monotonic();
    /// assert_eq!(clock.ticks_to_ns(6_405) / 128.0, 50.0390625);
    /// ```
    #[inline]
    #[must_use]
    pub fn ticks_to_ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Nanoseconds from `start` to `stop`; negative where `stop` came first, as it may between two cores whose
    /// counters disagree.
    ///
    /// ```
    /// let clock = ring_tune::Clock::monotonic();
    /// assert_eq!(clock.between_ns(100, 140), 40.0);
    /// assert_eq!(clock.between_ns(140, 100), -40.0);
    /// ```
    #[inline]
    #[must_use]
    pub fn between_ns(&self, start: u64, stop: u64) -> f64 {
        stop.wrapping_sub(start) as i64 as f64 * self.ns_per_tick
    }

    /// Where the ticks come from.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// Ticks in a second.
    #[must_use]
    pub fn hz(&self) -> f64 {
        self.hz
    }

    /// Measures what a start and a stop with nothing between them report, in nanoseconds: the part of every
    /// interval that is the clock itself.
    ///
    /// The mean of 64 pairs, in the quietest of 64 blocks; takes some 100 µs.
    ///
    /// ```
    /// let clock = ring_tune::Clock::new();
    /// assert!(clock.measure_cost_ns() >= 0.0);
    /// ```
    #[must_use]
    pub fn measure_cost_ns(&self) -> f64 {
        const PAIRS: u32 = 64;
        const BLOCKS: u32 = 64;
        let block = || {
            let ticks: u64 = (0..PAIRS)
                .map(|_| {
                    let start = self.start();
                    self.stop().saturating_sub(start)
                })
                .sum();
            self.ticks_to_ns(ticks) / f64::from(PAIRS)
        };
        (0..BLOCKS).map(|_| block()).fold(f64::INFINITY, f64::min)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Compares a counter with the kernel's clock over [`CALIBRATION_NS`]; `None` where the counter stands still or runs
/// backwards, as a faulty virtual machine may show it.
fn calibrated_hz(counter: impl Fn() -> u64) -> Option<f64> {
    let first = Paired::read(&counter)?;
    let last = loop {
        let last = Paired::read(&counter)?;
        if last.ns.saturating_sub(first.ns) >= CALIBRATION_NS {
            break last;
        }
        core::hint::spin_loop();
    };
    let ticks = last.ticks.checked_sub(first.ticks).filter(|&ticks| ticks > 0)?;
    Some(ticks as f64 * NS_PER_SECOND as f64 / (last.ns - first.ns) as f64)
}

/// Both clocks at one moment.
struct Paired {
    ticks: u64,
    ns: u64,
}

impl Paired {
    /// Keeps the tightest of some attempts: an interrupt between the two readings would shift them. `None` where the
    /// counter has gone back in all of them.
    fn read(counter: impl Fn() -> u64) -> Option<Self> {
        const ATTEMPTS: u32 = 16;
        let attempts = (0..ATTEMPTS).filter_map(|_| {
            let before = counter();
            let ns = monotonic_raw_ns();
            let width = counter().checked_sub(before)?;
            Some((width, Self { ticks: before + width / 2, ns }))
        });
        attempts.min_by_key(|(width, _)| *width).map(|(_, paired)| paired)
    }
}
