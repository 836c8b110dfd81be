//! The two processes: the lead starts its own program again as the peer, and commands it over a socket.
//!
//! # Safety
//!
//! Descriptors reach the peer by inheritance and their numbers in an argument. The numbers are taken over once,
//! at the start of the program, before it opens anything.
#![allow(unsafe_code)]

use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use measure::{Arm, Slice};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::arms::Spec;
use super::count;
use super::memory::{Kind, Memory};
use super::watch::Watch;

/// How long the peer has to get ready, to end a slice after the lead, and to end.
const BOUND: Duration = Duration::from_secs(10);

/// What the peer needs to know.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    parent: i32,
    cpu: usize,
    control: RawFd,
    segments: Vec<(Kind, RawFd)>,
    arms: Vec<(Spec, Vec<RawFd>)>,
}

/// A slice for the peer to follow.
#[derive(Debug, Serialize, Deserialize)]
struct Follow {
    arm: usize,
    slice: Slice,
}

/// The other process.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    control: UnixStream,
    answers: BufReader<UnixStream>,
    watch: Option<Watch>,
}

impl Peer {
    /// Starts it on a CPU of its own, with the other ends of these arms.
    pub(crate) fn start(cpu: usize, memory: &Memory, arms: Vec<(Spec, Vec<OwnedFd>)>) -> Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        let segments = memory.inheritable()?;
        for descriptor in arms.iter().flat_map(|(_, descriptors)| descriptors).chain([&theirs]) {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        let number = |descriptor: &OwnedFd| descriptor.as_raw_fd();
        let orders = Orders {
            parent: getpid().as_raw_nonzero().get(),
            cpu,
            control: number(&theirs),
            segments: segments.iter().map(|(kind, descriptor)| (*kind, number(descriptor))).collect(),
            arms: arms.iter().map(|(spec, ends)| (*spec, ends.iter().map(number).collect())).collect(),
        };
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        let child = Command::new(program)
            .args(["bench", "--peer", &serde_json::to_string(&orders)?])
            .spawn()
            .context("cannot start the peer process")?;
        control.set_read_timeout(Some(BOUND))?;
        let answers = BufReader::new(control.try_clone()?);
        // From here on the peer's ends are open in the peer alone, so that its end is seen here.
        drop((theirs, segments, arms));
        let mut peer = Self { child, control, answers, watch: None };
        peer.wait_for_answer().context("the peer process does not get ready")?;
        peer.watch = Some(Watch::begin(peer.control.try_clone()?)?);
        Ok(peer)
    }

    /// Has the peer follow a slice.
    pub(crate) fn follow(&mut self, arm: usize, slice: Slice) -> Result<()> {
        let mut line = serde_json::to_vec(&Follow { arm, slice })?;
        line.push(b'\n');
        self.control.write_all(&line).context("the peer process is gone")
    }

    /// Waits until the peer is done with what it was told.
    pub(crate) fn wait_for_answer(&mut self) -> Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("the peer process does not answer")?;
        ensure!(line == "done\n", "the peer process has ended");
        self.gets_on();
        Ok(())
    }

    /// Tells the watch that the run gets on, also where the peer has nothing to do.
    pub(crate) fn gets_on(&self) {
        if let Some(watch) = &self.watch {
            watch.progress();
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn end(&mut self) -> Result<()> {
        self.watch = None;
        // It reads the end of its orders, and ends.
        self.control.shutdown(std::net::Shutdown::Both)?;
        let deadline = Instant::now() + BOUND;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.child.kill()?;
                self.child.wait()?;
                bail!("the peer process had to be killed");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // There is nobody to tell, and at the lead's end the kernel kills the peer in any case.
        let _ = self.end();
    }
}

/// What the program does when it was started as the peer.
pub(crate) fn be_peer(orders: &str) -> Result<()> {
    let orders: Orders = serde_json::from_str(orders).context("--peer is for this program itself")?;
    exit_with(orders.parent)?;
    count::allow();
    ring_tune::pin_to(orders.cpu)?;

    let control = UnixStream::from(take_over(orders.control)?);
    let mut memory = Memory::default();
    for (kind, number) in orders.segments {
        memory.attach(kind, take_over(number)?)?;
    }
    let mut arms = Vec::new();
    for (spec, numbers) in orders.arms {
        let descriptors = numbers.into_iter().map(take_over).collect::<Result<_>>()?;
        arms.push(spec.peer(&mut memory, descriptors)?);
    }
    obey(&control, &mut arms)
}

fn obey(mut control: &UnixStream, arms: &mut [Box<dyn Arm>]) -> Result<()> {
    let orders = BufReader::new(control);
    control.write_all(b"done\n")?;
    for line in orders.lines() {
        let Follow { arm, slice } = serde_json::from_str(&line?)?;
        arms.get_mut(arm).context("there is no such arm")?.follow(slice);
        control.write_all(b"done\n")?;
    }
    Ok(())
}

/// Has the kernel kill this process when its parent ends.
pub(crate) fn exit_with(parent: i32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    ensure!(getppid().map(Pid::as_raw_nonzero).map(i32::from) == Some(parent), "the lead process is gone");
    Ok(())
}

/// Takes over a descriptor that the parent left open for this program.
pub(crate) fn take_over(number: RawFd) -> Result<OwnedFd> {
    ensure!(number > 2, "{number} is no descriptor of the parent's");
    // SAFETY: the parent opened it for this program and named it once; nothing else here knows the number.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC).context("a descriptor was not inherited")?;
    Ok(descriptor)
}
