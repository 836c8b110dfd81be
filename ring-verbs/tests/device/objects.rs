//! What the kernel holds for this process, as `rdma resource show` counts it.

use std::fs;
use std::io::Write;
use std::process::{self, Command, Stdio};

/// How many objects of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Objects {
    pub(crate) contexts: usize,
    pub(crate) domains: usize,
    pub(crate) regions: usize,
    pub(crate) completion_queues: usize,
    pub(crate) queue_pairs: usize,
}

impl Objects {
    pub(crate) fn now() -> Self {
        let text = ask();
        let ours: Vec<&str> = text.lines().filter(|line| is_ours(line)).collect();
        // `dev rxe0 pdn 3 …`, `link rxe0/1 lqpn 17 …`: the third word is the kind.
        let count = |kind| ours.iter().filter(|line| line.split(' ').nth(2) == Some(kind)).count();
        Self {
            contexts: count("ctxn"),
            domains: count("pdn"),
            regions: count("mrn"),
            completion_queues: count("cqn"),
            queue_pairs: count("lqpn"),
        }
    }
}

/// Runs a test, after which there are as many objects as before.
pub(crate) fn nothing_is_left(test: impl FnOnce()) {
    let before = Objects::now();
    test();
    assert_eq!(Objects::now(), before, "objects of the kernel's after the test, and before it");
}

/// All objects, one a line, by one process.
fn ask() -> String {
    let mut rdma = Command::new("rdma");
    rdma.args(["-b", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut rdma = rdma.spawn().expect("rdma (iproute2) runs");
    let mut input = rdma.stdin.take().expect("a pipe");
    for kind in ["ctx", "pd", "mr", "cq", "qp"] {
        writeln!(input, "resource show {kind}").expect("it reads");
    }
    drop(input);
    let output = rdma.wait_with_output().expect("it ends");
    assert!(output.status.success(), "rdma resource show: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The kernel names the thread that made an object, and no thread where that has ended.
fn is_ours(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.by_ref().find(|word| *word == "pid").and_then(|_| words.next()) {
        Some(thread) => fs::exists(format!("/proc/{}/task/{thread}", process::id())).unwrap_or(false),
        // Objects of the kernel's own have the name of a module, in brackets.
        None => !line.contains("comm ["),
    }
}
