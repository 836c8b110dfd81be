use measure::usage::Usage;

use super::*;
use crate::bench::arms::{Change, Spec};
use crate::bench::memory::Kind;
use crate::bench::plan::{FLOOR_LINES, Scale};

/// A plan with the floor (series 0 and 1) and one ring (series 2).
fn plan(rounds: u32) -> Plan {
    let mut plan = Plan::new("pingpong", Scale { rounds, quick: true, compare: false, at_most: None }, true);
    let ring = Spec::Spsc { kind: Kind::Usual, depth: 16, change: Change::None };
    plan.floor_case("floor", Kind::Usual, FLOOR_LINES);
    plan.round_trips("spsc", ring);
    assert_eq!(plan.series.len(), 3);
    plan
}

fn samples(centre: &[f64]) -> Samples {
    Samples { centre: centre.to_vec(), ..Samples::default() }
}

/// Plays back what each series shows, slice after slice.
fn play(plan: &Plan, mut slices: [Vec<f64>; 3]) -> Outcome {
    for slices in &mut slices {
        slices.reverse();
    }
    let mut ring = vec![];
    run_all(plan, |series| {
        // What is no floor shows the same in each of its slices of a round.
        if series == 2 {
            if ring.is_empty() {
                ring = vec![slices[2].pop().unwrap(); PASSES as usize];
            }
            return samples(&[ring.pop().unwrap()]);
        }
        samples(&[slices[series].pop().unwrap()])
    })
}

/// `closely` tells what the slices for ratios show. Those for tails show one sample of 7 ns.
fn run_all(plan: &Plan, mut closely: impl FnMut(usize) -> Samples) -> Outcome {
    let run_slice = |series: usize, slice: Slice| {
        let is_close = plan.series[series].closely == Some(slice);
        let tail = Samples { tails: vec![7.0], messages: 1, ..Samples::default() };
        Ok(if is_close { closely(series) } else { tail })
    };
    run(plan, |_| (), run_slice).unwrap()
}

#[test]
fn a_ratio_is_formed_inside_its_round_with_the_fastest_floor() {
    // Round 1: the same line wins; round 2: the rotating ones do, on a machine that is twice as slow.
    let outcome =
        play(&plan(2), [vec![40.0, 40.0, 100.0, 100.0], vec![50.0, 50.0, 80.0, 80.0], vec![44.0, 120.0]]);
    assert_eq!((outcome.rounds, outcome.dropped), (2, 0));
    assert_eq!(outcome.tallies[1].figures, [44.0, 120.0]);
    assert_eq!(outcome.tallies[1].ratios, [44.0 / 40.0, 120.0 / 80.0]);
    assert_eq!(outcome.tallies[0].figures, [40.0, 80.0]);
    assert_eq!(outcome.tallies[0].ratios, [1.0, 1.0]);
    assert_eq!(outcome.series, [vec![40.0, 100.0], vec![50.0, 80.0], vec![44.0, 120.0]]);
}

#[test]
fn a_round_in_which_the_floor_moved_counts_for_nothing() {
    // By 31 % up, by 31 % down, by 29 % up.
    let outcome = play(
        &plan(3),
        [
            vec![100.0, 131.0, 131.0, 100.0, 100.0, 129.0],
            vec![900.0, 900.0, 900.0, 900.0, 900.0, 900.0],
            vec![1.0, 2.0, 229.0],
        ],
    );
    assert_eq!((outcome.rounds, outcome.dropped), (1, 2));
    assert_eq!(outcome.tallies[1].figures, [229.0]);
    assert_eq!(outcome.tallies[1].ratios, [2.0], "over the median of both slices of the floor, 114.5");
    assert_eq!(outcome.tallies[1].centre, [229.0; PASSES as usize]);
    assert_eq!(outcome.tallies[1].tails.count(), 1);
    assert_eq!(outcome.tallies[1].messages, 1);
}

#[test]
fn the_floor_moves_when_its_faster_part_does() {
    // The faster part changes from one to the other, and neither it nor the floor moves much.
    let outcome = play(&plan(1), [vec![100.0, 200.0], vec![300.0, 110.0], vec![150.0]]);
    assert_eq!((outcome.rounds, outcome.dropped), (1, 0));
}

