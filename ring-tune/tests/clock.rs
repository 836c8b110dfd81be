//! `ring-tune clock`: two processes, and what happens when one of them goes.
#![cfg(feature = "cli")]

#[path = "common/skip.rs"]
mod skip;

use core::time::Duration;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use ring_tune::{allowed_cpus, pin_to};
use serde_json::Value;
use skip::skip;

fn clock(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ring-tune")).arg("clock").args(arguments).output().unwrap()
}

#[test]
fn every_stamp_arrives_and_is_counted() {
    let output = clock(&["--samples", "20000", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["report"], "ring-tune clock");
    for field in ["hz", "resolution_ns", "stamp_cost_ns"] {
        assert!(report[field].as_f64().unwrap() > 0.0, "{field}: {report}");
    }
    let Some(ways) = report["one_way"].as_array() else {
        assert_eq!(allowed_cpus().unwrap().len(), 1, "only one CPU is a reason to leave it out");
        return;
    };
    let negative: u64 = ways.iter().map(|way| way["negative"].as_u64().unwrap()).sum();
    assert!(ways.iter().all(|way| way["samples"] == 10_000), "{report}");
    assert_eq!((&ways[0]["from"], &ways[0]["to"]), (&ways[1]["to"], &ways[1]["from"]));
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let is_trusted = report["source"] != "TSC" || source.is_ok_and(|source| source.trim() == "tsc");
    assert_eq!(report["is_usable_one_way"], negative == 0 && is_trusted);
}

#[test]
fn one_cpu_has_nothing_to_compare_the_clock_with() {
    let first = allowed_cpus().unwrap().iter().next().unwrap();
    let pinned = std::thread::spawn(move || {
        pin_to(first).unwrap();
        [clock(&["--json"]), clock(&[])]
    });
    let [json, text] = pinned.join().unwrap();
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&report["one_way"], &report["is_usable_one_way"]), (&Value::Null, &Value::Bool(false)));
    assert!(report["resolution_ns"].as_f64().is_some_and(|ns| 0.0 < ns && ns < 1e9), "{report}");
    assert!(text.status.success() && String::from_utf8(text.stdout).unwrap().contains("one CPU only"));
}

#[test]
fn a_parent_that_is_killed_leaves_nobody_behind() {
    if allowed_cpus().unwrap().len() < 2 {
        return skip("there is one CPU");
    }
    let (mut command, peer) = endless();
    command.kill().unwrap();
    command.wait().unwrap();
    // It goes once it sees that it has another parent, who may not have asked for its end yet.
    let state = || fs::read_to_string(format!("/proc/{peer}/stat"));
    let latest = Instant::now() + Duration::from_secs(100);
    while state().is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z")) {
        assert!(Instant::now() < latest, "{peer} is still there");
        std::thread::yield_now();
    }
}

/// The command at work, with the process that it has started.
fn endless() -> (Child, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(["clock", "--samples", "100000000000"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let command = command.spawn().unwrap();
    let peer = core::iter::repeat_with(|| children(&command).first().copied()).flatten().next().unwrap();
    (command, peer)
}

#[test]
fn cpus_that_cannot_be_are_refused() {
    for (cpus, text) in
        [("0", "name two CPUs"), ("0-2", "name two CPUs"), ("0,8191", "may only use"), ("x", "0-3,8")]
    {
        let output = clock(&["--cpus", cpus]);
        assert_eq!(output.status.code(), Some(1), "{cpus}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(text), "{cpus}: {error}");
    }
}

/// The processes that the command has started.
fn children(of: &Child) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", of.id())).unwrap_or_default();
    children.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[test]
fn a_peer_that_is_killed_ends_it_with_an_error() {
    if allowed_cpus().unwrap().len() < 2 {
        return skip("there is one CPU");
    }
    let (command, peer) = endless();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(peer), nix::sys::signal::Signal::SIGKILL).unwrap();
    let output = command.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("has ended early"), "{error}");
}
