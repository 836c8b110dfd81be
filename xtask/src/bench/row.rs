//! The figures of one case, as they are printed and written.

#[cfg(test)]
mod tests;

use measure::usage::Used;
use serde::Serialize;

use super::plan::{Case, Plan};
use super::rounds::{Outcome, Spread, Tally, median, quantile};
use super::suites;

/// Times in nanoseconds. What is missing is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) suite: &'static str,
    pub(crate) case: String,
    pub(crate) unit: &'static str,
    pub(crate) p50: Option<f64>,
    pub(crate) p90: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) p999: Option<f64>,
    /// Of 10^6 samples or more.
    pub(crate) p9999: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) mean: Option<f64>,
    pub(crate) samples: u64,
    pub(crate) rounds: u32,
    pub(crate) dropped_rounds: u32,
    pub(crate) ratio_to_floor: Option<f64>,
    pub(crate) ratio_min: Option<f64>,
    pub(crate) ratio_max: Option<f64>,
    /// Of a ring through ring-shm: over the same ring without it, formed in each round.
    pub(crate) ratio_to_spsc: Option<f64>,
    pub(crate) ratio_to_spsc_min: Option<f64>,
    pub(crate) ratio_to_spsc_max: Option<f64>,
    /// CPU time of the receiver, the median of all rounds. The sender spins until a message is due, in every arm.
    pub(crate) cpu_ns_per_message: Option<f64>,
    /// The same of the sender.
    pub(crate) sender_cpu_ns_per_message: Option<f64>,
    /// Of both processes, counted in a pass of their own.
    pub(crate) syscalls_per_message: Option<f64>,
    /// The sender's part of it.
    pub(crate) sender_syscalls_per_message: Option<f64>,
    /// Voluntary context switches of both processes.
    pub(crate) switches_per_message: Option<f64>,
    /// The sender's part of it.
    pub(crate) sender_switches_per_message: Option<f64>,
}

/// The rows of a suite, in the order of its cases.
pub(crate) fn rows(plan: &Plan, outcome: &Outcome) -> Vec<Row> {
    let cases = plan.cases.iter().zip(&outcome.tallies);
    cases.map(|(case, tally)| row(plan, case, tally, outcome)).collect()
}

fn row(plan: &Plan, case: &Case, tally: &Tally, outcome: &Outcome) -> Row {
    let tails = tally.tails.summary();
    let is_stream = case
        .source
        .series()
        .iter()
        .any(|&series| plan.series[series].closely.is_some_and(|slice| slice.is_stream()));
    let ratio = Spread::of(&tally.ratios);
    let bare = case.name.strip_prefix("shm-").and_then(|bare| suites::ratio(plan, outcome, &case.name, bare));
    let is_there = !tally.centre.is_empty();
    let of_rounds = |of: fn(&Used) -> u64| per_message(tally.used.iter(), of);
    let counted = |of: fn(&Used) -> u64| per_message(tally.counted.iter(), of);
    Row {
        suite: plan.suite,
        case: case.name.clone(),
        unit: "ns",
        p50: is_there.then(|| median(&tally.centre)),
        // Of a stream the centre has one sample a round. A single round trip bears the clock's weight, which a block
        // does not: there the percentile that is no tail yet comes from blocks.
        p90: if is_stream { tails.map(|tails| tails.p90_ns) } else { quantile(&tally.centre, 0.9) },
        p99: tails.map(|tails| tails.p99_ns),
        p999: tails.map(|tails| tails.p999_ns),
        p9999: tails.and_then(|tails| tails.p9999_ns),
        max: tails.map(|tails| tails.max_ns),
        mean: is_there.then(|| tally.centre.iter().sum::<f64>() / tally.centre.len() as f64),
        samples: tally.messages,
        rounds: outcome.rounds,
        dropped_rounds: outcome.dropped,
        ratio_to_floor: ratio.map(|ratio| ratio.median),
        ratio_min: ratio.map(|ratio| ratio.min),
        ratio_max: ratio.map(|ratio| ratio.max),
        ratio_to_spsc: bare.map(|ratio| ratio.median),
        ratio_to_spsc_min: bare.map(|ratio| ratio.min),
        ratio_to_spsc_max: bare.map(|ratio| ratio.max),
        cpu_ns_per_message: of_rounds(|used| used.receiver.cpu_ns),
        sender_cpu_ns_per_message: of_rounds(|used| used.sender.cpu_ns),
        syscalls_per_message: counted(|used| used.receiver.syscalls + used.sender.syscalls),
        sender_syscalls_per_message: counted(|used| used.sender.syscalls),
        switches_per_message: of_rounds(|used| used.receiver.switches + used.sender.switches),
        sender_switches_per_message: of_rounds(|used| used.sender.switches),
    }
}

/// The median of what was used for a message; nothing where nobody told.
fn per_message<'a>(used: impl Iterator<Item = &'a Used>, of: fn(&Used) -> u64) -> Option<f64> {
    let each: Vec<f64> = used.map(|used| of(used) as f64 / used.messages as f64).collect();
    (!each.is_empty()).then(|| median(&each))
}
