//! A process is killed after each instruction of an operation, or before and after each of its system calls, by SIGKILL,
//! and who survives goes on.
//!
//! The parent steps a forked child through the operation with ptrace. The child is a program as any other: nothing in the
//! rings knows of this. A run takes all system calls and a sample of the instructions, and, with `RING_LONG=1` in the
//! environment, all of these too, but for operations that take ten thousands.
//!
//! # Safety
//!
//! A role is taken over only after its owner was killed and waited for. The forked child calls nothing but the ring, its
//! segment, `ptrace`, `raise` and `_exit`: other threads of this process may have held locks when it was forked. (The
//! allocator's are taken around a fork by the C library.)
#![allow(unsafe_code)]
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod broadcast;
mod bytes;
mod claims;
mod create;
mod mpmc;
mod spsc;

use core::time::Duration;
use std::time::Instant;

use common::{is_long, unlocked};
use ring_core::{AssumeGone, Role};
use ring_shm::Segment;

/// Seven words that are all alike, so that half of a message shows.
type Message = [u64; 7];

/// Instructions of an operation that a short run takes.
const SAMPLE: u64 = 6;

/// In which whoever survives goes on.
const SOON: Duration = Duration::from_millis(100);

fn message(number: u64) -> Message {
    [number.wrapping_mul(0x9e37_79b9_7f4a_7c15); 7]
}

/// What the role's owner, who was killed, may have left is cleared up.
fn gone(role: Role) -> AssumeGone {
    // SAFETY: the child that had the role was waited for.
    unsafe { AssumeGone::of(role) }
}

/// A process that was forked and is stepped by this thread.
struct Victim(libc::pid_t);

/// Where a process stops to be killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Instruction,
    /// After an instruction, of too many to take them all: a hundred in a long run, and one in a short.
    SomeInstruction,
    /// Before and after each system call.
    Call,
}

/// How a step ended.
#[derive(PartialEq, Eq)]
enum Step {
    Within,
    /// The operation was through.
    Through,
}

impl Victim {
    /// Forks a process that gets ready and stops.
    fn start(act: impl FnOnce(&dyn Fn())) -> Self {
        let mark = || {
            // SAFETY: no conditions; the parent goes on with it.
            assert_eq!(unsafe { libc::raise(libc::SIGSTOP) }, 0);
        };
        // SAFETY: the child calls only what the module's documentation says.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: asks to be traced by the parent.
            if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } == 0 {
                act(&mark);
            }
            // SAFETY: no conditions.
            unsafe { libc::_exit(1) }
        }
        assert!(pid > 0, "cannot fork");
        let victim = Self(pid);
        assert!(victim.wait() == libc::SIGSTOP, "the child cannot be traced, or failed before the operation");
        victim
    }

    /// Waits until it stops, and returns the signal.
    fn wait(&self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: a child of this thread; the status is written to the integer.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        assert!(libc::WIFSTOPPED(status), "the child ended by itself: {status:#x}");
        libc::WSTOPSIG(status)
    }

    /// Lets it go on to the next stop.
    fn step(&self, pace: Pace) -> Step {
        let request = match pace {
            Pace::Instruction | Pace::SomeInstruction => libc::PTRACE_SINGLESTEP,
            Pace::Call => libc::PTRACE_SYSCALL,
        };
        // SAFETY: it is stopped, and this thread traces it.
        assert_eq!(unsafe { libc::ptrace(request, self.0, 0, 0) }, 0);
        match self.wait() {
            libc::SIGTRAP => Step::Within,
            libc::SIGSTOP => Step::Through,
            signal => panic!("the child got signal {signal}"),
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // SAFETY: a child that was not waited for yet.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        // SAFETY: as above; what it ended with does not matter.
        unsafe { libc::waitpid(self.0, core::ptr::null_mut(), 0) };
    }
}

/// Who was killed, and when.
struct Killed {
    process: libc::pid_t,
    /// How many stops were before.
    after: u64,
    /// The operation was through.
    is_through: bool,
}

/// Kills a process at one of the stops of an operation, each time anew.
///
/// `prepare` returns what survives. `victim` gets ready, and does the operation between two calls of its argument. `check`
/// looks whether the survivor can go on.
fn killed_at_each<S>(
    pace: Pace,
    prepare: impl Fn() -> S,
    victim: impl Fn(&S, &dyn Fn()),
    check: impl Fn(S, Killed),
) {
    stay_here();
    // Returns after how many stops: at most so many, fewer when the operation was through.
    let kill_after = |most: u64| {
        let survivor = prepare();
        let process = Victim::start(|mark| victim(&survivor, mark));
        let mut after = 0;
        while after < most && process.step(pace) == Step::Within {
            after += 1;
        }
        let killed = Killed { process: process.0, after, is_through: after < most };
        drop(process);
        check(survivor, killed);
        after
    };
    if pace == Pace::SomeInstruction && !is_long() {
        kill_after(u64::from(std::process::id()) % 20_000);
        return;
    }
    let stops = kill_after(u64::MAX);
    assert!(stops > 10, "only {stops} stops");
    let stride = match pace {
        Pace::Call => 1,
        Pace::Instruction if is_long() => 1,
        Pace::Instruction => stops.div_ceil(SAMPLE),
        Pace::SomeInstruction => stops.div_ceil(100),
    };
    // Another start in each process, so that many short runs take them all.
    let first = u64::from(std::process::id()) % stride;
    for most in (first..stops).step_by(usize::try_from(stride).unwrap()) {
        let after = kill_after(most);
        // A creator makes more calls where others have just begun to create.
        assert!(after == most || pace != Pace::Instruction, "each run is like the first");
    }
}

/// The same after each instruction of an operation on a ring in `segment`, made anew each time.
fn killed_at_each_instruction<'a, S>(
    segment: &'a Segment,
    prepare: impl Fn(&'a Segment) -> S,
    victim: impl Fn(&'a Segment, &dyn Fn()),
    check: impl Fn(&'a Segment, S, bool),
) {
    killed_at_each(
        Pace::Instruction,
        || prepare(segment),
        |_, mark| victim(segment, mark),
        |survivor, killed| check(segment, survivor, killed.is_through),
    );
}

/// Does what must not take long.
fn in_time<T>(act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = act();
    assert!(start.elapsed() < SOON, "it took {:?}", start.elapsed());
    done
}

/// Keeps this thread and the children that it forks on one CPU: a step is then two switches, and no wake-up of another
/// CPU.
fn stay_here() {
    // SAFETY: all zeroes are a set of none.
    let mut here: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: no conditions.
    let cpu = unsafe { libc::sched_getcpu() };
    // SAFETY: the set has room for the number of any CPU that the C library knows.
    unsafe { libc::CPU_SET(usize::try_from(cpu).unwrap(), &mut here) };
    // SAFETY: a set of that size. Where it fails, the test takes longer.
    unsafe { libc::sched_setaffinity(0, size_of_val(&here), &raw const here) };
}

fn new_segment() -> Segment {
    unlocked().create_anonymous(1 << 16).unwrap().publish()
}

/// Makes a ring anew, whoever was killed in the last one.
fn anyone() -> AssumeGone {
    // SAFETY: each child was waited for, and each handle of this process was dropped.
    unsafe { AssumeGone::all() }
}
