//! Round after round, a slice of each series in changing order, and what comes out for each case.
//!
//! A ratio is formed inside a round, where both of its sides met the same machine. A round in which the floor
//! itself moved by more than 30 % between its first and its last slice is dropped.

#[cfg(test)]
mod tests;

use std::time::Instant;

use anyhow::Result;
use measure::usage::Used;
use measure::{Samples, Slice};
use ring_tune::Recorder;

use super::plan::{Plan, Source};

/// The most that the floor may move within a round: last over first, or first over last.
const FLOOR_MOVES: f64 = 1.3;

/// Slices of each series between those of the floor. A process that is pre-empted spoils a whole slice of a stream:
/// of several the median may still be a good one.
const PASSES: u32 = 3;

/// What all rounds have shown of one case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Samples for median and mean.
    pub(crate) centre: Vec<f64>,
    /// Samples for the tails.
    pub(crate) tails: Recorder,
    /// Messages that the tails stand on.
    pub(crate) messages: u64,
    /// The case's figure in each round that counts.
    pub(crate) figures: Vec<f64>,
    /// That figure over the floor's.
    pub(crate) ratios: Vec<f64>,
    /// What both processes used in each round that counts, where the arm tells.
    pub(crate) used: Vec<Used>,
    /// The same of the pass in which system calls were counted.
    pub(crate) counted: Option<Used>,
}

/// What a suite has shown.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// One for each case of the plan.
    pub(crate) tallies: Vec<Tally>,
    /// For each series of the plan its figure in each round that counts.
    pub(crate) series: Vec<Vec<f64>>,
    /// Rounds that count.
    pub(crate) rounds: u32,
    /// Rounds in which the floor moved.
    pub(crate) dropped: u32,
    /// Whether there was no time for all rounds.
    pub(crate) cut_short: bool,
}

/// Runs all rounds. `run` runs a slice of a series, `begin` is told about each round.
pub(crate) fn run(
    plan: &Plan,
    mut begin: impl FnMut(u32),
    mut run: impl FnMut(usize, Slice) -> Result<Samples>,
) -> Result<Outcome> {
    let mut outcome = Outcome {
        tallies: vec![Tally::default(); plan.cases.len()],
        series: vec![vec![]; plan.series.len()],
        ..Outcome::default()
    };
    let begun = Instant::now();
    for round in 0..plan.scale.rounds {
        if round > 0 && plan.scale.at_most.is_some_and(|at_most| begun.elapsed() > at_most) {
            outcome.cut_short = true;
            break;
        }
        begin(round);
        let Some(mut samples) = run_closely(plan, round, &mut run)? else {
            outcome.dropped += 1;
            continue;
        };
        for series in order(plan.series.len(), round * PASSES) {
            if let Some(slice) = plan.series[series].afterwards {
                samples[series].append(run(series, slice)?);
            }
        }
        outcome.add(plan, &samples);
    }
    Ok(outcome)
}

/// The part of a round that ratios are formed of: the floor, all others a few times, the floor again. Nothing if it
/// moved.
fn run_closely(
    plan: &Plan,
    round: u32,
    run: &mut impl FnMut(usize, Slice) -> Result<Samples>,
) -> Result<Option<Vec<Samples>>> {
    let edges = plan.edges.as_ref().map_or(&[][..], Source::series);
    let mut samples = vec![Samples::default(); plan.series.len()];
    let mut last = samples.clone();
    let mut run_into = |samples: &mut [Samples], series: usize| -> Result<()> {
        if let Some(slice) = plan.series[series].closely {
            samples[series].append(run(series, slice)?);
        }
        Ok(())
    };
    for &series in edges {
        run_into(&mut samples, series)?;
    }
    for pass in 0..PASSES {
        let order = order(plan.series.len(), round * PASSES + pass);
        for series in order.into_iter().filter(|series| !edges.contains(series)) {
            run_into(&mut samples, series)?;
        }
    }
    for &series in edges {
        run_into(&mut last, series)?;
    }
    if let Some(edges) = &plan.edges {
        let floor_figure = |samples: &[Samples]| figure(&samples[fastest(samples, edges)]);
        if has_moved(floor_figure(&samples), floor_figure(&last)) {
            return Ok(None);
        }
    }
    for (samples, last) in samples.iter_mut().zip(last) {
        samples.append(last);
    }
    Ok(Some(samples))
}

impl Outcome {
    /// Takes in what was counted of each case.
    pub(crate) fn count(&mut self, counted: &[Option<Used>]) {
        for (tally, counted) in self.tallies.iter_mut().zip(counted) {
            tally.counted = *counted;
        }
    }

    /// Takes in a round that counts.
    fn add(&mut self, plan: &Plan, samples: &[Samples]) {
        self.rounds += 1;
        for (figures, samples) in self.series.iter_mut().zip(samples) {
            figures.push(figure(samples));
        }
        for (case, tally) in plan.cases.iter().zip(&mut self.tallies) {
            let source = &samples[fastest(samples, &case.source)];
            let seen = figure(source);
            tally.centre.extend(&source.centre);
            for &ns in &source.tails {
                tally.tails.record(ns);
            }
            tally.messages += source.messages;
            tally.figures.push(seen);
            tally.used.extend(source.used);
            if let Some(floor) = &case.floor {
                tally.ratios.push(seen / figure(&samples[fastest(samples, floor)]));
            }
        }
    }
}

/// The one number that stands for the slices of a round.
fn figure(samples: &Samples) -> f64 {
    median(&samples.centre)
}

/// The series of a source that was the fastest in this round.
fn fastest(samples: &[Samples], source: &Source) -> usize {
    let figure_of = |series: &usize| figure(&samples[*series]);
    let series = source.series().iter().min_by(|one, other| figure_of(one).total_cmp(&figure_of(other)));
    *series.expect("a source has one series or more")
}

fn has_moved(first: f64, last: f64) -> bool {
    first.max(last) > FLOOR_MOVES * first.min(last)
}

/// The series in an order that changes with the seed, and is the same in each run.
fn order(count: usize, seed: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = u64::from(seed);
    for left in (1..count).rev() {
        // SplitMix64, of which any seed will do.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let chosen = (mixed ^ (mixed >> 31)) % (left as u64 + 1);
        order.swap(left, usize::try_from(chosen).expect("not above `left`"));
    }
    order
}

/// The middle value; the mean of the two in the middle of an even number. NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// The smallest value that a share of all values, `share` of 1, does not exceed; nothing of none.
#[expect(clippy::cast_possible_truncation, reason = "between 0 and a length")]
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Median, smallest and largest of values that rounds have shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Nothing where there are no values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let min = values.iter().copied().min_by(f64::total_cmp)?;
        let max = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Self { median: median(values), min, max })
    }
}

impl core::fmt::Display for Spread {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{:.2} [{:.2}–{:.2}]", self.median, self.min, self.max)
    }
}
