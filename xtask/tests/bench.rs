//! The bench as a user meets it when one of its two processes dies or hangs: it ends, and says why.
#![allow(missing_docs)]

use core::time::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

/// A look for a hang takes ten seconds, and this machine may be busy.
const BOUND: Duration = Duration::from_secs(60);

/// The bench in the middle of a long run, and its peer.
struct Running {
    lead: Child,
    peer: Pid,
}

impl Running {
    fn start(errors: impl Into<Stdio>) -> Option<Self> {
        let mut lead = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["bench", "--suite", "pingpong", "--rounds", "100000"])
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(lead.stdout.as_mut().unwrap());
        for line in stdout.lines().map(Result::unwrap) {
            if line.contains("One CPU only") {
                lead.kill().unwrap();
                lead.wait().unwrap();
                eprintln!("skipped: one CPU only");
                return None;
            }
            // What follows is the table, at the end of the run.
            if line.starts_with("pingpong:") {
                break;
            }
        }
        let begin = Instant::now();
        let children = format!("/proc/{0}/task/{0}/children", lead.id());
        let peer = loop {
            assert!(begin.elapsed() < BOUND, "no peer");
            let ids = fs::read_to_string(&children).unwrap();
            match ids.split_whitespace().next() {
                Some(id) => break Pid::from_raw(id.parse().unwrap()).unwrap(),
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        // Both spin by now.
        thread::sleep(Duration::from_secs(1));
        Some(Self { lead, peer })
    }

    /// Waits for the end of the bench and returns what it says.
    fn complaint(mut self) -> String {
        self.wait_for_failure();
        let mut complaint = String::new();
        self.lead.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        complaint
    }

    fn wait_for_failure(&mut self) {
        let begin = Instant::now();
        let status = loop {
            match self.lead.try_wait().unwrap() {
                Some(status) => break status,
                None if begin.elapsed() > BOUND => {
                    self.lead.kill().unwrap();
                    panic!("the bench still runs");
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        assert_eq!(status.code(), Some(1));
    }
}

/// A process that has ended may stay as a zombie where nobody asks for orphans.
fn wait_for_the_end_of(process: Pid) {
    let stat = format!("/proc/{process}/stat");
    let begin = Instant::now();
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begin.elapsed() < BOUND, "the peer is still there");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_peer_that_is_killed_ends_the_run() {
    let Some(running) = Running::start(Stdio::piped()) else { return };
    kill_process(running.peer, Signal::KILL).unwrap();
    let complaint = running.complaint();
    assert!(complaint.contains("the peer process is gone"), "{complaint}");
}

#[test]
fn a_peer_that_hangs_ends_the_run_and_does_not_stay() {
    let Some(running) = Running::start(Stdio::piped()) else { return };
    let peer = running.peer;
    kill_process(peer, Signal::STOP).unwrap();
    let complaint = running.complaint();
    assert!(complaint.contains("the peer process hangs"), "{complaint}");
    wait_for_the_end_of(peer);
}

#[test]
fn a_lead_that_is_killed_takes_the_peer_along() {
    let Some(mut running) = Running::start(Stdio::piped()) else { return };
    running.lead.kill().unwrap();
    running.lead.wait().unwrap();
    wait_for_the_end_of(running.peer);
}

#[test]
fn a_run_that_nobody_can_be_told_of_ends_too() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let Some(mut running) = Running::start(full) else { return };
    kill_process(running.peer, Signal::KILL).unwrap();
    running.wait_for_failure();
}

#[test]
fn output_that_nobody_reads_ends_the_run_quietly() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    let run = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["bench", "--quick", "--suite", "pingpong"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr).as_ref()), (Some(1), ""));
}

#[test]
fn figures_of_an_earlier_run_stay_until_there_are_new_ones() {
    let path = std::env::temp_dir().join(format!("ring-bench-{}.json", std::process::id()));
    let run = |arguments: &[&str], out: Stdio| {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_xtask"));
        bench.args(["bench", "--quick", "--suite", "pingpong", "--json"]).arg(&path).args(arguments);
        bench.stdout(out).stderr(Stdio::null()).status().unwrap()
    };
    fs::write(&path, "figures".repeat(100_000)).unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert!(!run(&[], full.into()).success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "figures".repeat(100_000));
    assert!(run(&["--rounds", "1"], Stdio::null()).success());
    let figures = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(figures.starts_with('{') && figures.ends_with("}\n"), "{figures}");
}

#[test]
fn system_calls_are_counted_one_by_one_and_the_plot_is_drawn() {
    let file = |ending: &str| {
        std::env::temp_dir().join(format!("ring-bench-notify-{}.{ending}", std::process::id()))
    };
    let (json, plot) = (file("json"), file("svg"));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_xtask"));
    bench.args(["bench", "--quick", "--suite", "notify", "--rounds", "1"]);
    let run = bench.arg("--json").arg(&json).arg("--plot").arg(&plot).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let figures: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let drawn = fs::read_to_string(&plot).unwrap();
    fs::remove_file(&json).unwrap();
    fs::remove_file(&plot).unwrap();
    assert!(drawn.starts_with("<svg"), "{drawn}");
    if said.contains("One CPU only") || said.contains("could not be counted") {
        eprintln!("skipped: {said}");
        return;
    }
    let of = |case: &str, key: &str| {
        let rows = figures["rows"].as_array().unwrap();
        rows.iter().find(|row| row["case"] == case).unwrap()[key].as_f64()
    };
    // One write and one read, and nothing of what surrounds them.
    for case in ["pipe/0us", "unix/1us", "pipe/1ms"] {
        assert_eq!(of(case, "syscalls_per_message"), Some(2.0), "{case}");
        assert_eq!(of(case, "sender_syscalls_per_message"), Some(1.0), "{case}");
    }
    assert_eq!(of("doorbell/10us", "syscalls_per_message"), Some(0.0));
    assert_eq!(of("bare-futex/1ms", "sender_syscalls_per_message"), Some(1.0), "it wakes each time");
}

#[test]
fn a_plot_of_a_suite_that_does_not_run_is_refused() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let run = bench.args(["bench", "--suite", "stream", "--plot", "/nowhere/plot.svg"]).output().unwrap();
    assert!(!run.status.success());
    assert!(String::from_utf8_lossy(&run.stderr).contains("--plot draws the suite notify"));
}
