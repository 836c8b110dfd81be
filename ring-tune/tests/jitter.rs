//! `ring-tune jitter` beside disturbances that are known.
#![cfg(feature = "cli")]

#[path = "common/skip.rs"]
mod skip;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use ring_tune::{CpuSet, allowed_cpus, pin_to};
use serde_json::Value;
use skip::skip;

/// What a machine needs that others keep busy, and no machine takes.
const MINUTES: Duration = Duration::from_secs(180);

fn jitter(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.arg("jitter").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn report(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn measured(cpus: &CpuSet, seconds: &str) -> Value {
    report(&jitter(&["--json", "--cpus", &cpus.to_string(), "--seconds", seconds]).output().unwrap())
}

/// The tests that measure share a CPU, and would be each other's disturbance.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn last_cpu() -> usize {
    allowed_cpus().unwrap().iter().last().unwrap()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// So many gaps of some ms a machine that is not kept busy by others has in a second.
const QUIET: f64 = 20.0;

/// A thread of this process that takes the CPU for 2 ms, and sleeps for 10, over and over, while `act` runs.
fn beside_a_competitor<T>(cpu: usize, act: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let body = || {
            pin_to(cpu).unwrap();
            // ORDERING: Relaxed: it says nothing about other memory.
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(10));
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(2) {
                    core::hint::spin_loop();
                }
            }
        };
        thread::Builder::new().name("planted".into()).spawn_scoped(scope, body).unwrap();
        let result = act();
        // ORDERING: Relaxed: it says nothing about other memory.
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// How many gaps of some ms are put down to context switches.
fn switches_of_ms(cpu: &Value) -> f64 {
    let buckets = list(cpu, "histogram").iter();
    let buckets =
        buckets.filter(|bucket| number(bucket, "from_ns") > 9e5 && number(bucket, "below_ns") < 5e6);
    buckets.map(|bucket| number(bucket, "context_switch")).sum()
}

fn planted(cpu: &Value) -> Option<&Value> {
    list(cpu, "tasks").iter().find(|task| task["name"] == "planted")
}

#[test]
fn a_competitor_shows_as_gaps_of_its_length_and_is_named() {
    let _alone = alone();
    let cpu = last_cpu();
    let cpus = CpuSet::only(cpu).unwrap();
    let mut seen = vec![];
    for _ in 0..4 {
        let without = measured(&cpus, "1");
        let with = beside_a_competitor(cpu, || measured(&cpus, "1"));
        let [without, with] = [&without["cpus"][0], &with["cpus"][0]];

        assert_eq!(planted(without), None, "{without}");
        let task = planted(with).unwrap_or_else(|| panic!("{with}"));
        let switches = &with["causes"][0];
        assert_eq!(switches["cause"], "context_switch");
        // Each turn of the competitor is a gap, unless a third task makes one of several.
        assert!(number(switches, "count") >= number(task, "turns") / 4.0, "{with}");
        assert!(number(switches, "lost_ns") >= number(task, "ran_ms") * 1e6 / 4.0, "{with}");

        let counts = [switches_of_ms(without), switches_of_ms(with)];
        println!(
            "gaps of some ms by context switches: {} without, {} with a competitor",
            counts[0], counts[1]
        );
        // A wake-up each 12 ms makes some 83 in a second.
        if counts[0] <= QUIET && counts[1] >= 40.0 {
            return;
        }
        seen.push(counts);
    }
    assert!(seen.iter().all(|counts| counts[0] > QUIET), "without and with the competitor: {seen:?}");
    skip(format!("the comparison: others keep CPU {cpu} busy, and make such gaps too: {seen:?}"));
}

#[test]
fn what_is_counted_in_several_ways_adds_up() {
    let _alone = alone();
    let allowed = allowed_cpus().unwrap();
    // With a loop on each CPU the reader, too, shares one with a loop.
    let report = measured(&allowed, "0.5");
    assert_eq!(report["report"], "ring-tune jitter");
    assert_eq!(report["ended_early"], false);
    assert!(number(&report, "threshold_ns") >= 1_000.0);
    let cpus = list(&report, "cpus");
    let numbers: Vec<u64> = cpus.iter().map(|cpu| cpu["cpu"].as_u64().unwrap()).collect();
    assert_eq!(numbers, allowed.iter().map(|cpu| cpu as u64).collect::<Vec<_>>());
    for cpu in cpus {
        assert_eq!(cpu["has_stayed"], true);
        let sum = |values: &str, key: &str| -> f64 {
            list(cpu, values).iter().map(|value| number(value, key)).sum()
        };
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(1.0);
        assert_eq!(sum("causes", "count"), number(cpu, "gaps"));
        assert_eq!(sum("histogram", "count"), number(cpu, "gaps"));
        assert!(near(sum("causes", "lost_ns"), number(cpu, "lost_ns")), "{cpu}");
        assert!(
            near(number(cpu, "lost_share"), number(cpu, "lost_ns") / number(cpu, "seconds") / 1e9),
            "{cpu}"
        );
        assert!((0.0..=1.0).contains(&number(cpu, "lost_share")), "{cpu}");
        assert!(number(cpu, "seconds") > 0.4, "{cpu}");
        let rate = number(cpu, "gaps") / number(cpu, "seconds");
        for (name, whole) in [("gaps_per_second", rate), ("lost_share", number(cpu, "lost_share"))] {
            let [least, most] = ["min", "max"].map(|end| number(cpu, &format!("{name}_{end}")));
            // Tenths of half a second; what came after the last of them is in the whole alone.
            let (seconds, whole) = (number(cpu, "seconds"), whole * number(cpu, "seconds"));
            assert!(least * 0.5 <= whole * 1.001, "{name} {least} {whole} in {cpu}");
            assert!(most * 0.5 + (seconds - 0.5) >= whole * 0.999, "{name} {most} {whole} in {cpu}");
        }
        for bucket in list(cpu, "histogram") {
            let causes = ["context_switch", "page_fault", "other"].map(|cause| number(bucket, cause));
            assert_eq!(causes.iter().sum::<f64>(), number(bucket, "count"));
        }
        let longest: Vec<f64> = list(cpu, "longest").iter().map(|gap| number(gap, "ns")).collect();
        assert!(longest.is_sorted_by(|one, next| one >= next), "{longest:?}");
        assert_eq!(longest.first().copied(), cpu["max_ns"].as_f64());
        assert_eq!(longest.len() as f64, number(cpu, "gaps").min(8.0));
    }
}

/// A measurement of ten minutes, once its loop has run for a while.
fn spinning() -> Child {
    let cpu = last_cpu().to_string();
    let child = jitter(&["--json", "--cpus", &cpu, "--seconds", "600"]).spawn().unwrap();
    let begin = Instant::now();
    while !is_spinning(&child) {
        assert!(begin.elapsed() < MINUTES, "the loop does not run");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Whether it is in its loop: one that measures its own cost or waits has not used so much time.
fn is_spinning(child: &Child) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", child.id())) else { return false };
    tasks.flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // proc_pid_stat(5): behind the name the state is the first field, and ticks of 10 ms as a user are the twelfth.
        let ticks = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(11));
        name.starts_with("spin-") && ticks.and_then(|ticks| ticks.parse().ok()).unwrap_or(0) > 10
    })
}

