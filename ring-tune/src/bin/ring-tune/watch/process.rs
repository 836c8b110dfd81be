//! A process and its threads.

use core::time::Duration;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use ring_tune::Tree;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::counts::{Counts, Group, Whose};
use crate::counters::{TICK_MS, field};

#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    /// Whoever has the number and began at another time is somebody else.
    start: u64,
    /// Becomes readable when the last thread ends; none before Linux 5.3.
    descriptor: Option<OwnedFd>,
}

impl Process {
    pub(super) fn find(tree: &Tree, pid: u32) -> anyhow::Result<Self> {
        // Before all else, so that it is of the process that is looked at from now on.
        let descriptor = Pid::from_raw(i32::try_from(pid).unwrap_or(0))
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let stat = text(tree, &format!("proc/{pid}/stat"));
        let start = Stat::of(&stat).and_then(|stat| stat.number(START));
        let start = start.with_context(|| format!("there is no process {pid}: name one that runs"))?;
        let status = text(tree, &format!("proc/{pid}/status"));
        let process = field(&status, "Tgid").unwrap_or_default();
        ensure!(process == pid.to_string(), "{pid} is a thread of process {process}: name the process");
        let process = Self { pid, start, descriptor };
        ensure!(!process.wait(tree, Instant::now()), "process {pid} has ended already: name one that runs");
        Ok(process)
    }

    /// One of a tree.
    #[cfg(test)]
    pub(super) fn fixture(pid: u32, start: u64) -> Self {
        Self { pid, start, descriptor: None }
    }

    pub(super) fn threads(&self, tree: &Tree) -> Vec<u32> {
        let names = tree.names(&format!("proc/{}/task", self.pid)).unwrap_or_default();
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    pub(super) fn whose(&self) -> Whose {
        Whose::Process(self.pid)
    }

    /// Waits for the end of the process, and until this moment at most; whether it has ended.
    pub(super) fn wait(&self, tree: &Tree, until: Instant) -> bool {
        let Some(descriptor) = &self.descriptor else {
            thread::sleep(until.saturating_duration_since(Instant::now()));
            let stat = text(tree, &format!("proc/{}/stat", self.pid));
            return !self.is_of(&stat) || (state(&stat) == Some("Z") && self.threads(tree).len() < 2);
        };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let time = Timespec::try_from(left.min(LONGEST)).unwrap_or_default();
            match poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&time)) {
                Ok(0) if left <= LONGEST => return false,
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return true,
                Err(_) => {
                    thread::sleep(left);
                    return false;
                }
            }
        }
    }

    /// Adds what is counted for the process, with its threads that have ended, and for each thread. A zombie's counts
    /// can still be read.
    pub(super) fn add(&self, tree: &Tree, counts: &mut Counts) {
        let folder = format!("proc/{}", self.pid);
        let stat = text(tree, &format!("{folder}/stat"));
        let Some(stat) = Stat::of(&stat).filter(|_| self.is_of(&stat)) else { return };
        let mut group = Group::new(self.whose(), stat.name.into());
        add_faults(&stat, &mut group);
        for (name, place) in [("user_ms", USER_TIME), ("system_ms", SYSTEM_TIME)] {
            group.add(name, stat.number(place).map(|ticks| ticks.saturating_mul(TICK_MS)));
        }
        counts.push(group);
        for thread in self.threads(tree) {
            add_thread(tree, &format!("{folder}/task/{thread}"), thread, counts);
        }
    }

    /// What this kernel does not tell of it.
    pub(super) fn absent(&self, tree: &Tree) -> Vec<&'static str> {
        let is_absent = |name: &&str| !tree.exists(&format!("proc/{}/task/{}/{name}", self.pid, self.pid));
        ["schedstat", "sched"].into_iter().filter(is_absent).collect()
    }

    fn is_of(&self, stat: &str) -> bool {
        Stat::of(stat).and_then(|stat| stat.number(START)) == Some(self.start)
    }
}

/// Some systems cannot wait for longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// A thread that ends meanwhile is left out, or in part.
fn add_thread(tree: &Tree, folder: &str, id: u32, counts: &mut Counts) {
    let read = |name: &str| text(tree, &format!("{folder}/{name}"));
    let stat = read("stat");
    let Some(stat) = Stat::of(&stat) else { return };
    let Some(start) = stat.number(START) else { return };
    let mut group = Group::new(Whose::Thread { id, start }, stat.name.into());
    let number = |text: &str, name| field(text, name)?.parse().ok();
    let status = read("status");
    group.add("voluntary_switches", number(&status, "voluntary_ctxt_switches"));
    group.add("involuntary_switches", number(&status, "nonvoluntary_ctxt_switches"));
    group.add("migrations", number(&read("sched"), "se.nr_migrations"));
    add_faults(&stat, &mut group);
    // scheduler/sched-stats of the kernel's documentation: time on a CPU, and time in the run queue, in ns.
    let schedule = read("schedstat");
    let mut times = schedule.split_whitespace().map(|time| time.parse().ok());
    group.add("cpu_ns", times.next().flatten());
    group.add("run_queue_ns", times.next().flatten());
    counts.push(group);
}

fn add_faults(stat: &Stat<'_>, group: &mut Group) {
    group.add("minor_faults", stat.number(MINOR_FAULTS));
    group.add("major_faults", stat.number(MAJOR_FAULTS));
}

/// Places of proc_pid_stat(5).
const MINOR_FAULTS: usize = 10;
const MAJOR_FAULTS: usize = 12;
const USER_TIME: usize = 14;
const SYSTEM_TIME: usize = 15;
const START: usize = 22;

/// The line of a process or thread.
struct Stat<'a> {
    name: &'a str,
    /// From the third place on.
    rest: &'a str,
}

impl<'a> Stat<'a> {
    /// The name is in brackets, and may hold any character.
    fn of(line: &'a str) -> Option<Self> {
        let (start, rest) = line.rsplit_once(')')?;
        let (_, name) = start.split_once('(')?;
        Some(Self { name, rest })
    }

    fn number(&self, place: usize) -> Option<u64> {
        self.rest.split_whitespace().nth(place.checked_sub(3)?)?.parse().ok()
    }
}

fn state(stat: &str) -> Option<&str> {
    Stat::of(stat)?.rest.split_whitespace().next()
}

/// A process may call itself by bytes that are no text.
fn text(tree: &Tree, path: &str) -> String {
    String::from_utf8_lossy(&tree.bytes(path).unwrap_or_default()).into_owned()
}
