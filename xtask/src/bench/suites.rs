//! The suites: what each measures, and how its figures read.

pub(crate) mod breakdown;
pub(crate) mod pingpong;
pub(crate) mod stream;

use measure::threads::Queue;

use super::plan::{Plan, Scale};
use super::rounds::{Outcome, Spread};

/// A suite, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Suite {
    /// One-way time of a message in a closed loop.
    Pingpong,
    /// Time per message, as fast as they go.
    Stream,
    /// What each part of a message costs.
    Breakdown,
}

impl Suite {
    /// All, in the order of a run.
    pub(crate) const ALL: [Self; 3] = [Self::Pingpong, Self::Stream, Self::Breakdown];

    /// What it measures. `pair` says whether two CPUs are there.
    pub(crate) fn plan(self, scale: Scale, pair: bool) -> Plan {
        match self {
            Self::Pingpong => pingpong::plan(scale, pair),
            Self::Stream => stream::plan(scale, pair),
            Self::Breakdown => breakdown::plan(scale, pair),
        }
    }

    /// What its figures are.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Pingpong => {
                "pingpong: one way of a 56-byte message in a closed loop between two processes; p50, p90 and mean of blocks of 64\n\
                 round trips, p99 and beyond of single ones, measured afterwards"
            }
            Self::Stream => {
                "stream: time per 56-byte message, one process writing, the other reading; p90 and beyond of blocks of 1,000"
            }
            Self::Breakdown => {
                "breakdown: what each part of a message costs, one change at a time; columns as in pingpong and stream"
            }
        }
    }

    /// What follows its table.
    pub(crate) fn reading(self, plan: &Plan, outcome: &Outcome) -> String {
        match self {
            Self::Pingpong => pingpong::reading(plan, outcome),
            Self::Stream => stream::reading(plan, outcome),
            Self::Breakdown => breakdown::reading(plan, outcome),
        }
    }
}

/// Other crates, and what they are called in the names of cases.
const RIVALS: [(&str, Queue); 5] = [
    ("rtrb", Queue::Rtrb),
    ("crossbeam", Queue::Crossbeam),
    ("ringbuf", Queue::Ringbuf),
    ("iceoryx2", Queue::Iceoryx2),
    ("disruptor", Queue::Disruptor),
];

/// A case over each of its rivals, a line each. Nothing where they were not measured.
fn compared<const N: usize>(plan: &Plan, outcome: &Outcome, case: &str, rivals: [&str; N]) -> String {
    let line = |rival| ratio(plan, outcome, case, rival).map(|over| format!("{case} over {rival}: {over}\n"));
    rivals.into_iter().filter_map(line).collect()
}

/// Rings through ring-shm over the bare ones of these names, a line each.
fn through_shm<const N: usize>(plan: &Plan, outcome: &Outcome, bare: [&str; N]) -> String {
    bare.into_iter().map(|bare| compared(plan, outcome, &format!("shm-{bare}"), [bare])).collect()
}

/// The figure of a case in each round that counts.
fn figures<'a>(plan: &Plan, outcome: &'a Outcome, case: &str) -> &'a [f64] {
    let index = plan.cases.iter().position(|known| known.name == case);
    index.and_then(|index| outcome.tallies.get(index)).map_or(&[], |tally| &tally.figures)
}

/// A case over another, formed in each round.
pub(crate) fn ratio(plan: &Plan, outcome: &Outcome, case: &str, over: &str) -> Option<Spread> {
    let (case, over) = (figures(plan, outcome, case), figures(plan, outcome, over));
    Spread::of(&case.iter().zip(over).map(|(case, over)| case / over).collect::<Vec<_>>())
}

/// A case less another, formed in each round.
fn difference(plan: &Plan, outcome: &Outcome, case: &str, less: &str) -> Option<Spread> {
    Spread::of(&differences(plan, outcome, case, less))
}

fn differences(plan: &Plan, outcome: &Outcome, case: &str, less: &str) -> Vec<f64> {
    let (case, less) = (figures(plan, outcome, case), figures(plan, outcome, less));
    case.iter().zip(less).map(|(case, less)| case - less).collect()
}

/// The median of a case's figures.
fn figure(plan: &Plan, outcome: &Outcome, case: &str) -> Option<f64> {
    Spread::of(figures(plan, outcome, case)).map(|spread| spread.median)
}
