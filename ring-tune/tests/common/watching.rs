//! `ring-tune watch`, started and read, for the tests of what it tells and of how it ends.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::Value;

/// What a machine needs that others keep busy, and no machine takes.
pub(crate) const MINUTES: Duration = Duration::from_secs(180);

pub(crate) type Counters = BTreeMap<String, u64>;

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.arg("watch").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn watch(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

pub(crate) fn tick(line: &str) -> Value {
    assert!(line.starts_with(r#"{"report":"ring-tune watch","#), "{line:?}");
    let tick: Value = serde_json::from_str(line).unwrap();
    assert!(seconds(&tick) > 0.0, "{line}");
    tick
}

pub(crate) fn seconds(tick: &Value) -> f64 {
    tick["seconds"].as_f64().unwrap()
}

pub(crate) fn ticks(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    core::str::from_utf8(&output.stdout).unwrap().lines().map(tick).collect()
}

/// The counts of all ticks, summed by name.
pub(crate) fn sum(ticks: &[Value], whose: &str, id: Option<u32>) -> Counters {
    let mut sum = Counters::new();
    for group in ticks.iter().flat_map(|tick| tick["watched"].as_array().unwrap()) {
        if group["whose"] == whose && group["id"].as_u64() == id.map(u64::from) {
            for (name, count) in group["counts"].as_object().unwrap() {
                *sum.entry(name.clone()).or_default() += count.as_u64().unwrap();
            }
        }
    }
    sum
}

/// The system call in which a thread waits; none while it runs.
pub(crate) fn number_of_call(path: &str) -> Option<libc::c_long> {
    fs::read_to_string(path).unwrap().split_whitespace().next()?.parse().ok()
}

pub(crate) fn wait_for(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < MINUTES, "it does not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn at_least(counters: &Counters, name: &str, least: u64) {
    assert!(counters.get(name).is_some_and(|count| *count >= least), "{name}: {counters:?}");
}
