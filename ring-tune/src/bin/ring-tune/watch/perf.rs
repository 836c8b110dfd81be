//! Counters of perf_event_open(2), for a process or for CPUs.
//!
//! # Safety
//!
//! The kernel reads an attribute that lives on the stack and says its own size; the descriptor that comes back belongs to
//! this module alone.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

use ring_tune::CpuSet;

use super::counts::Counts;

/// linux/perf_event.h: type and number of an event.
const EVENTS: &[(&str, u32, u64)] =
    &[("context switches", 1, 3), ("migrations", 1, 4), ("cache references", 0, 2), ("cache misses", 0, 3)];

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

const INHERIT: u64 = 1 << 1;

/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING: a counter shares its register with others.
const TIMES: u64 = 3;

/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// The counters that could be opened.
#[derive(Debug)]
pub(super) struct Perf(Vec<(String, File)>);

impl Perf {
    /// Opens what there is, for the process and the threads it will start, or for each CPU. Names what there is not.
    pub(super) fn open(process: Option<u32>, cpus: &CpuSet) -> (Self, Vec<&'static str>) {
        let (mut opened, mut absent) = (vec![], vec![]);
        for &(name, kind, config) in EVENTS {
            let whose: Vec<(String, i32, i32)> = match process.and_then(|pid| i32::try_from(pid).ok()) {
                Some(pid) => vec![(format!("process {name}"), pid, -1)],
                None => cpus
                    .iter()
                    .filter_map(|cpu| Some((format!("CPU {cpu} {name}"), -1, i32::try_from(cpu).ok()?)))
                    .collect(),
            };
            let files: Vec<_> = whose
                .into_iter()
                .filter_map(|(name, pid, cpu)| Some((name, event(kind, config, pid, cpu)?)))
                .collect();
            if files.is_empty() {
                absent.push(name);
            }
            opened.extend(files);
        }
        (Self(opened), absent)
    }

    pub(super) fn add(&mut self, counts: &mut Counts) {
        for (name, file) in &mut self.0 {
            let mut bytes = [0; 24];
            if file.read_exact(&mut bytes).is_err() {
                continue;
            }
            let word = |place: usize| {
                bytes
                    .get(place * 8..)
                    .and_then(|rest| rest.first_chunk())
                    .map_or(0, |word| u64::from_ne_bytes(*word))
            };
            counts.add(name.as_str(), scaled(word(0), word(1), word(2)));
        }
    }
}

/// As if it had had the register all the time.
fn scaled(count: u64, enabled: u64, running: u64) -> u64 {
    if running == 0 || running >= enabled {
        return count;
    }
    let count = u128::from(count) * u128::from(enabled) / u128::from(running);
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn event(kind: u32, config: u64, pid: i32, cpu: i32) -> Option<File> {
    let attribute = Attribute {
        kind,
        size: u32::try_from(size_of::<Attribute>()).ok()?,
        config,
        read_format: TIMES,
        flags: if cpu < 0 { INHERIT } else { 0 },
        ..Attribute::default()
    };
    // SAFETY: the attribute outlives the call and has the size that it says.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attribute, pid, cpu, -1, CLOSE_ON_EXEC)
    };
    let descriptor = i32::try_from(descriptor).ok().filter(|&descriptor| descriptor >= 0)?;
    // SAFETY: the kernel has just opened it for this call alone.
    Some(unsafe { File::from_raw_fd(descriptor) })
}
