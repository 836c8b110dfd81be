//! Counters of perf_event_open(2), for a process or for CPUs.
//!
//! # Safety
//!
//! Invariant A: the attribute lives on the stack until the call has returned, and says its own size. Invariant B: the
//! descriptor that comes back belongs to this module alone.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use ring_tune::CpuSet;
use rustix::process::{Resource, getrlimit, setrlimit};

use super::counts::{Counts, Whose};

/// An event of linux/perf_event.h.
#[derive(Debug)]
struct Event {
    name: &'static str,
    kind: u32,
    config: u64,
}

const SOFTWARE: u32 = 1;
const HARDWARE: u32 = 0;

/// Those of one list are counted over the same spans of time, since they are compared.
const EVENTS: &[&[Event]] = &[
    &[Event { name: "context_switches", kind: SOFTWARE, config: 3 }],
    &[Event { name: "migrations", kind: SOFTWARE, config: 4 }],
    &[
        Event { name: "cache_references", kind: HARDWARE, config: 2 },
        Event { name: "cache_misses", kind: HARDWARE, config: 3 },
    ],
];

/// `struct perf_event_attr` in its first version, 64 bytes, which every kernel takes.
#[repr(C)]
#[derive(Debug, Default)]
struct Attribute {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// Bits of the attribute: new threads, and processes, are counted too; of these, only threads (since Linux 5.13); what
/// the kernel does is not counted.
const INHERIT: u64 = 1 << 1;
const INHERIT_THREAD: u64 = 1 << 35;
const EXCLUDE_KERNEL: u64 = 1 << 5;

/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING: a counter may share its register with others.
const TIMES: u64 = 3;

/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// The counters that could be opened.
#[derive(Debug, Default)]
pub(super) struct Perf {
    counters: Vec<Counter>,
    /// What is not as wished, and of which counters.
    notes: BTreeMap<String, Vec<&'static str>>,
}

#[derive(Debug)]
struct Counter {
    whose: Whose,
    name: &'static str,
    parts: Vec<(File, Reading)>,
    /// As if it had had its register all the time.
    total: u64,
}

/// What the kernel says of a counter.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
}

/// More than are ever open at once at a tick.
const RESERVE: usize = 8;

/// Whom the kernel is to look at, on which CPU; -1 for any.
type Place = (i32, i32);

impl Perf {
    /// Opens what there is for the threads of a process, and those that they will start. A thread that is started
    /// while this works may be left out.
    pub(super) fn open_process(&mut self, whose: &Whose, threads: &[u32]) {
        allow_many_files();
        let places: Vec<Place> =
            threads.iter().filter_map(|&thread| Some((i32::try_from(thread).ok()?, -1))).collect();
        self.open(whose, &places);
    }

    /// Opens what there is for each CPU.
    pub(super) fn open_cpus(&mut self, cpus: &CpuSet) {
        allow_many_files();
        for cpu in cpus.iter() {
            if let Ok(number) = i32::try_from(cpu) {
                self.open(&Whose::Cpu(cpu), &[(-1, number)]);
            }
        }
    }

    fn open(&mut self, whose: &Whose, places: &[Place]) {
        // Held while the counters take what files there are, so that some are left to read /proc by.
        let _reserve: Vec<_> = (0..RESERVE).map_while(|_| File::open("/dev/null").ok()).collect();
        for events in EVENTS {
            let mut counters: Vec<Counter> = vec![];
            counters.extend(events.iter().map(|event| Counter::new(whose.clone(), event.name)));
            for &place in places {
                let mut leader = None;
                for (event, counter) in events.iter().zip(&mut counters) {
                    match self.open_one(event, place, leader) {
                        Ok(file) => {
                            leader = leader.or(Some(file.as_raw_fd()));
                            counter.parts.push((file, Reading::default()));
                        }
                        Err(error) => self.has_failed(event.name, &error),
                    }
                }
            }
            self.counters.extend(counters.into_iter().filter(|counter| !counter.parts.is_empty()));
        }
    }

