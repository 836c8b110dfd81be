//! Steps a forked child through an operation with ptrace, and kills it on the way.
//!
//! The child is a program as any other: nothing in what it runs knows of this. A run takes all system calls and a
//! sample of the instructions, and, with `RING_LONG=1` in the environment, all of these too, but for operations that
//! take ten thousands.
//!
//! # Safety
//!
//! The forked child calls nothing but what is tested, `ptrace`, `raise` and `_exit`: other threads of this process may
//! have held locks when it was forked. (The allocator's are taken around a fork by the C library.)
#![allow(unsafe_code)]
#![allow(dead_code)] // Each test binary uses a part.

use crate::common::is_long;

/// Instructions of an operation that a short run takes.
const SAMPLE: u64 = 6;

/// A process that was forked and is stepped by this thread.
pub(crate) struct Victim(libc::pid_t);

/// Where a process stops to be killed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
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
    pub(crate) fn start(act: impl FnOnce(&dyn Fn())) -> Self {
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
pub(crate) struct Killed {
    pub(crate) process: libc::pid_t,
    /// How many stops were before.
    pub(crate) after: u64,
    /// The operation was through.
    pub(crate) is_through: bool,
}

/// Kills a process at one of the stops of an operation, each time anew.
///
/// `prepare` returns what survives. `victim` gets ready, and does the operation between two calls of its argument.
/// `check` looks whether the survivor can go on.
pub(crate) fn killed_at_each<S>(
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
    assert!(stops > if pace == Pace::Call { 1 } else { 10 }, "only {stops} stops");
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
