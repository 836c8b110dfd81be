//! `ring-tune watch`: once a second, how much the kernel has counted since.

mod counts;
mod devices;
mod host;
mod perf;
mod process;

use core::time::Duration;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use ring_tune::{CpuSet, Topology, Tree};
use serde_json::json;

use crate::say::{plain, say, warn};
use counts::Counts;
use perf::Perf;

/// What to watch.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each tick shows what has changed, a line each; what stands still is left out. Counters of processors are there only where \
the machine counts them. Ends when the process ends, or after --count ticks.")]
pub(crate) struct Args {
    /// A process and its threads: switches, migrations, faults, time in the run queue
    #[arg(long)]
    pid: Option<u32>,

    /// CPUs, as in 2,3: interrupts and softirqs by name, switches, steal, packets dropped; all that are online, unless a
    /// process is named
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,

    /// A network interface or RDMA device, all if none is named
    #[arg(long, value_name = "NAME")]
    device: Vec<String>,

    /// Seconds between two ticks
    #[arg(long, default_value_t = 1.0)]
    every: f64,

    /// End after so many ticks
    #[arg(long)]
    count: Option<u64>,

    /// A JSON object a tick, on a line of its own
    #[arg(long)]
    json: bool,
}

/// What is asked at each tick.
#[derive(Debug)]
struct Watched {
    tree: Tree,
    process: Option<u32>,
    cpus: CpuSet,
    devices: Vec<String>,
    perf: Perf,
}

const LONGEST_SECONDS: f64 = 86_400.0;

pub(crate) fn run(args: &Args) -> crate::Result {
    ensure!(
        args.every >= 0.01 && args.every <= LONGEST_SECONDS,
        "--every {}: name a time from 0.01 seconds to a day",
        args.every
    );
    let mut watched = Watched::new(args)?;
    let every = Duration::from_secs_f64(args.every);
    let mut before = watched.counts()?.context("the process has ended already")?;
    let mut last = Instant::now();
    let mut due = last + every;
    let mut ticks = 0;
    while args.count.is_none_or(|count| ticks < count) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // Ticks stay where they were planned, however long one took; those that were missed are left out.
        while due <= Instant::now() {
            due += every;
        }
        let Some(after) = watched.counts()? else {
            if !args.json {
                say(format_args!("the process has ended\n"))?;
            }
            break;
        };
        let now = Instant::now();
        tell(&after.since(&before), (now - last).as_secs_f64(), args.json)?;
        (before, last) = (after, now);
        ticks += 1;
    }
    Ok(ExitCode::SUCCESS)
}

impl Watched {
    fn new(args: &Args) -> anyhow::Result<Self> {
        let tree = Tree::live();
        let topology = Topology::read(&tree).context("cannot tell which CPUs this machine has")?;
        let cpus = match (&args.cpus, args.pid) {
            (Some(cpus), _) => cpus.clone(),
            (None, Some(_)) => CpuSet::new(),
            (None, None) => topology.online().clone(),
        };
        ensure!(cpus.is_subset(topology.online()), "--cpus {cpus}: only {} are online", topology.online());
        if let Some(pid) = args.pid {
            ensure!(
                tree.exists(&format!("proc/{pid}/stat")),
                "there is no process {pid}: name one that runs"
            );
        }
        for device in &args.device {
            ensure!(
                devices::exists(&tree, device),
                "there is no network interface or RDMA device {}",
                plain(device)
            );
        }
        let (perf, absent) = Perf::open(args.pid, &cpus);
        if !absent.is_empty() {
            warn(format_args!("not counted here: {}\n", absent.join(", ")));
        }
        Ok(Self { tree, process: args.pid, cpus, devices: args.device.clone(), perf })
    }

    /// None: the process has ended.
    fn counts(&mut self) -> anyhow::Result<Option<Counts>> {
        let mut counts = Counts::default();
        if let Some(pid) = self.process {
            if !process::add(&self.tree, pid, &mut counts) {
                return Ok(None);
            }
        }
        if !self.cpus.is_empty() {
            host::add(&self.tree, &self.cpus, &mut counts);
        }
        devices::add(&self.tree, &self.devices, &mut counts);
        self.perf.add(&mut counts);
        Ok(Some(counts))
    }
}

fn tell(deltas: &[(String, u64)], seconds: f64, json: bool) -> anyhow::Result<()> {
    if json {
        let counts: serde_json::Map<_, _> =
            deltas.iter().map(|(name, count)| (name.clone(), (*count).into())).collect();
        let line = json!({ "report": "ring-tune watch", "seconds": seconds, "counts": counts });
        say(format_args!("{line}\n"))?;
        return Ok(());
    }
    let width = deltas.iter().map(|(name, _)| plain(name).chars().count()).max().unwrap_or(0);
    let mut text = format!("in {seconds:.2} s{}\n", if deltas.is_empty() { ": nothing" } else { "" });
    for (name, count) in deltas {
        text += &format!("  {:width$}  {count:>14}  {:>14.1}/s\n", plain(name), *count as f64 / seconds);
    }
    say(format_args!("{text}"))?;
    Ok(())
}
