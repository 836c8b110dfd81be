use core::cell::Cell;

use ring_tune::{Clock, Tree};

use super::advice::{self, is_real_time};
use super::gaps::{Cause, Gap, Gaps, Slices};
use super::report::OfCpu;
use super::spin::{Cost, Rules, Spun, spin_by};
use super::tasks::{Task, name_and_cpu, schedstat};
use super::text::{length, unexplained};
use super::usage::Usage;
use super::window::{Counted, Sample, Seen};
use crate::check::Row;
use crate::laid_out::LaidOut;

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

/// What a loop sees of these stamps, each with the thread's switches as they are counted just before it. A look takes 50
/// ticks.
fn spun(threshold: u64, stamps: &[(u64, u64)]) -> Spun {
    let place = Cell::new(0);
    let stamp = || {
        let (stamp, _) = stamps[place.get().min(stamps.len() - 1)];
        place.set(place.get() + 1);
        stamp
    };
    let counted = || {
        let (_, involuntary) = stamps[place.get().min(stamps.len() - 1)];
        Usage { involuntary, ..Usage::default() }
    };
    let rules = Rules { look: 100, threshold, length: u64::MAX };
    let is_over = || place.get() + 1 >= stamps.len();
    spin_by(stamp, counted, is_over, &Clock::new(), (Cost { step: 1, look: 50 }, rules), Gaps::new())
}

/// How many gaps a switch made, and how many something else.
fn causes(spun: &Spun) -> (u64, u64) {
    let count = |cause| spun.gaps.tally(cause).count;
    (count(Cause::ContextSwitch), count(Cause::Other))
}

fn is_lost(spun: &Spun, ticks: u64) -> bool {
    // Each clock is calibrated anew.
    (spun.gaps.lost_ns() / Clock::new().ticks_to_ns(ticks) - 1.0).abs() < 1e-3
}

#[test]
fn what_was_no_gap_is_no_cause_of_a_later_one() {
    // A switch that makes a step of 500, a look, and a step of 2,000 in which nothing was counted.
    let stamps = [(0, 7), (1, 7), (501, 7), (551, 8), (552, 8), (2_552, 8), (2_602, 8), (2_603, 8)];
    let coarse = spun(1_000, &stamps);
    assert_eq!(causes(&coarse), (0, 1));
    assert_eq!(coarse.usage.involuntary, 1, "over the whole time it is counted");
    assert!(is_lost(&coarse, 2_000));
    assert_eq!(causes(&spun(100, &stamps)), (1, 1));
}

#[test]
fn what_comes_while_it_looks_is_of_the_gap_whenever_it_is_counted() {
    for counted_by_the_first_look in [0, 1] {
        let spun = spun(
            100,
            &[
                (0, 0),
                (1, 0),
                (201, 0),
                (5_251, counted_by_the_first_look),
                (5_301, 1),
                (5_302, 1),
                (5_303, 1),
            ],
        );
        assert_eq!(causes(&spun), (1, 0));
        assert!(is_lost(&spun, 5_200), "{} ns", spun.gaps.lost_ns());
    }
}

#[test]
fn looks_that_have_become_slow_come_to_an_end() {
    let stamps: Vec<_> = (0..21).map(|number| (number * 1_000, 0)).collect();
    assert_eq!(causes(&spun(100, &stamps)), (0, 4));
}

#[test]
fn a_gap_in_which_it_was_told_to_stop_is_one() {
    assert_eq!(causes(&spun(100, &[(0, 0), (1, 0), (5_001, 0)])), (0, 1));
}

