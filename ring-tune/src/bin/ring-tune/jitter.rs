//! `ring-tune jitter`: spin, and record each time that something else ran instead, with its likely cause.

mod advice;
mod gaps;
mod measure;
mod report;
mod signals;
mod spin;
mod tasks;
#[cfg(test)]
mod tests;
mod text;
mod usage;
mod window;

use core::time::Duration;
use std::process::ExitCode;
use std::thread;

use anyhow::ensure;
use ring_tune::{CpuSet, Topology, Tree, allowed_cpus, pin_to};

use crate::say::{say, say_json};
use measure::Order;

/// A week: whatever is longer was not meant.
const LONGEST_SECONDS: f64 = 7.0 * 86_400.0;

/// What to measure.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A thread on each CPU does nothing but read the clock. Two readings further apart than the threshold are a gap: \
something else had the CPU.

After each gap, and after what is almost one, the thread asks the kernel what it counted for the thread, so these \
causes are of that very gap:
  context switch   another task ran (switches of this thread)
  page fault       the kernel mapped memory for the thread
  other            an interrupt, the hypervisor or the firmware; the thread itself cannot tell
Interrupts, softirqs, steal, pressure and the tasks that ran on the CPU are counted over the whole time. They stand \
beside the gaps as likely causes. A task that ended meanwhile, or that was last on another CPU, is not among them.

The thread is scheduled like any other. `ring-tune run --profile spin -- ring-tune jitter` measures what a command \
under that profile gets. Ctrl-C ends early, with the report of the time until then; where a thread does not get its \
CPU to end, another one ends it without.")]
pub(crate) struct Args {
    /// The CPUs to spin on, as in 2,3 or 4-7; if none are named, the isolated ones, or else all but the first
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,

    /// For how long
    #[arg(long, value_name = "N", default_value_t = 5.0, allow_negative_numbers = true)]
    seconds: f64,

    /// Shorter gaps are not recorded; if not named, 10 steps of the loop, and 1,000 at least
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(u32).range(1..))]
    threshold_ns: Option<u32>,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    ensure!(
        args.seconds > 0.0 && args.seconds <= LONGEST_SECONDS,
        "--seconds {}: name a time above 0 and of a week at most",
        args.seconds
    );
    let order = Order {
        cpus: chosen(args.cpus.as_ref())?,
        time: Duration::from_secs_f64(args.seconds),
        threshold_ns: args.threshold_ns.map(f64::from),
    };
    // The reader's own wake-ups are none of the gaps, where there is another CPU for it.
    if let Some(elsewhere) = allowed_cpus()?.difference(&order.cpus).iter().next() {
        pin_to(elsewhere)?;
    }
    let report = measure::measure(&order)?;
    if args.json {
        say_json(&report)?;
    } else {
        say(format_args!("{}", text::of(&report)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The CPUs that are named; else the isolated ones that this process may use, else all that it may use but one, which
/// is left to everybody else.
fn chosen(named: Option<&CpuSet>) -> anyhow::Result<CpuSet> {
    if let Some(cpus) = named {
        ensure!(!cpus.is_empty(), "--cpus names no CPU: name some, as in --cpus 2,3");
        return Ok(cpus.clone());
    }
    // What is isolated is no reason to fail where it cannot be told.
    let isolated = Topology::read(&Tree::live()).map(|topology| topology.isolated().clone());
    let isolated = usable(&isolated.unwrap_or_default())?;
    if !isolated.is_empty() {
        return Ok(isolated);
    }
    let mut cpus = allowed_cpus()?;
    let first = cpus.iter().next();
    if let Some(first) = first.filter(|_| cpus.len() > 1) {
        cpus.remove(first);
    }
    Ok(cpus)
}

/// Those of the CPUs that a thread can be pinned to: isolated ones are kept out of a shell's affinity, but not, in all
/// cases, out of its reach.
fn usable(cpus: &CpuSet) -> anyhow::Result<CpuSet> {
    let tried = thread::scope(|scope| {
        let pins = || cpus.iter().filter(|&cpu| pin_to(cpu).is_ok()).collect();
        Ok::<_, std::io::Error>(thread::Builder::new().spawn_scoped(scope, pins)?.join())
    })?;
    Ok(tried.unwrap_or_default())
}
