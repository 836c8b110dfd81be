use core::cell::Cell;

use ring_tune::Clock;

use super::gaps::{Cause, Gap, Gaps, Slices};
use super::spin::{Cost, Rules, Spun, spin_by};
use super::tasks::{name_and_cpu, schedstat};
use super::text::length;
use super::usage::Usage;

fn gap(ns: f64, cause: Cause) -> Gap {
    Gap { at_seconds: 1.0, ns, cause }
}

#[test]
fn the_cause_is_what_the_kernel_counted() {
    let cause = |involuntary, voluntary, minor_faults, major_faults| {
        Cause::of(Usage { involuntary, voluntary, minor_faults, major_faults })
    };
    assert_eq!(cause(0, 0, 0, 0), Cause::Other);
    assert_eq!(cause(1, 0, 0, 0), Cause::ContextSwitch);
    assert_eq!(cause(0, 1, 0, 0), Cause::ContextSwitch, "it was stopped");
    assert_eq!(cause(0, 1, 0, 1), Cause::PageFault, "it waited for the page");
    assert_eq!(cause(0, 1, 1, 0), Cause::ContextSwitch, "it was stopped, and its page moved meanwhile");
    assert_eq!(cause(0, 0, 1, 0), Cause::PageFault);
    assert_eq!(cause(1, 0, 1, 0), Cause::ContextSwitch);
}

/// What a loop sees of these stamps, with the thread's switches as of each of them. A look takes 50 ticks.
fn spun(threshold: u64, stamps: &[(u64, u64)]) -> Spun {
    let place = Cell::new(0);
    let stamp = || {
        let (stamp, _) = stamps[place.get()];
        place.set(place.get() + 1);
        stamp
    };
    let counted = || {
        let involuntary = stamps[place.get().saturating_sub(1)].1;
        Usage { involuntary, ..Usage::default() }
    };
    let rules = Rules { look: 100, threshold, length: u64::MAX };
    let is_over = || place.get() + 1 == stamps.len();
    spin_by(stamp, counted, is_over, &Clock::new(), (Cost { step: 1, look: 50 }, rules), Gaps::new())
}

#[test]
fn what_was_no_gap_is_no_cause_of_a_later_one() {
    // A switch that makes a step of 500, a look, and a step of 2,000 in which nothing was counted.
    let stamps = [(0, 7), (1, 7), (501, 8), (551, 8), (552, 8), (2_552, 8), (2_602, 8), (2_603, 8)];
    let count = |spun: &Spun, cause| spun.gaps.tally(cause).count;
    let coarse = spun(1_000, &stamps);
    assert_eq!((count(&coarse, Cause::ContextSwitch), count(&coarse, Cause::Other)), (0, 1));
    assert_eq!(coarse.usage.involuntary, 1, "over the whole time it is counted");
    let fine = spun(100, &stamps);
    assert_eq!((count(&fine, Cause::ContextSwitch), count(&fine, Cause::Other)), (1, 1));
}

#[test]
fn a_gap_in_which_it_was_told_to_stop_is_one() {
    let spun = spun(100, &[(0, 0), (1, 0), (5_000, 1)]);
    assert_eq!(spun.gaps.tally(Cause::ContextSwitch).count, 1);
}

#[test]
fn a_look_is_no_gap_and_takes_nothing_from_one() {
    let clock = Clock::new();
    let looks = spun(100, &[(0, 0), (100, 0), (150, 0), (151, 0), (251, 0), (301, 0)]);
    assert_eq!(looks.gaps.recorder.count(), 2);
    let after_a_look = spun(100, &[(0, 0), (100, 0), (1_150, 1), (1_151, 1)]);
    let lost_ns = after_a_look.gaps.tally(Cause::ContextSwitch).lost_ns;
    // Each clock is calibrated anew.
    assert!((lost_ns / clock.ticks_to_ns(1_000) - 1.0).abs() < 1e-3, "{lost_ns} ns");
}