#[test]
fn a_round_begins_and_ends_with_the_floor_and_the_order_between_changes() {
    let mut plan = Plan::new("stream", Scale { rounds: 6, quick: true, compare: false, at_most: None }, true);
    for change in [
        Change::None,
        Change::PrefetchOff,
        Change::WideSlots,
        Change::OrderedBySeqCst,
        Change::FencePerMessage,
    ] {
        plan.round_trips(&format!("{change:?}"), Spec::Spsc { kind: Kind::Usual, depth: 16, change });
    }
    let mut ran = Vec::new();
    run_all(&plan, |series| {
        ran.push(series);
        samples(&[1.0])
    });
    const PASS: usize = 5;
    let slices = PASSES as usize * PASS + 4;
    let rounds: Vec<&[usize]> = ran.chunks(slices).collect();
    assert_eq!(rounds.len(), 6);
    for round in &rounds {
        assert_eq!((&round[..2], &round[slices - 2..]), (&[0, 1][..], &[0, 1][..]));
        for pass in round[2..slices - 2].chunks(PASS) {
            let mut pass = pass.to_vec();
            pass.sort_unstable();
            assert_eq!(pass, [2, 3, 4, 5, 6]);
        }
    }
    assert!(rounds.iter().any(|round| *round != rounds[0]));
    assert!(rounds.iter().any(|round| round[2..2 + PASS] != round[2 + PASS..2 + 2 * PASS]));
}

#[test]
fn no_round_begins_when_the_time_is_up_but_one_always_runs() {
    let mut plan = plan(5);
    plan.scale.at_most = Some(core::time::Duration::ZERO);
    let outcome = run_all(&plan, |_| samples(&[1.0]));
    assert_eq!((outcome.rounds, outcome.cut_short), (1, true));
}

#[test]
fn without_a_second_cpu_there_is_no_floor_and_no_ratio() {
    let mut plan =
        Plan::new("pingpong", Scale { rounds: 2, quick: true, compare: false, at_most: None }, false);
    plan.round_trips("syscall", Spec::Syscall);
    let outcome = run_all(&plan, |_| samples(&[200.0]));
    assert_eq!((outcome.rounds, outcome.dropped), (2, 0));
    assert_eq!(outcome.tallies[0].figures, [200.0, 200.0]);
    assert!(outcome.tallies[0].ratios.is_empty());
}

#[test]
fn what_was_used_is_kept_round_by_round() {
    let plan = plan(2);
    let mut cpu_ns = 0;
    let outcome = run_all(&plan, |series| {
        cpu_ns += 10;
        let receiver = Usage { cpu_ns, ..Usage::default() };
        let used = Used { messages: 1, receiver, ..Used::default() };
        Samples { used: (series == 2).then_some(used), ..samples(&[1.0]) }
    });
    let used: Vec<(u64, u64)> =
        outcome.tallies[1].used.iter().map(|used| (used.messages, used.receiver.cpu_ns)).collect();
    // Two slices of the floor, three of the ring; two of the floor, and again.
    assert_eq!(used, [(3, 30 + 40 + 50), (3, 100 + 110 + 120)]);
    assert_eq!(outcome.tallies[0].used, [], "a floor does not tell");
}

#[test]
fn what_was_counted_goes_to_its_case() {
    let mut outcome = run_all(&plan(1), |_| samples(&[1.0]));
    let counted = Used { messages: 7, ..Used::default() };
    outcome.count(&[None, Some(counted)]);
    assert_eq!((outcome.tallies[0].counted, outcome.tallies[1].counted), (None, Some(counted)));
}

#[test]
fn what_fails_in_a_slice_ends_the_run() {
    assert!(run(&plan(2), |_| (), |_, _| anyhow::bail!("the peer is gone")).is_err());
}

#[test]
fn a_slice_that_was_disturbed_does_not_make_the_figure() {
    let mut slices = [90_000.0, 44.0, 46.0].into_iter();
    let outcome =
        run_all(&plan(1), |series| samples(&[if series == 2 { slices.next().unwrap() } else { 40.0 }]));
    assert_eq!(outcome.tallies[1].figures, [46.0]);
}

#[test]
fn the_figure_of_a_slice_is_the_median_of_its_samples() {
    assert_eq!(figure(&samples(&[90.0, 10.0, 20.0])), 20.0);
}

#[test]
fn medians_and_spreads() {
    assert!(median(&[]).is_nan());
    assert_eq!(median(&[3.0]), 3.0);
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
    assert_eq!(Spread::of(&[]), None);
    let spread = Spread::of(&[1.5, 1.0, 1.25]).unwrap();
    assert_eq!(spread, Spread { median: 1.25, min: 1.0, max: 1.5 });
    assert_eq!(spread.to_string(), "1.25 [1.00–1.50]");
}

#[test]
fn quantiles_are_values_that_were_seen() {
    let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
    assert_eq!(quantile(&values, 0.9), Some(9.0));
    assert_eq!(quantile(&values, 0.91), Some(10.0));
    assert_eq!(quantile(&values, 0.0), Some(1.0));
    assert_eq!(quantile(&[5.0], 0.9), Some(5.0));
    assert_eq!(quantile(&[], 0.9), None);
}

#[test]
fn an_order_is_a_permutation() {
    for round in 0..50 {
        let mut order = order(7, round);
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
    }
    assert!(order(0, 0).is_empty());
}
