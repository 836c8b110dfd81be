//! Counting the system calls of both processes: a third one stops them at each, as a debugger does.
//!
//! That makes a call some ten times as slow, so nothing is timed meanwhile. What is counted stands in shared memory,
//! where the processes look without a call.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use measure::Side;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{PTracer, set_ptracer};
use serde::{Deserialize, Serialize};

use super::memory::{Kind, Memory};
use super::process::{exit_with, take_over};

/// What the counting process says once it counts.
const READY: &str = "ready";

/// What the counting process needs to know.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    parent: i32,
    /// Lead and peer.
    processes: [i32; 2],
    segment: RawFd,
}

/// The counting process, until this is dropped.
#[derive(Debug)]
pub(crate) struct Counting(Child);

/// Lets another process of the same user count here, where the host allows that to ancestors only.
pub(crate) fn allow() {
    // A host without this rule refuses the call, and needs none.
    let _ = set_ptracer(PTracer::Any);
}

impl Counting {
    /// Starts counting.
    ///
    /// # Errors
    ///
    /// Why nothing can be counted here.
    pub(crate) fn start(memory: &Memory, peer: u32) -> Result<Self> {
        allow();
        let segments = memory.inheritable()?;
        let segment = segments.iter().find(|(kind, _)| *kind == Kind::Usual).context("no usual segment")?;
        let parent = i32::try_from(std::process::id())?;
        let orders =
            Orders { parent, processes: [parent, i32::try_from(peer)?], segment: segment.1.as_raw_fd() };
        let child = Command::new(std::env::current_exe().context("cannot tell which program this is")?)
            .args(["bench", "--counter", &serde_json::to_string(&orders)?])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the counting process")?;
        let mut counting = Self(child);
        let said = counting.0.stdout.take().context("the counting process has no standard output")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line.trim() == READY, "{}", line.trim());
        Ok(counting)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // The kernel lets go of whoever it traces; there is nobody to tell when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the program does when it was started to count.
pub(crate) fn count(orders: &str) -> Result<()> {
    let orders: Orders = serde_json::from_str(orders).context("--counter is for this program itself")?;
    exit_with(orders.parent)?;
    spread()?;
    let mut memory = Memory::default();
    memory.attach(Kind::Usual, take_over(orders.segment)?)?;
    let counts = memory.counts()?;

    let processes = orders.processes.map(Pid::from_raw);
    let mut out = std::io::stdout();
    if let Err(error) = processes.into_iter().try_for_each(seize) {
        writeln!(out, "this process may not trace another: {error}")?;
        return Ok(());
    }
    writeln!(out, "{READY}")?;
    let mut is_inside = [false; 2];
    follow(|process| {
        let side = if process == processes[0] { Side::Lead } else { Side::Peer };
        // Stops at the start and at the end of a call take turns.
        let is_inside = &mut is_inside[side as usize];
        *is_inside = !*is_inside;
        if *is_inside {
            counts.add(side);
        }
    })
}

/// Runs where there is room: the program that started it is pinned.
fn spread() -> Result<()> {
    let mut all = CpuSet::new();
    for cpu in 0..CpuSet::count() {
        all.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::this(), &all)?)
}

/// Has the main thread of a process stop at its calls from now on.
fn seize(process: Pid) -> nix::Result<()> {
    ptrace::seize(process, ptrace::Options::PTRACE_O_TRACESYSGOOD)?;
    ptrace::interrupt(process)?;
    waitpid(process, Some(WaitPidFlag::__WALL))?;
    ptrace::syscall(process, None)
}

/// Calls `at_stop` whenever a process stops at the start or end of a call; returns when all have ended.
fn follow(mut at_stop: impl FnMut(Pid)) -> Result<()> {
    loop {
        match waitpid(None, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::PtraceSyscall(process)) => {
                at_stop(process);
                go_on(process, None)?;
            }
            Ok(WaitStatus::PtraceEvent(process, _, _)) => go_on(process, None)?,
            Ok(WaitStatus::Stopped(process, signal)) => go_on(process, signal)?,
            Ok(_) => {}
            Err(Errno::ECHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn go_on(process: Pid, signal: impl Into<Option<Signal>>) -> Result<()> {
    match ptrace::syscall(process, signal) {
        // It was killed meanwhile.
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