#[test]
fn gaps_add_up_however_they_are_counted() {
    let mut gaps = Gaps::new();
    for number in 1..=1_000_u32 {
        let cause = Cause::ALL[number as usize % 3];
        gaps.record(gap(f64::from(number) * 1_000.0, cause));
    }
    assert_eq!(gaps.recorder.count(), 1_000);
    assert_eq!(gaps.lost_ns(), 500_500_000.0);
    let tallies = Cause::ALL.map(|cause| gaps.tally(cause));
    assert_eq!(tallies.iter().map(|tally| tally.count).sum::<u64>(), 1_000);
    assert_eq!(tallies[Cause::PageFault as usize].max_ns, 1_000_000.0);
    let counts: Vec<(f64, u64)> =
        gaps.histogram().map(|(from, _, counts)| (from, counts.iter().sum())).collect();
    assert_eq!(counts.first(), Some(&(512.0, 1)), "1,000 ns lie between 512 and 1,024");
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 1_000);
}

#[test]
fn the_longest_are_kept_in_order() {
    let mut gaps = Gaps::new();
    for ns in [5.0, 9.0, 1.0, 7.0, 7.0, 3.0, 8.0, 2.0, 6.0, 4.0, 0.5, 10.0] {
        gaps.record(gap(ns, Cause::Other));
    }
    let longest: Vec<f64> = gaps.longest().map(|gap| gap.ns).collect();
    assert_eq!(longest, [10.0, 9.0, 8.0, 7.0, 7.0, 6.0, 5.0, 4.0]);
}

#[test]
fn a_gap_takes_from_each_slice_that_it_spans() {
    let mut gaps = Gaps::new();
    gaps.slices = Slices::of(1e9);
    // From 150 ms to 350 ms, and one of 50 ms that ends with the measurement.
    gaps.record(Gap { at_seconds: 0.35, ns: 2e8, cause: Cause::Other });
    gaps.record(Gap { at_seconds: 1.000_001, ns: 5e7, cause: Cause::Other });
    let share = gaps.slices.share(1e9 + 1e3).unwrap();
    assert_eq!((share.least, share.most), (0.0, 1.0), "the third tenth was lost from end to end");
    let rate = gaps.slices.rate(1e9).unwrap();
    assert_eq!((rate.least, rate.most), (0.0, 10.0));
    let first_two = gaps.slices.share(2.1e8).unwrap();
    assert!((first_two.most - 0.5).abs() < 1e-9, "{first_two:?}");
    assert_eq!(gaps.slices.share(1.9e8), None, "the second tenth did not end");
}

#[test]
fn no_length_is_too_much() {
    let mut gaps = Gaps::new();
    for ns in [0.0, 0.3, 1e30, f64::MAX] {
        gaps.record(gap(ns, Cause::Other));
    }
    let ranges: Vec<f64> = gaps.histogram().map(|(from, ..)| from).collect();
    assert_eq!(ranges, [1.0, 2_f64.powi(63)]);
}

#[test]
fn the_kernel_s_lines_about_tasks_are_read() {
    assert_eq!(schedstat("1500000 7 42"), Some((1_500_000, 42)));
    assert_eq!(schedstat("1500000 7"), None);
    let rest = ["S"; 1].into_iter().chain(["0"; 35]).chain(["3", "0"]).collect::<Vec<_>>().join(" ");
    let of = |name: &str| name_and_cpu(&format!("12 ({name}) {rest}"));
    assert_eq!(of("cat"), Some(("cat".into(), 3)));
    assert_eq!(of("a) S (b c"), Some(("a) S (b c".into(), 3)));
    assert_eq!(name_and_cpu("12 (cat) S 1"), None);
}

#[test]
fn lengths_read_well() {
    let texts = [12.4, 1_500.0, 2_100_000.0, 3e9].map(length);
    assert_eq!(texts, ["12 ns", "1.50 us", "2.10 ms", "3.00 s"]);
}
