use measure::Reader;
use measure::usage::{Usage, Used};

use super::*;
use crate::bench::arms::{Change, Spec};
use crate::bench::memory::Kind;
use crate::bench::plan::Scale;

fn plan() -> Plan {
    let mut plan =
        Plan::new("pingpong", Scale { rounds: 1, quick: true, compare: false, at_most: None }, true);
    let ring = Spec::Spsc { kind: Kind::Usual, depth: 16, change: Change::None };
    plan.round_trips("spsc", ring);
    plan
}

#[test]
fn the_centre_comes_from_blocks_and_the_tails_from_single_exchanges() {
    let mut tally = Tally { centre: vec![50.0, 51.0, 58.0], messages: 1_000, ..Tally::default() };
    for ns in 1..=1_000 {
        tally.tails.record(f64::from(ns));
    }
    tally.ratios = vec![1.1, 1.0, 1.3];
    let outcome = Outcome { tallies: vec![tally], rounds: 3, dropped: 2, ..Outcome::default() };
    let rows = rows(&plan(), &outcome);
    let row = &rows[0];
    assert_eq!((row.suite, row.case.as_str(), row.unit), ("pingpong", "spsc", "ns"));
    assert_eq!((row.p50, row.mean), (Some(51.0), Some(53.0)));
    assert_eq!(row.p90, Some(58.0), "of blocks: no tail yet");
    assert!((row.p99.unwrap() - 990.0).abs() < 1.0);
    assert!((row.p999.unwrap() - 999.0).abs() < 1.0);
    assert_eq!((row.p9999, row.max), (None, Some(1_000.0)), "1,000 samples say nothing of 1 in 10,000");
    assert_eq!((row.samples, row.rounds, row.dropped_rounds), (1_000, 3, 2));
    assert_eq!((row.ratio_to_floor, row.ratio_min, row.ratio_max), (Some(1.1), Some(1.0), Some(1.3)));
}

#[test]
fn a_ring_through_ring_shm_is_set_against_the_bare_one_of_the_same_round() {
    let mut plan = plan();
    plan.round_trips("shm-spsc", Spec::Shm { depth: 16 });
    let tally = |figures: [f64; 3]| Tally { figures: figures.into(), ..Tally::default() };
    let tallies = vec![tally([50.0, 100.0, 40.0]), tally([51.0, 99.0, 40.4])];
    let rows = rows(&plan, &Outcome { tallies, rounds: 3, ..Outcome::default() });
    let ratios = |row: &Row| (row.ratio_to_spsc, row.ratio_to_spsc_min, row.ratio_to_spsc_max);
    assert_eq!(ratios(&rows[0]), (None, None, None), "it is the bare one");
    assert_eq!(ratios(&rows[1]), (Some(1.01), Some(0.99), Some(1.02)));
}

#[test]
fn what_was_used_is_told_per_message() {
    let used = |messages, cpu_ns: u64, switches, syscalls| Used {
        messages,
        receiver: Usage { cpu_ns, switches, syscalls },
        sender: Usage { cpu_ns: 10 * cpu_ns, switches: 0, syscalls: 2 * syscalls },
    };
    let tally = Tally {
        used: vec![used(10, 1_000, 10, 0), used(10, 9_000, 20, 0), used(20, 4_000, 10, 0)],
        counted: Some(used(4, 77, 77, 6)),
        ..Tally::default()
    };
    let outcome = Outcome { tallies: vec![tally], rounds: 3, ..Outcome::default() };
    let row = &rows(&plan(), &outcome)[0];
    assert_eq!((row.cpu_ns_per_message, row.sender_cpu_ns_per_message), (Some(200.0), Some(2_000.0)));
    assert_eq!((row.switches_per_message, row.sender_switches_per_message), (Some(1.0), Some(0.0)));
    assert_eq!((row.syscalls_per_message, row.sender_syscalls_per_message), (Some(4.5), Some(3.0)));
}

#[test]
fn what_is_missing_is_null() {
    let outcome = Outcome { tallies: vec![Tally::default()], dropped: 7, ..Outcome::default() };
    let row = serde_json::to_value(&rows(&plan(), &outcome)[0]).unwrap();
    for key in [
        "p50",
        "p90",
        "p99",
        "p999",
        "p9999",
        "max",
        "mean",
        "ratio_to_floor",
        "ratio_min",
        "ratio_max",
        "cpu_ns_per_message",
        "syscalls_per_message",
        "switches_per_message",
    ] {
        assert!(row[key].is_null(), "{key}");
    }
    assert_eq!((row["samples"].as_u64(), row["dropped_rounds"].as_u64()), (Some(0), Some(7)));
}

#[test]
fn of_a_stream_all_but_the_centre_comes_from_blocks_of_messages() {
    let mut plan = Plan::new("stream", Scale { rounds: 1, quick: true, compare: false, at_most: None }, true);
    plan.stream("index/8", Spec::Index { depth: 8 }, Reader::Equal);
    let mut tally = Tally { centre: vec![8.0, 7.0, 9.0], messages: 300_000, ..Tally::default() };
    for ns in 1..=100 {
        tally.tails.record(f64::from(ns));
    }
    let outcome = Outcome { tallies: vec![tally], rounds: 3, ..Outcome::default() };
    let row = &rows(&plan, &outcome)[0];
    assert_eq!((row.p50, row.mean), (Some(8.0), Some(8.0)));
    assert!((row.p90.unwrap() - 90.0).abs() < 0.1);
    assert!((row.p99.unwrap() - 99.0).abs() < 0.1);
}