fn send(signal: &str, child: &Child) {
    let line = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
}

#[test]
fn a_signal_ends_it_with_the_report_until_then() {
    let _alone = alone();
    for signal in ["INT", "TERM"] {
        let child = spinning();
        send(signal, &child);
        let report = report(&child.wait_with_output().unwrap());
        assert_eq!(report["ended_early"], true);
        let cpu = &report["cpus"][0];
        assert!((0.05..500.0).contains(&number(cpu, "seconds")), "{cpu}");
        assert!(number(cpu, "gaps") > 0.0, "not even a timer tick: {cpu}");
    }
}

#[test]
fn a_signal_that_comes_twice_leaves_the_report_whole() {
    let _alone = alone();
    let child = spinning();
    // As timeout(1) sends it, to the command and to its group, or an impatient person.
    (0..3).for_each(|_| send("INT", &child));
    assert_eq!(report(&child.wait_with_output().unwrap())["ended_early"], true);
}

#[test]
fn a_thread_that_gets_no_cpu_keeps_nobody_from_ending_it() {
    let _alone = alone();
    let mut child = spinning();
    let thread = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten().find(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("spin-"))
    });
    let thread = Pid::from_raw(thread.unwrap().file_name().to_str().unwrap().parse().unwrap());
    // Stopped alone: as if a task of a higher priority had its CPU for ever.
    ptrace::seize(thread, ptrace::Options::empty()).unwrap();
    ptrace::interrupt(thread).unwrap();
    waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < MINUTES, "the signal does not end it");
        send("INT", &child);
        // The thread is this process's to bury, before the command can be.
        let ended = waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)).unwrap();
        if ended != WaitStatus::StillAlive {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}

#[test]
fn a_stopped_thread_has_a_gap_of_that_length() {
    const STOPPED: Duration = Duration::from_millis(300);
    let _alone = alone();
    let child = spinning();
    send("STOP", &child);
    let begin = Instant::now();
    let is_stopped = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        status.contains("State:\tT")
    };
    while !is_stopped() {
        assert!(begin.elapsed() < MINUTES, "it does not stop");
    }
    // The length of the gap to come, and no hope that something happens meanwhile.
    thread::sleep(STOPPED);
    send("CONT", &child);
    send("INT", &child);
    let report = report(&child.wait_with_output().unwrap());
    let longest = &report["cpus"][0]["longest"][0];
    assert!(number(longest, "ns") >= STOPPED.as_secs_f64() * 1e9, "{longest}");
    assert_eq!(longest["cause"], "context_switch");
}

#[test]
fn people_get_a_table_and_the_causes() {
    let _alone = alone();
    let cpu = last_cpu();
    let output = beside_a_competitor(cpu, || {
        jitter(&["--cpus", &cpu.to_string(), "--seconds", "0.5"]).output().unwrap()
    });
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["p99.9", "lost", "context switch: ", "planted (", "the longest", &format!("CPU {cpu},")] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(output.stderr.is_empty(), "signs of life are for terminals: {:?}", output.stderr);
}

#[test]
fn what_cannot_be_measured_is_an_error_that_says_why() {
    for (arguments, reason) in [
        (["--cpus", "8191"], "cannot spin on CPU 8191: cannot pin to CPU 8191"),
        (["--cpus", "99999"], "CPU 99999 does not exist"),
        (["--cpus", "two"], "not a list of CPUs"),
        (["--cpus", ""], "names no CPU"),
        (["--seconds", "0"], "above 0"),
        (["--seconds", "1e300"], "a week at most"),
        (["--seconds", "nan"], "above 0"),
        (["--seconds", "inf"], "a week at most"),
        (["--threshold-ns", "0"], "0"),
        (["--threshold-ns", "1"], "name twice that at least"),
    ] {
        let output = jitter(&arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {complaint}");
        assert!(complaint.contains(reason), "{arguments:?}: {complaint}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn one_bad_cpu_among_good_ones_ends_all() {
    let cpus = format!("{},8191", last_cpu());
    let output = jitter(&["--cpus", &cpus, "--seconds", "600"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("CPU 8191"));
}
