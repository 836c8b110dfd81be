//! How `ring-tune watch` begins and ends: with its process, by a signal, after so many ticks, or not at all.
#![cfg(feature = "cli")]

#[path = "common/watching.rs"]
#[allow(dead_code, reason = "the tests of what it tells use more of it")]
mod watching;

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use watching::{MINUTES, at_least, command, number_of_call, sum, tick, ticks, wait_for, watch};

#[test]
fn as_many_ticks_as_are_asked_for() {
    for count in ["1", "3"] {
        let arguments = ["--every", "0.05", "--count", count, "--cpus", "0"];
        let output = watch(&[&arguments[..], &["--json"]].concat());
        assert_eq!(ticks(&output).len().to_string(), count);
        let text = watch(&arguments);
        let text = String::from_utf8(text.stdout).unwrap();
        let times = text.lines().filter_map(|line| line.split_whitespace().next());
        let times: BTreeSet<&str> = times.filter(|time| time.parse::<f64>().is_ok()).collect();
        assert_eq!(times.len().to_string(), count, "{text}");
    }
}

/// A process that ends when it is told, and not before.
fn ending() -> Child {
    Command::new("sh").args(["-c", "read line; sleep 0.05; read line"]).stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_end_of_a_process_ends_it_at_once_with_what_it_counted_last() {
    let mut process = ending();
    let pid = process.id();
    // Longer than the test may take: the end comes with the end of the process, and not with a tick.
    let mut watch = command(&["--pid", &pid.to_string(), "--json", "--every", "3600"]).spawn().unwrap();
    // The last thing that the command does before the first tick is to wait for the process in ppoll(2).
    let path = format!("/proc/{}/syscall", watch.id());
    wait_for(|| number_of_call(&path) == Some(libc::SYS_ppoll));
    process.stdin.take().unwrap().write_all(b"\n").unwrap();
    // Nobody asks for the zombie before the command has ended, so that its counts are there to the end.
    let begin = Instant::now();
    while watch.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < MINUTES);
        thread::sleep(Duration::from_millis(5));
    }
    let told = ticks(&watch.wait_with_output().unwrap());
    process.wait().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["ended"], true);
    // It has waited for its child, and has run.
    let thread = sum(&told, "thread", Some(pid));
    at_least(&thread, "voluntary_switches", 1);
    at_least(&thread, "cpu_ns", 1);
}

#[test]
fn people_are_told_that_the_process_has_ended() {
    let mut process = ending();
    let watch = command(&["--pid", &process.id().to_string(), "--every", "0.05"]).spawn().unwrap();
    drop(process.stdin.take());
    process.wait().unwrap();
    let output = watch.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    if output.status.success() {
        assert!(text.ends_with("the process has ended\n"), "{text}");
    } else {
        // It was over before the command had begun.
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("there is no process") || error.contains("has ended already"), "{error}");
    }
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let thread = thread::spawn(thread::park);
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let threads = threads.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let thread_id = threads.into_iter().find(|id| *id != std::process::id().to_string()).unwrap();
    let mut zombie = ending();
    drop(zombie.stdin.take());
    let stat = format!("/proc/{}/stat", zombie.id());
    wait_for(|| fs::read_to_string(&stat).unwrap().contains(") Z "));
    let zombie_id = zombie.id().to_string();
    for (arguments, text) in [
        (&["--pid", "4194304"] as &[_], "there is no process 4194304"),
        (&["--pid", "0"], "there is no process 0"),
        (&["--pid", "4294967295"], "there is no process"),
        (&["--pid", "x"], "invalid value"),
        (&["--pid", &thread_id], "is a thread of process"),
        (&["--pid", &zombie_id], "has ended already"),
        (&["--cpus", "8191"], "online"),
        (&["--device", "../../etc"], "no network interface"),
        (&["--device", "a\x1b[2J"], r"no network interface or RDMA device a\u{1b}[2J"),
        (&["--every", "nan"], "--every"),
        (&["--every", "0"], "--every"),
        (&["--every", "1e300"], "--every"),
        (&["--count", "0"], "--count"),
    ] {
        let output = watch(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(text), "{arguments:?}: {error}");
    }
    zombie.wait().unwrap();
    thread.thread().unpark();
    thread.join().unwrap();
}

#[test]
fn a_signal_ends_it_as_it_ends_any_command_and_leaves_whole_lines() {
    for (name, number) in [("INT", 2), ("TERM", 15)] {
        let mut watch = command(&["--json", "--every", "0.01", "--cpus", "0"]).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap());
        let mut text = String::new();
        lines.read_line(&mut text).unwrap();
        let line = format!("kill -{name} {}", watch.id());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
        lines.read_to_string(&mut text).unwrap();
        assert!(text.ends_with('\n') && text.lines().map(tick).count() > 0, "{text:?}");
        assert_eq!(watch.wait().unwrap().signal(), Some(number));
    }
}

#[test]
fn nobody_who_reads_on_is_no_error() {
    let mut command = command(&["--every", "0.05"]).spawn().unwrap();
    drop(command.stdout.take());
    let output = command.wait_with_output().unwrap();
    assert!(!String::from_utf8(output.stderr).unwrap().contains("error"));
}
