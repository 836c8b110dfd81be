//! `ring-tune watch`: once a second, how much the kernel has counted since.

mod counts;
mod devices;
mod host;
mod perf;
mod process;
#[cfg(test)]
mod tests;
mod text;

use core::time::Duration;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use ring_tune::{CpuSet, Topology, Tree};
use serde::Serialize;

use crate::say::{plain, say, warn};
use counts::{Counts, Group, Whose};
use perf::Perf;
use process::Process;
use text::Table;

/// What to watch.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each tick shows what has changed, a line each; what stands still is left out. Of a CPU the most frequent interrupts are \
shown, and the rest is summed; --json tells all. Counts are those since the tick before, rates are over the time that \
has really gone by. A thread that begins and ends between two ticks is counted for the process alone. What this machine \
does not count is told once, at the beginning, and a device that goes when it goes. Ends with the process, or after \
--count ticks; Ctrl-C ends it as it ends any command.")]
pub(crate) struct Args {
    /// A process and its threads: switches, migrations, faults, time on a CPU and waiting for one, cache misses
    #[arg(long)]
    pid: Option<u32>,

    /// CPUs, as in 2,3: interrupts and softirqs by name, switches, steal, packets dropped, cache misses; all that are
    /// online, unless a process or device is named
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,

    /// A network interface or RDMA device: drops, errors, pauses, congestion, retries; all if none is named
    #[arg(long, value_name = "NAME")]
    device: Vec<String>,

    /// Seconds between two ticks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, allow_negative_numbers = true)]
    every: f64,

    /// End after so many ticks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// A JSON object a tick, on a line of its own
    #[arg(long)]
    json: bool,
}

/// What is asked at each tick.
#[derive(Debug)]
struct Watched {
    tree: Tree,
    process: Option<Process>,
    cpus: CpuSet,
    devices: Vec<String>,
    perf: Perf,
}

/// What had been counted at a moment.
#[derive(Debug)]
struct Moment {
    at: Instant,
    counts: Counts,
}

const LONGEST_SECONDS: f64 = 86_400.0;

pub(crate) fn run(args: &Args) -> crate::Result {
    ensure!(
        args.every >= 0.01 && args.every <= LONGEST_SECONDS,
        "--every {}: name a time from 0.01 seconds to a day",
        args.every
    );
    let mut watched = Watched::new(args)?;
    for note in watched.notes() {
        warn(format_args!("note: {note}\n"));
    }
    let every = Duration::from_secs_f64(args.every);
    let mut table = Table::new();
    let mut before = watched.moment();
    let begin = before.at;
    let mut due = begin + every;
    let mut ticks = 0;
    while args.count.is_none_or(|count| ticks < count) {
        let has_ended = watched.wait(due);
        let after = watched.moment();
        let changed = after.counts.since(&before.counts);
        for device in after.counts.devices_gone(&before.counts) {
            warn(format_args!("note: {} has gone\n", plain(device)));
        }
        let seconds = (after.at - before.at).as_secs_f64();
        if args.json {
            let watched = changed.iter().map(Object::of).collect();
            let tick = Tick { report: "ring-tune watch", seconds, ended: has_ended, watched };
            // In one piece, since whoever ends the command may do so at any time.
            say(format_args!("{}", serde_json::to_string(&tick)? + "\n"))?;
        } else {
            say(format_args!("{}", table.tick((after.at - begin).as_secs_f64(), seconds, &changed)))?;
        }
        if has_ended {
            if !args.json {
                say(format_args!("the process has ended\n"))?;
            }
            break;
        }
        due = next(due, every, after.at);
        before = after;
        ticks += 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ticks stay where they were planned, however long one took; those that were missed are left out.
fn next(mut due: Instant, every: Duration, now: Instant) -> Instant {
    while due <= now {
        due += every;
    }
    due
}

impl Watched {
    fn new(args: &Args) -> anyhow::Result<Self> {
        let tree = Tree::live();
        let topology = Topology::read(&tree).context("cannot tell which CPUs this machine has")?;
        let cpus = match &args.cpus {
            Some(cpus) => cpus.clone(),
            None if args.pid.is_some() || !args.device.is_empty() => CpuSet::new(),
            None => topology.online().clone(),
        };
        ensure!(cpus.is_subset(topology.online()), "--cpus {cpus}: only {} are online", topology.online());
        for device in &args.device {
            ensure!(
                devices::exists(&tree, device),
                "there is no network interface or RDMA device {}: /sys/class/net and /sys/class/infiniband list them",
                plain(device)
            );
        }
        let process = args.pid.map(|pid| Process::find(&tree, pid)).transpose()?;
        let mut perf = Perf::default();
        if let Some(process) = &process {
            perf.open_process(&process.whose(), &process.threads(&tree));
        }
        perf.open_cpus(&cpus);
        Ok(Self { tree, process, cpus, devices: args.device.clone(), perf })
    }

    /// What this machine does not count.
    fn notes(&self) -> Vec<String> {
        let mut absent = vec![];
        if let Some(process) = &self.process {
            absent.extend(process.absent(&self.tree).iter().map(|name| format!("/proc/PID/{name}")));
        }
        if !self.cpus.is_empty() {
            absent.extend(host::absent(&self.tree).iter().map(|path| format!("/{path}")));
        }
        let mut notes = self.perf.notes();
        notes.extend(absent.iter().map(|path| format!("{path}: this kernel does not have it")));
        notes
    }

    /// Waits until then, or until the process ends; whether it has ended.
    fn wait(&self, until: Instant) -> bool {
        if let Some(process) = &self.process {
            return process.wait(&self.tree, until);
        }
        thread::sleep(until.saturating_duration_since(Instant::now()));
        false
    }

    fn moment(&mut self) -> Moment {
        let (at, mut counts) = (Instant::now(), Counts::default());
        if let Some(process) = &self.process {
            process.add(&self.tree, &mut counts);
        }
        if !self.cpus.is_empty() {
            host::add(&self.tree, &self.cpus, &mut counts);
        }
        self.perf.add(&mut counts);
        devices::add(&self.tree, &self.devices, &mut counts);
        Moment { at, counts }
    }
}

/// A tick for programs.
#[derive(Debug, Serialize)]
struct Tick<'a> {
    report: &'static str,
    seconds: f64,
    /// Whether the process has, so that this is the last one.
    ended: bool,
    watched: Vec<Object<'a>>,
}

#[derive(Debug, Serialize)]
struct Object<'a> {
    whose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    counts: BTreeMap<String, u64>,
}

impl<'a> Object<'a> {
    fn of(group: &'a Group) -> Self {
        let name = Some(group.name.as_str());
        let (whose, id, name) = match &group.whose {
            Whose::Process(id) => ("process", Some(u64::from(*id)), name),
            Whose::Thread { id, .. } => ("thread", Some(u64::from(*id)), name),
            Whose::Cpu(cpu) => ("cpu", u64::try_from(*cpu).ok(), None),
            Whose::Machine => ("machine", None, None),
            Whose::Device(name) => ("device", None, Some(name.as_str())),
        };
        let counts = group.counts.iter().map(|count| (count.full_name(), count.count)).collect();
        Self { whose, id, name, counts }
    }
}
