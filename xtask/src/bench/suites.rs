//! The suites: what each measures, and how its figures read.

pub(crate) mod breakdown;
pub(crate) mod notify;
pub(crate) mod pingpong;
pub(crate) mod stream;

use measure::threads::Queue;
use measure::usage::Used;
use serde::Serialize;

use super::plan::{Plan, Scale};
use super::rounds::{Outcome, Spread, Tally};

/// A suite, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Suite {
    /// One-way time of a message in a closed loop.
    Pingpong,
    /// Time per message, as fast as they go.
    Stream,
    /// One-way time of messages at fixed gaps to a receiver that waits, and what waiting costs.
    Notify,
    /// What each part of a message costs.
    Breakdown,
}

impl Suite {
    /// All, in the order of a run.
    pub(crate) const ALL: [Self; 4] = [Self::Pingpong, Self::Stream, Self::Notify, Self::Breakdown];

    /// What it measures. `pair` says whether two CPUs are there.
    pub(crate) fn plan(self, scale: Scale, pair: bool) -> Plan {
        match self {
            Self::Pingpong => pingpong::plan(scale, pair),
            Self::Stream => stream::plan(scale, pair),
            Self::Notify => notify::plan(scale, pair),
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
            Self::Notify => {
                "notify: one way of a 56-byte message to a receiver that waits, from when it was due; due at fixed gaps, at 0us once\n\
                 the one before was taken (p50, p90 and mean of blocks of 64). Per message: CPU time of the receiver, system\n\
                 calls and voluntary context switches of both processes; the calls are counted in a pass of their own"
            }
            Self::Breakdown => {
                "breakdown: what each part of a message costs, one change at a time; columns as in pingpong and stream"
            }
        }
    }

    /// Its cases beside each other, where the machine-readable figures have more than ratios to the floor.
    pub(crate) fn comparisons(self, plan: &Plan, outcome: &Outcome) -> Vec<Comparison> {
        match self {
            Self::Notify => notify::comparisons(plan, outcome),
            Self::Stream => stream::comparisons(plan, outcome),
            Self::Pingpong | Self::Breakdown => vec![],
        }
    }

    /// What follows its table.
    pub(crate) fn reading(self, plan: &Plan, outcome: &Outcome) -> String {
        match self {
            Self::Pingpong => pingpong::reading(plan, outcome),
            Self::Stream => stream::reading(plan, outcome),
            Self::Notify => notify::reading(plan, outcome),
            Self::Breakdown => breakdown::reading(plan, outcome),
        }
    }
}

/// A case beside another, in this run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) suite: &'static str,
    pub(crate) case: String,
    /// The other one.
    pub(crate) with: String,
    /// Which figure of both.
    pub(crate) of: &'static str,
    /// What is formed of them, in each round.
    pub(crate) form: Form,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// What is formed of two figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// One over the other.
    Ratio,
    /// One less the other, in nanoseconds.
    DifferenceNs,
}

impl Comparison {
    /// One over the other, of their figures in each round; nothing where a round lacks one.
    pub(crate) fn ratio(
        suite: &'static str,
        cases: [&str; 2],
        of: &'static str,
        ours: &[f64],
        theirs: &[f64],
    ) -> Option<Self> {
        Self::each(suite, cases, of, Form::Ratio, ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
    }

    /// One less the other.
    pub(crate) fn difference(
        suite: &'static str,
        cases: [&str; 2],
        of: &'static str,
        ours: &[f64],
        theirs: &[f64],
    ) -> Option<Self> {
        Self::each(
            suite,
            cases,
            of,
            Form::DifferenceNs,
            ours.iter().zip(theirs).map(|(ours, theirs)| ours - theirs),
        )
    }

    fn each(
        suite: &'static str,
        [case, with]: [&str; 2],
        of: &'static str,
        form: Form,
        values: impl Iterator<Item = f64>,
    ) -> Option<Self> {
        let Spread { median, min, max } = Spread::of(&values.collect::<Vec<_>>())?;
        Some(Self { suite, case: case.into(), with: with.into(), of, form, median, min, max })
    }
}

impl core::fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { case, with, of, median, min, max, .. } = self;
        match self.form {
            Form::Ratio => writeln!(formatter, "{case} over {with}, {of}: {median:.2} [{min:.2}–{max:.2}]"),
            Form::DifferenceNs => {
                writeln!(formatter, "{case} less {with}, {of}: {median:+.2} ns [{min:+.2}–{max:+.2}]")
            }
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
    tally(plan, outcome, case).map_or(&[], |tally| &tally.figures)
}

fn tally<'a>(plan: &Plan, outcome: &'a Outcome, case: &str) -> Option<&'a Tally> {
    outcome.tallies.get(plan.cases.iter().position(|known| known.name == case)?)
}

/// CPU time that the receiver of a case took for a message, in each round that counts.
fn costs(plan: &Plan, outcome: &Outcome, case: &str) -> Vec<f64> {
    let used = tally(plan, outcome, case).map_or(&[][..], |tally| &tally.used);
    used.iter().map(|used| used.receiver.cpu_ns as f64 / used.messages as f64).collect()
}

/// What a case used while system calls were counted.
fn counted(plan: &Plan, outcome: &Outcome, case: &str) -> Option<Used> {
    tally(plan, outcome, case)?.counted
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