    /// Hardware is asked for what programs do alone where the rest is not permitted.
    fn open_one(&mut self, event: &Event, place: Place, leader: Option<i32>) -> io::Result<File> {
        let result = open(event, place, leader, 0);
        let is_refused = result.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EACCES));
        if !is_refused || event.kind != HARDWARE {
            return result;
        }
        let file = open(event, place, leader, EXCLUDE_KERNEL)?;
        self.note("without the kernel's own: kernel.perf_event_paranoid is above 1".into(), event.name);
        Ok(file)
    }

    fn has_failed(&mut self, name: &'static str, error: &io::Error) {
        // A thread that has ended meanwhile is no failure.
        if error.raw_os_error() != Some(libc::ESRCH) {
            self.note(why(error), name);
        }
    }

    fn note(&mut self, note: String, name: &'static str) {
        let names = self.notes.entry(note).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// What could not be opened, or not for all, and why.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.iter().map(|(note, names)| format!("{}: {note}", names.join(", "))).collect()
    }

    pub(super) fn add(&mut self, counts: &mut Counts) {
        for counter in &mut self.counters {
            let count = counter.read();
            counts.of(counter.whose.clone()).add_kind("perf", counter.name, Some(count));
        }
    }
}

impl Counter {
    fn new(whose: Whose, name: &'static str) -> Self {
        Self { whose, name, parts: vec![], total: 0 }
    }

    fn read(&mut self) -> u64 {
        for (file, last) in &mut self.parts {
            let mut bytes = [0; 24];
            // Nothing is read where a group does not fit its registers.
            if file.read_exact(&mut bytes).is_err() {
                continue;
            }
            let now = Reading::of(bytes);
            self.total = self.total.saturating_add(now.since(last));
            *last = now;
        }
        self.total
    }
}

impl Reading {
    fn of(bytes: [u8; 24]) -> Self {
        let mut words = bytes.chunks_exact(8).map(|word| word.first_chunk().copied().map(u64::from_ne_bytes));
        let mut next = || words.next().flatten().unwrap_or_default();
        Self { count: next(), enabled_ns: next(), running_ns: next() }
    }

    /// What was counted since, scaled from the time with a register to the whole.
    fn since(&self, before: &Self) -> u64 {
        let count = self.count.saturating_sub(before.count);
        let enabled = self.enabled_ns.saturating_sub(before.enabled_ns);
        let running = self.running_ns.saturating_sub(before.running_ns);
        if running == 0 || running >= enabled {
            return count;
        }
        let count = u128::from(count) * u128::from(enabled) / u128::from(running);
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

fn why(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS) => {
            "this machine does not count it".into()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "not permitted: be root, or set kernel.perf_event_paranoid to 1, or to 0 for CPUs".into()
        }
        Some(libc::EMFILE | libc::ENFILE) => "not for all: too many files are open, see ulimit -n".into(),
        _ => error.to_string(),
    }
}

/// A counter of each thread or CPU is a file. There is nothing to be done where this fails: the kernel then says so of
/// the files.
fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

fn open(event: &Event, place: Place, leader: Option<i32>, flags: u64) -> io::Result<File> {
    if place.1 >= 0 {
        return open_with(event, place, leader, flags);
    }
    // Kernels refuse the bits that they do not know.
    match open_with(event, place, leader, flags | INHERIT | INHERIT_THREAD) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            open_with(event, place, leader, flags | INHERIT)
        }
        result => result,
    }
}

fn open_with(event: &Event, (pid, cpu): Place, leader: Option<i32>, flags: u64) -> io::Result<File> {
    let attribute = Attribute {
        kind: event.kind,
        size: SIZE,
        config: event.config,
        read_format: TIMES,
        flags,
        ..Attribute::default()
    };
    let attribute = &raw const attribute;
    let leader = leader.unwrap_or(-1);
    // SAFETY: invariant A.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attribute, pid, cpu, leader, CLOSE_ON_EXEC) };
    match i32::try_from(descriptor) {
        // SAFETY: invariant B.
        Ok(descriptor @ 0..) => Ok(unsafe { File::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// PERF_ATTR_SIZE_VER0.
const SIZE: u32 = 64;
const _: () = assert!(size_of::<Attribute>() == SIZE as usize);
