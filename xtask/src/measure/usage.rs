//! What a process uses: CPU time, voluntary context switches and, while somebody counts them, system calls.

use core::sync::atomic::Ordering;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use ring_core::Region;
use serde::{Deserialize, Serialize};

use crate::Side;
use crate::words::{Words, word_bytes};

/// What one process used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of all its threads, in user mode and in the kernel.
    pub cpu_ns: u64,
    /// Times that it gave its CPU away to wait for something.
    pub switches: u64,
    /// System calls of its main thread; 0 unless they are counted.
    pub syscalls: u64,
}

impl Usage {
    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            switches: self.switches + other.switches,
            syscalls: self.syscalls + other.syscalls,
        }
    }
}

/// What both processes used for so many messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Messages.
    pub messages: u64,
    /// Whoever takes them: the lead.
    pub receiver: Usage,
    /// Whoever sends them: the peer.
    pub sender: Usage,
}

impl Used {
    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            receiver: self.receiver.and(other.receiver),
            sender: self.sender.and(other.sender),
        }
    }
}

/// Memory for the system calls of both processes.
pub const COUNTS_BYTES: usize = word_bytes(2);

/// How many system calls each process has made, as whoever counts them has it. They stand in shared memory since a
/// process that had to ask the kernel would be counted for that.
#[derive(Debug)]
pub struct Counts<R>(Words<R>);

impl<R: Region> Counts<R> {
    /// Both are 0 in fresh memory.
    ///
    /// # Errors
    ///
    /// When the region has less than [`COUNTS_BYTES`].
    pub fn new(region: R) -> anyhow::Result<Self> {
        Ok(Self(Words::new(region, 2)?))
    }

    /// Adds one. The process stands still meanwhile.
    pub fn add(&self, side: Side) {
        // ORDERING: Relaxed: the kernel stands between this and the process's own look.
        self.0.at(side as usize).fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were.
    #[must_use]
    pub fn of(&self, side: Side) -> u64 {
        // ORDERING: Relaxed: as above.
        self.0.at(side as usize).load(Ordering::Relaxed)
    }
}

/// Reads what its own process uses.
#[derive(Debug)]
pub struct Meter<R> {
    counts: Counts<R>,
    side: Side,
}

/// What had been used when an interval began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Begun(Usage);

impl<R: Region> Meter<R> {
    /// Of the process that is this side.
    pub fn new(counts: Counts<R>, side: Side) -> Self {
        Self { counts, side }
    }

    /// The start of an interval.
    #[must_use]
    pub fn begin(&self) -> Begun {
        let usage = from_kernel();
        // Last, so that asking the kernel does not count.
        Begun(Usage { syscalls: self.counts.of(self.side), ..usage })
    }

    /// What was used since.
    #[must_use]
    pub fn since(&self, begun: Begun) -> Usage {
        // First, as above.
        let Usage { syscalls, .. } = self.calls_since(begun);
        let now = from_kernel();
        Usage {
            cpu_ns: now.cpu_ns.saturating_sub(begun.0.cpu_ns),
            switches: now.switches.saturating_sub(begun.0.switches),
            syscalls,
        }
    }

    /// The start of an interval in which only system calls matter. Makes none.
    #[must_use]
    pub fn begin_calls(&self) -> Begun {
        Begun(Usage { syscalls: self.counts.of(self.side), ..Usage::default() })
    }

    /// The system calls since. Makes none.
    #[must_use]
    pub fn calls_since(&self, Begun(begun): Begun) -> Usage {
        Usage { syscalls: self.counts.of(self.side) - begun.syscalls, ..Usage::default() }
    }
}

fn from_kernel() -> Usage {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("every process may ask this about itself");
    let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Usage {
        cpu_ns: u64::try_from(cpu_us).unwrap_or(0) * 1_000,
        switches: u64::try_from(usage.voluntary_context_switches()).unwrap_or(0),
        syscalls: 0,
    }
}
