use ring_shm::Pages;
use ring_tune::Clock;
use serde_json::Value;

use super::*;
use crate::bench::host::Host;
use crate::bench::memory::{Kind, Memory};
use crate::bench::rounds::{Outcome, Tally};
use crate::bench::row;
use crate::bench::suites::Suite;

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn the_document_has_the_documented_keys() {
    let mut memory = Memory::default();
    memory.create(Kind::Base, Pages::Base, &[1]).unwrap();
    let (_, report) = memory.reports().pop().unwrap();
    let host = Host::look([0, 1], &Clock::monotonic(), &report);
    let scale = crate::bench::plan::Scale { rounds: 1, quick: true, compare: false, at_most: None };
    let plan = Suite::Pingpong.plan(scale, true);
    let outcome = Outcome { tallies: vec![Tally::default(); plan.cases.len()], ..Outcome::default() };

    let text = text(&host, &row::rows(&plan, &outcome), &[]).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(keys(&document), ["comparisons", "host", "rows"]);
    assert_eq!(
        keys(&document["host"]),
        [
            "clocksource",
            "cpu",
            "cpus",
            "grade",
            "kernel",
            "locked",
            "page_bytes",
            "share",
            "tsc_hz",
            "virtual"
        ]
    );
    assert_eq!(document["host"]["cpus"], serde_json::json!([0, 1]));
    assert_eq!(document["host"]["page_bytes"], 4096);
    assert!(document["host"]["tsc_hz"].is_null(), "this clock asks the kernel");
    assert_eq!(document["rows"].as_array().unwrap().len(), plan.cases.len());
    assert_eq!(
        keys(&document["rows"][0]),
        [
            "case",
            "cpu_ns_per_message",
            "dropped_rounds",
            "max",
            "mean",
            "p50",
            "p90",
            "p99",
            "p999",
            "p9999",
            "ratio_max",
            "ratio_min",
            "ratio_to_floor",
            "ratio_to_spsc",
            "ratio_to_spsc_max",
            "ratio_to_spsc_min",
            "rounds",
            "samples",
            "sender_cpu_ns_per_message",
            "sender_switches_per_message",
            "sender_syscalls_per_message",
            "suite",
            "switches_per_message",
            "syscalls_per_message",
            "unit"
        ]
    );
}
