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
    fn start() -> Option<Self> {
        let mut lead = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["bench", "--suite", "pingpong", "--rounds", "100000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
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
        let mut complaint = String::new();
        self.lead.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        complaint
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
    let Some(running) = Running::start() else { return };
    kill_process(running.peer, Signal::KILL).unwrap();
    let complaint = running.complaint();
    assert!(complaint.contains("the peer process is gone"), "{complaint}");
}

#[test]
fn a_peer_that_hangs_ends_the_run_and_does_not_stay() {
    let Some(running) = Running::start() else { return };
    let peer = running.peer;
    kill_process(peer, Signal::STOP).unwrap();
    let complaint = running.complaint();
    assert!(complaint.contains("the peer process hangs"), "{complaint}");
    wait_for_the_end_of(peer);
}

#[test]
fn a_lead_that_is_killed_takes_the_peer_along() {
    let Some(mut running) = Running::start() else { return };
    running.lead.kill().unwrap();
    running.lead.wait().unwrap();
    wait_for_the_end_of(running.peer);
}
