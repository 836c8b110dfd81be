//! All threads of another process are pinned while it makes new ones.
#![cfg(feature = "std")]

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeSet;
use std::io::{Read, stdin};
use std::process::{Child, Command, Stdio};
use std::{env, fs, thread};

use ring_tune::{CpuSet, Errno, Error, allowed_cpus, pin_process};

/// The variable that tells the other process of a test what it is.
const IS_CHILD: &str = "RING_TUNE_CHILD";

/// A process that goes with the test.
struct Spawner(Child);

impl Spawner {
    /// Starts this executable again, and waits until threads come and go.
    fn start() -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "child", "--ignored", "--nocapture"]).env(IS_CHILD, "1");
        let mut spawner = Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
        // Those that run tests are two, those that make others three.
        while spawner.threads().len() < 6 {
            assert_eq!(spawner.0.try_wait().unwrap(), None, "it has ended");
            thread::yield_now();
        }
        spawner
    }

    fn number(&self) -> i32 {
        self.0.id().try_into().unwrap()
    }

    fn threads(&self) -> BTreeSet<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        tasks.map(|task| task.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The CPUs of each thread, as the kernel lists them; those of threads that end meanwhile left out.
    fn allowed(&self) -> Vec<String> {
        let status = |thread| fs::read_to_string(format!("/proc/{}/task/{thread}/status", self.0.id())).ok();
        let statuses = self.threads().into_iter().filter_map(status);
        statuses
            .filter_map(|status| {
                let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
                line.map(|list| list.trim().to_owned())
            })
            .collect()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Threads come and go in it until its input ends.
#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    // Who asks for all that is ignored would wait for ever.
    if env::var_os(IS_CHILD).is_none() {
        return;
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                // ORDERING: Relaxed: nothing else is read because of it.
                while !is_over.load(Ordering::Relaxed) {
                    let child = || thread::spawn(|| thread::spawn(thread::yield_now).join());
                    let children = [child(), child()];
                    let _ = children.map(thread::JoinHandle::join);
                }
            });
        }
        let _ = stdin().read_to_end(&mut vec![]);
        // ORDERING: Relaxed: nothing else is published with it.
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn threads_that_come_meanwhile_do_not_escape() {
    let allowed = allowed_cpus().unwrap();
    let ones = allowed.iter().map(|cpu| CpuSet::only(cpu).unwrap());
    let sets: Vec<CpuSet> = ones.take(2).chain([allowed.clone()]).collect();
    let spawner = Spawner::start();
    for round in 0..60 {
        let set = &sets[round % sets.len()];
        let count = pin_process(spawner.number(), set).unwrap();
        assert!(count >= 3, "{count} threads");
        for _ in 0..5 {
            let lists = spawner.allowed();
            assert!(!lists.is_empty());
            let escaped = lists.iter().find(|list| **list != set.to_string());
            assert_eq!(escaped, None, "round {round}, {set} of {allowed}");
        }
    }
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    // The first above the largest number that Linux gives, 2^22; the others mean more than one process to kill(2).
    for process in [i32::MAX, 0, -1, i32::MIN] {
        let source = Errno(nix::libc::ENOENT);
        assert_eq!(pin_process(process, &CpuSet::new()), Err(Error::ListThreads { process, source }));
    }
}

#[test]
fn a_process_that_waits_to_be_reaped_is_no_obstacle() {
    let mut ended = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
    let number: i32 = ended.id().try_into().unwrap();
    // proc_pid_stat(5): the state stands behind the name.
    let is_zombie = || {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('Z')
    };
    while !is_zombie() {
        thread::yield_now();
    }
    let allowed = allowed_cpus().unwrap();
    let pinned = pin_process(number, &CpuSet::only(allowed.iter().next().unwrap()).unwrap());
    assert!(pinned == Ok(1), "{pinned:?}");
    ended.wait().unwrap();
    let source = Errno(nix::libc::ENOENT);
    assert_eq!(pin_process(number, &allowed), Err(Error::ListThreads { process: number, source }));
}

#[test]
fn cpus_that_are_not_there_are_an_error() {
    let spawner = Spawner::start();
    let before = spawner.allowed();
    let absent = CpuSet::only(ring_tune::MAX_CPUS - 1).unwrap();
    let error = pin_process(spawner.number(), &absent).unwrap_err();
    assert!(matches!(error, Error::PinThread { source: Errno::INVAL, .. }), "{error}");
    assert_eq!(spawner.allowed().first(), before.first());
}
