//! Latencies in a histogram whose memory is fixed when it is made.

mod bytes;
#[cfg(test)]
mod tests;

use hdrhistogram::Histogram;

/// Three digits: a percentile is off by 0.05 % at most.
const SIGNIFICANT_DIGITS: u8 = 3;

/// The histogram counts picoseconds, since a mean over a block of exchanges has a fraction that matters.
const PS_PER_NS: f64 = 1_000.0;

/// 100 seconds.
const LARGEST_PS: u64 = 100_000_000_000_000;

/// The most samples that are merged: exact as floating point, which percentiles are counted in, and more than years hold.
const MOST_SAMPLES: u64 = 1 << 53;

/// The fewest samples that leave 100 beyond p99.99.
const SAMPLES_FOR_P9999: u64 = 1_000_000;

/// Records latencies in nanoseconds and tells their percentiles.
///
/// Recording allocates nothing and never fails. What cannot be a latency (negative, not a number) is kept out
/// of the figures and counted in [`rejected`](Self::rejected); what is beyond [`LARGEST_NS`](Self::LARGEST_NS)
/// takes part with that value in the percentiles and with its own in mean and maximum. A recorder takes some
/// 300 KiB.
///
/// ```
/// let mut recorder = ring_tune::Recorder::new();
/// for ns in 1..=100 {
///     recorder.record(f64::from(ns));
/// }
/// let summary = recorder.summary().expect("100 samples were recorded");
/// assert!((summary.p50_ns - 50.0).abs() < 0.05);
/// assert!((summary.p99_ns - 99.0).abs() < 0.05);
/// assert_eq!(summary.mean_ns, 50.5);
/// assert_eq!(summary.max_ns, 100.0);
/// assert_eq!(summary.p9999_ns, None, "100 samples cannot tell");
/// ```
#[derive(Debug, Clone)]
pub struct Recorder {
    histogram: Histogram<u64>,
    /// Kept beside the histogram, since its own would be rounded to a bucket.
    sum_ns: f64,
    max_ns: f64,
    rejected: u64,
}

/// The figures of a [`Recorder`] at one moment, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// How many samples the figures stand on.
    pub count: u64,
    /// Exact.
    pub mean_ns: f64,
    /// The median; this and the other percentiles are within 0.05 %.
    pub p50_ns: f64,
    /// 90 % were no slower.
    pub p90_ns: f64,
    /// 99 % were no slower.
    pub p99_ns: f64,
    /// 99.9 % were no slower.
    pub p999_ns: f64,
    /// 99.99 % were no slower; `None` below 1,000,000 samples.
    pub p9999_ns: Option<f64>,
    /// The slowest, exact.
    pub max_ns: f64,
}

impl Recorder {
    /// The largest latency that percentiles can tell: 100 seconds.
    pub const LARGEST_NS: f64 = LARGEST_PS as f64 / PS_PER_NS;

    /// An empty recorder; the only call of this type that allocates, besides `clone`.
    #[must_use]
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LARGEST_PS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that the histogram accepts");
        Self { histogram, sum_ns: 0.0, max_ns: 0.0, rejected: 0 }
    }

    /// Records one latency.
    ///
    /// ```
    /// let mut recorder = ring_tune::Recorder::new();
    /// recorder.record(41.5);
    /// recorder.record(-10.0);
    /// assert_eq!((recorder.count(), recorder.rejected()), (1, 1));
    /// ```
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "between 0 and LARGEST_PS")]
    pub fn record(&mut self, ns: f64) {
        if ns.is_nan() || ns < 0.0 {
            self.rejected = self.rejected.saturating_add(1);
            return;
        }
        let ps = (ns.min(Self::LARGEST_NS) * PS_PER_NS + 0.5) as u64;
        self.histogram.saturating_record(ps);
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds what another one recorded. Samples that would be more than 2^53 with those that are here are counted in
    /// [`rejected`](Self::rejected) instead.
    ///
    /// ```
    /// use ring_tune::Recorder;
    ///
    /// let (mut one, mut other) = (Recorder::new(), Recorder::new());
    /// one.record(10.0);
    /// other.record(30.0);
    /// one.merge(&other);
    /// let summary = one.summary().expect("two samples were recorded");
    /// assert_eq!((summary.count, summary.mean_ns, summary.max_ns), (2, 20.0, 30.0));
    /// ```
    pub fn merge(&mut self, other: &Self) {
        self.rejected = self.rejected.saturating_add(other.rejected);
        if self.count().saturating_add(other.count()) > MOST_SAMPLES {
            self.rejected = self.rejected.saturating_add(other.count());
            return;
        }
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The sum of all latencies, exact but for the rounding of floating point.
    pub(crate) fn sum_ns(&self) -> f64 {
        self.sum_ns
    }

    /// How many latencies the figures stand on; those beyond the range included, those rejected not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// How many samples were negative, not a number, or too many to be merged.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// The latency that a share of all samples, `quantile` of 1, does not exceed; within 0.05 %.
    ///
    /// `None` while nothing is recorded. It is on the caller to ask only for what the samples can tell: 100 of
    /// them should lie beyond.
    ///
    /// ```
    /// let mut recorder = ring_tune::Recorder::new();
    /// assert_eq!(recorder.quantile_ns(0.5), None);
    /// recorder.record(8.0);
    /// assert_eq!(recorder.quantile_ns(0.5), Some(8.0));
    /// ```
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<f64> {
        if self.histogram.is_empty() {
            return None;
        }
        let bucket_ps = self.histogram.value_at_quantile(quantile);
        let middle_ns = self.histogram.median_equivalent(bucket_ps) as f64 / PS_PER_NS;
        Some(middle_ns.min(self.max_ns))
    }

    /// All figures; `None` while nothing is recorded.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let count = self.count();
        Some(Summary {
            count,
            mean_ns: self.sum_ns / count as f64,
            p50_ns: self.quantile_ns(0.5)?,
            p90_ns: self.quantile_ns(0.9)?,
            p99_ns: self.quantile_ns(0.99)?,
            p999_ns: self.quantile_ns(0.999)?,
            p9999_ns: self.quantile_ns(0.9999).filter(|_| count >= SAMPLES_FOR_P9999),
            max_ns: self.max_ns,
        })
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}
