//! `ring-tune watch` beside processes that do what is known.
#![cfg(feature = "cli")]

use core::sync::atomic::{AtomicBool, Ordering};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

fn watch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ring-tune")).arg("watch").args(arguments).output().unwrap()
}

/// The counts of all ticks, summed by name.
fn sum(output: &Output, part: &str) -> u64 {
    let text = core::str::from_utf8(&output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let counts = lines.map(|line| {
        assert_eq!(line["report"], "ring-tune watch");
        assert!(line["seconds"].as_f64().unwrap() > 0.0);
        let counts = line["counts"].as_object().unwrap().clone();
        counts
            .iter()
            .filter(|(name, _)| name.contains(part))
            .map(|(_, count)| count.as_u64().unwrap())
            .sum::<u64>()
    });
    counts.sum()
}

#[test]
fn a_process_that_sleeps_again_and_again_is_seen_to_switch() {
    let mut sleeper = Command::new("sh");
    sleeper.args(["-c", "while :; do sleep 0.01; done"]);
    let mut sleeper = sleeper.spawn().unwrap();
    let pid = sleeper.id().to_string();
    let output = watch(&["--pid", &pid, "--every", "0.2", "--count", "5", "--json"]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(sum(&output, "(") > 0, "{output:?}");
    assert!(sum(&output, " voluntary switches") > 5, "{output:?}");
}

#[test]
fn pages_that_are_touched_are_seen_to_fault() {
    const BYTES: usize = 8 << 20;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // ORDERING: Relaxed: nothing else is read because of it.
            while !is_over.load(Ordering::Relaxed) {
                // Large enough to be mapped anew each time.
                core::hint::black_box(vec![1_u8; BYTES]);
            }
        });
        let pid = std::process::id().to_string();
        let output = watch(&["--pid", &pid, "--every", "0.5", "--count", "2", "--json"]);
        // ORDERING: Relaxed: nothing else is read because of it.
        is_over.store(true, Ordering::Relaxed);
        assert!(output.status.success(), "{output:?}");
        assert!(sum(&output, "minor faults") > 0, "{output:?}");
        assert!(sum(&output, "ns on a CPU") > 0, "{output:?}");
    });
}

#[test]
fn a_process_that_ends_ends_it() {
    let mut sleeper = Command::new("sleep").arg("0.5").stdout(Stdio::null()).spawn().unwrap();
    let pid = sleeper.id().to_string();
    let reaper = thread::spawn(move || sleeper.wait().unwrap());
    let output = watch(&["--pid", &pid, "--every", "0.1"]);
    assert!(reaper.join().unwrap().success());
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("the process has ended\n"));
}

#[test]
fn the_timer_interrupts_a_cpu() {
    let output = watch(&["--every", "0.3", "--count", "2", "--json"]);
    assert!(output.status.success(), "{output:?}");
    assert!(sum(&output, "context switches of the machine") > 0, "{output:?}");
    assert!(sum(&output, " interrupt ") > 0, "{output:?}");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for (arguments, text) in [
        (&["--pid", "4194304"] as &[_], "no process"),
        (&["--cpus", "8191"], "online"),
        (&["--device", "../../etc"], "no network interface"),
        (&["--every", "nan"], "--every"),
        (&["--every", "0"], "--every"),
    ] {
        let output = watch(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(text), "{arguments:?}: {error}");
    }
}

#[test]
fn nobody_who_reads_on_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(["watch", "--every", "0.05"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = command.spawn().unwrap();
    drop(command.stdout.take());
    let output = command.wait_with_output().unwrap();
    assert!(!String::from_utf8(output.stderr).unwrap().contains("error"));
}
