//! The gaps of one CPU.

mod slices;

use ring_tune::Recorder;
use serde::Serialize;

use super::usage::Usage;
pub(super) use slices::Slices;

/// Why a thread did not run, as far as its own counters tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    ContextSwitch,
    PageFault,
    Other,
}

impl Cause {
    pub(super) const ALL: [Self; 3] = [Self::ContextSwitch, Self::PageFault, Self::Other];

    /// The cause of a gap in which this was counted. A thread that waits for a device to bring a page gives up the CPU
    /// too; the fault is the cause.
    pub(super) fn of(counted: Usage) -> Self {
        if counted.involuntary > 0 || (counted.voluntary > 0 && counted.major_faults == 0) {
            Self::ContextSwitch
        } else if counted.minor_faults > 0 || counted.major_faults > 0 {
            Self::PageFault
        } else {
            Self::Other
        }
    }
}

/// The gaps of one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) lost_ns: f64,
    pub(super) max_ns: f64,
}

/// One gap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Gap {
    /// When it ended, from the start of the measurement.
    pub(super) at_seconds: f64,
    pub(super) ns: f64,
    pub(super) cause: Cause,
}

/// As many as a person looks at.
const LONGEST: usize = 8;

/// Gaps from a power of two of nanoseconds to the next, up to 2^63.
const BUCKETS: usize = 64;

/// All gaps of one CPU; recording allocates nothing.
#[derive(Debug, Clone)]
pub(super) struct Gaps {
    pub(super) recorder: Recorder,
    tallies: [Tally; Cause::ALL.len()],
    /// By the exponent of the length, and by cause.
    buckets: [[u64; Cause::ALL.len()]; BUCKETS],
    /// The longest first.
    longest: [Option<Gap>; LONGEST],
    pub(super) slices: Slices,
}

impl Gaps {
    pub(super) fn new() -> Self {
        // New memory has no pages until it is written to, and each would be a fault when first a gap needs it. A copy
        // is written to from end to end.
        let recorder = Recorder::new().clone();
        Self {
            recorder,
            tallies: [Tally::default(); Cause::ALL.len()],
            buckets: [[0; Cause::ALL.len()]; BUCKETS],
            longest: [None; LONGEST],
            slices: Slices::default(),
        }
    }

    pub(super) fn record(&mut self, gap: Gap) {
        self.recorder.record(gap.ns);
        self.slices.record(gap.at_seconds * 1e9, gap.ns);
        let tally = &mut self.tallies[gap.cause as usize];
        tally.count += 1;
        tally.lost_ns += gap.ns;
        tally.max_ns = tally.max_ns.max(gap.ns);
        self.buckets[bucket(gap.ns)][gap.cause as usize] += 1;
        if self.longest[LONGEST - 1].is_none_or(|least| least.ns < gap.ns) {
            self.longest[LONGEST - 1] = Some(gap);
            let is_shorter = |place: usize| self.longest[place].is_none_or(|other| other.ns < gap.ns);
            let place = (0..LONGEST - 1).find(|&place| is_shorter(place)).unwrap_or(LONGEST - 1);
            self.longest[place..].rotate_right(1);
        }
    }

    pub(super) fn tally(&self, cause: Cause) -> Tally {
        self.tallies[cause as usize]
    }

    pub(super) fn lost_ns(&self) -> f64 {
        self.tallies.iter().map(|tally| tally.lost_ns).sum()
    }

    /// The lengths that occur, the shortest first: from (in ns), below (in ns), and how many of each cause.
    pub(super) fn histogram(&self) -> impl Iterator<Item = (f64, f64, [u64; Cause::ALL.len()])> {
        let buckets = self.buckets.iter().zip(0_i32..);
        let buckets = buckets.filter(|(counts, _)| counts.iter().any(|&count| count > 0));
        buckets.map(|(counts, exponent)| (2_f64.powi(exponent), 2_f64.powi(exponent + 1), *counts))
    }

    pub(super) fn longest(&self) -> impl Iterator<Item = &Gap> {
        self.longest.iter().flatten()
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "a cast from f64 saturates, and the logarithm is below 64"
)]
fn bucket(ns: f64) -> usize {
    (ns as u64).max(1).ilog2() as usize
}
