//! The parts of a measurement, one after the other: how much they differ is how far a figure of the whole can be
//! trusted.

/// As many as give a spread, and few enough for each to see rare gaps.
const SLICES: usize = 10;

/// Gaps by the slice of the time in which they were.
#[derive(Debug, Clone, Default)]
pub(in crate::jitter) struct Slices {
    length_ns: f64,
    /// A gap counts where it ends.
    counts: [u64; SLICES],
    /// A gap that spans several takes from each.
    lost_ns: [f64; SLICES],
}

/// The least and the most that a slice had.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::jitter) struct Spread {
    pub(in crate::jitter) least: f64,
    pub(in crate::jitter) most: f64,
}

impl Slices {
    /// Of a measurement of this length.
    pub(in crate::jitter) fn of(whole_ns: f64) -> Self {
        Self { length_ns: whole_ns / SLICES as f64, ..Self::default() }
    }

    pub(super) fn record(&mut self, end_ns: f64, ns: f64) {
        let begin_ns = end_ns - ns;
        let last = self.slice(end_ns);
        self.counts[last] += 1;
        for slice in self.slice(begin_ns)..=last {
            let from_ns = slice as f64 * self.length_ns;
            let overlap_ns = end_ns.min(from_ns + self.length_ns) - begin_ns.max(from_ns);
            self.lost_ns[slice] += overlap_ns.max(0.0);
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "a cast from f64 saturates, and takes what is no number as 0"
    )]
    fn slice(&self, at_ns: f64) -> usize {
        ((at_ns / self.length_ns) as usize).min(SLICES - 1)
    }

    /// Gaps a second; none of a measurement that ended before the second slice did.
    pub(in crate::jitter) fn rate(&self, measured_ns: f64) -> Option<Spread> {
        self.spread(measured_ns, |slice| self.counts[slice] as f64 / self.length_ns * 1e9)
    }

    /// The share of the time lost, of 1.
    pub(in crate::jitter) fn share(&self, measured_ns: f64) -> Option<Spread> {
        self.spread(measured_ns, |slice| self.lost_ns[slice] / self.length_ns)
    }

    fn spread(&self, measured_ns: f64, figure: impl Fn(usize) -> f64) -> Option<Spread> {
        // The last one ends with the measurement, whichever way the division was rounded.
        let ended = (1..=SLICES).filter(|&end| (end as f64 - 0.01) * self.length_ns <= measured_ns).count();
        let figures: Vec<f64> = (0..ended).map(figure).collect();
        (figures.len() > 1).then(|| Spread {
            least: figures.iter().copied().fold(f64::INFINITY, f64::min),
            most: figures.iter().copied().fold(0.0, f64::max),
        })
    }
}
