//! `ring-tune fix` killed at its system calls: what it changed comes back all the same.
//!
//! Before the folder for the old values is there, nothing has been opened to be written, and a call that only reads leaves
//! everything to the next one as it was: the others from then on are tried, and with `RING_LONG=1` in the environment all
//! calls from the first one on, which takes minutes.
//!
//! # Safety
//!
//! Between fork and exec the child calls `ptrace` and nothing else.
#![cfg(feature = "cli")]
#![allow(unsafe_code)]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod laid_out;
#[path = "common/settings.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod settings;
#[path = "common/skip.rs"]
mod skip;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use laid_out::LaidOut;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use settings::{Settings, fix, is_root, setting};

/// The first call that each action makes on the folder for the old values: it makes it, or opens it.
fn is_first(action: &str, call: i64) -> bool {
    match action {
        "--apply" => matches!(call, libc::SYS_mkdirat) || Some(call) == MKDIR,
        _ => call == libc::SYS_flock,
    }
}

/// Newer architectures have `mkdirat` alone.
#[cfg(target_arch = "x86_64")]
const MKDIR: Option<i64> = Some(libc::SYS_mkdir);
#[cfg(not(target_arch = "x86_64"))]
const MKDIR: Option<i64> = None;

/// They change nothing outside of the process; what is not here is tried.
const READING: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_read,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
];

/// As many as have a first, one in between and a last: each file more is the same calls again.
fn some_rows(settings: &Settings) -> Vec<String> {
    settings.rows().into_iter().take(3).collect()
}

fn applied(state: &Path, rows: &[String]) {
    let output = fix("--apply", state, rows).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Kills an action at each of its calls in turn, undoes it, and compares; `prepare` lays the state out before it.
fn killed_at_each_call(settings: &Settings, action: &str, rows: &[String], prepare: impl Fn(&Path)) {
    let folder = LaidOut::new();
    let before = settings.texts();
    for number in 0.. {
        let state = folder.path().join(number.to_string());
        prepare(&state);
        let mut victim = fix(action, &state, rows);
        victim.stdout(Stdio::null());
        let is_through = killed_at(victim, action, number);
        let output = fix("--undo", &state, &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{action}, call {number}: {output:?}");
        assert_eq!(settings.texts(), before, "{action}, call {number}");
        let left: Vec<_> = fs::read_dir(&state).into_iter().flatten().collect();
        assert!(left.is_empty(), "{action}, call {number}: {left:?}");
        if is_through {
            assert!(number > 10, "{action} made only {number} calls");
            eprintln!("{action}: killed at each of {number} calls");
            return;
        }
    }
}

#[test]
fn a_kill_at_any_system_call_of_apply_can_be_undone() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let rows = some_rows(&settings);
    killed_at_each_call(&settings, "--apply", &rows, |_| {});
}

#[test]
fn a_kill_of_an_apply_after_another_loses_none_of_the_first_values() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let rows = some_rows(&settings);
    let before = settings.texts();
    killed_at_each_call(&settings, "--apply", &rows, |state| {
        applied(state, &rows[..rows.len().div_ceil(2)]);
        // Somebody sets one back, so that there is an old value to be kept and something to be done again.
        let changed = settings.texts().into_iter().zip(&before).position(|(now, before)| now != *before);
        let changed = changed.expect("the first half changes something");
        fs::write(&settings.before[changed].0, setting(&before[changed])).unwrap();
    });
}

#[test]
fn a_kill_at_any_system_call_of_undo_leaves_it_to_be_done_again() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let rows = some_rows(&settings);
    killed_at_each_call(&settings, "--undo", &[], |state| applied(state, &rows));
}

/// Kills a process before the call with that number, of those from the first that matters; returns whether it ended
/// before that.
#[allow(
    clippy::zombie_processes,
    reason = "a process that ended was waited for as the traced one that it is"
)]
fn killed_at(mut command: Command, action: &str, number: usize) -> bool {
    let trace = || ptrace::traceme().map_err(Into::into);
    // SAFETY: as the module's documentation says.
    let command = unsafe { command.pre_exec(trace) };
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    assert!(matches!(waitpid(pid, None).unwrap(), WaitStatus::Stopped(_, Signal::SIGTRAP)));
    let ends_with_us = ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_TRACESYSGOOD | ends_with_us).unwrap();
    let mut seen = 0;
    let is_long = std::env::var_os("RING_LONG").is_some_and(|value| value == "1");
    let mut has_begun = is_long;
    loop {
        ptrace::syscall(pid, None).unwrap();
        match waitpid(pid, None).unwrap() {
            WaitStatus::PtraceSyscall(_) => {}
            WaitStatus::Exited(..) => return true,
            other => panic!("the child stopped with {other:?}"),
        }
        let info = ptrace::syscall_info(pid).unwrap();
        if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            continue;
        }
        // SAFETY: the stop is that of an entry, which is what the union holds.
        let call = i64::try_from(unsafe { info.u.entry }.nr).unwrap();
        has_begun |= is_first(action, call);
        if has_begun && (is_long || !READING.contains(&call)) {
            if seen == number {
                break;
            }
            seen += 1;
        }
    }
    // The kernel does not enter the call after that.
    child.kill().unwrap();
    child.wait().unwrap();
    false
}