#[test]
fn a_look_is_no_gap() {
    let looks = spun(100, &[(0, 0), (100, 0), (150, 0), (200, 0), (201, 0), (301, 0), (351, 0), (352, 0)]);
    assert_eq!(causes(&looks), (0, 2));
    assert!(is_lost(&looks, 200));
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

/// What is seen on CPU 2 between these two contents of /proc/interrupts.
fn seen(interrupts: [&str; 2]) -> Seen {
    let [before, after] = interrupts.map(|text| {
        let files = LaidOut::of(text);
        Sample::take(&Tree::below(files.path()).unwrap())
    });
    after.since(&before, 2, &[], 0)
}

#[test]
fn gaps_without_an_interrupt_are_left_to_who_is_below_the_kernel() {
    let text = "=== proc/interrupts\n CPU0 CPU2\nLOC: 100 7 Local timer interrupts\n";
    let later = text.replace(" 7 ", " 10 ");
    let three = seen([text, &later]);
    assert_eq!(three.interrupts.as_ref().unwrap()[0].count, 3);
    assert_eq!(unexplained(&three, 3), "");
    assert!(unexplained(&three, 5).starts_with("2 gaps"), "{three:?}");
    let none = seen([text, text]);
    assert_eq!(none.interrupts, Some(vec![]));
    assert!(unexplained(&none, 5).starts_with("5 gaps"), "there was none, and the kernel says so");
    let offline = "=== proc/interrupts\n CPU0\nLOC: 100 Local timer interrupts\n";
    for untold in [["=== proc/version\nLinux\n"; 2], [offline, text], [text, offline]] {
        let untold = seen(untold);
        assert_eq!(untold.interrupts, None);
        assert_eq!(unexplained(&untold, 5), "", "nobody knows");
    }
}

#[test]
fn lengths_read_well() {
    let texts = [12.4, 1_500.0, 2_100_000.0, 3e9].map(length);
    assert_eq!(texts, ["12 ns", "1.50 µs", "2.10 ms", "3.00 s"]);
}

fn of_cpu(seen: Seen) -> OfCpu {
    let spun = Spun { gaps: Gaps::new(), ns: 1e9, usage: Usage::default() };
    OfCpu::new(1, [20.0, 50.0], &spun, true, seen)
}

#[test]
fn advice_names_rows_that_there_are() {
    let is_row = |id: &&str| Row::all().any(|row| row.id == *id);
    let seen = |interrupts: &[&str], tasks: &[&str]| Seen {
        interrupts: Some(
            interrupts
                .iter()
                .map(|&name| Counted { name: name.into(), what: String::new(), count: 1 })
                .collect(),
        ),
        softirqs: None,
        steal_ms: None,
        tasks: tasks
            .iter()
            .map(|&name| Task { name: name.into(), process: 1, task: 1, turns: 1, ran_ms: 1.0, cpu: 0 })
            .collect(),
    };
    let tasks = [
        "kworker/1:0",
        "ksoftirqd/1",
        "irq/24-nvme",
        "rcu_preempt",
        "khugepaged",
        "kcompactd0",
        "ksmd",
        "kswapd0",
    ];
    let cpu = of_cpu(seen(&["LOC", "NMI", "MCP", "24", "TLB"], &tasks));
    for cause in Cause::ALL {
        let rows = advice::rows(&cpu, cause);
        assert!(!rows.is_empty() && rows.iter().all(is_row), "{rows:?}");
    }
    assert_eq!(
        advice::rows(&of_cpu(seen(&["LOC", "24", "25"], &[])), Cause::Other),
        ["nohz-full", "timer-migration", "irq-affinity"]
    );
    assert_eq!(advice::rows(&of_cpu(seen(&[], &["bash"])), Cause::ContextSwitch), ["isolated"]);
}

#[test]
fn a_real_time_policy_is_told_from_the_line_of_a_process() {
    let line = |policy| format!("7 (a) b) R {}{policy} 0 0", "0 ".repeat(37));
    assert_eq!(
        [0, 1, 2, 3, 6].map(|policy| is_real_time(&line(policy)).unwrap()),
        [false, true, true, false, false]
    );
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    assert_eq!(is_real_time(&own), Some(false));
    assert_eq!(is_real_time("7 (a) R 1"), None);
}
