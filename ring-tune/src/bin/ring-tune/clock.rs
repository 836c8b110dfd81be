//! `ring-tune clock`: what a stamp costs, and whether two processes agree on the time.

mod one_way;
mod peer;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use ring_tune::{Clock, CpuSet, Source, Topology, Tree, allowed_cpus};
use serde::Serialize;

use crate::say::{plain, say, say_json};
use crate::topology;
use one_way::OneWay;

/// What to measure.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Two processes, each on a CPU of its own, send each other stamps: a sample is what the receiver's clock shows less what \
the sender's showed. A negative one says that the two CPUs disagree, and that only half of a round trip can be told on \
this machine.")]
pub(crate) struct Args {
    /// Two CPUs, as in 2,3; the best pair if none are named
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,

    /// How many stamps travel, both ways together
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(2..=100_000_000_000))]
    samples: u64,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    report: &'static str,
    source: &'static str,
    hz: f64,
    /// What the kernel itself reads its time from; nothing where it does not tell.
    clocksource: Option<String>,
    resolution_ns: f64,
    stamp_cost_ns: f64,
    pair_cost_ns: f64,
    /// Nothing on a machine with one CPU.
    one_way: Option<[OneWay; 2]>,
    is_usable_one_way: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let tree = Tree::live();
    let (topology, _) = topology::of(&tree)?;
    let cpus = cpus(args.cpus.as_ref(), &topology)?;
    let clock = Clock::new();
    let clocksource = tree.text("sys/devices/system/clocksource/clocksource0/current_clocksource").ok();
    let one_way = match cpus {
        Some(cpus) => Some(one_way::measure(clock, cpus, args.samples / 2)?),
        None => None,
    };
    let report = Report::of(clock, clocksource, one_way);
    if args.json {
        say_json(&report)?;
    } else {
        say(format_args!("{}", text(&report, &topology)))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Report {
    fn of(clock: Clock, clocksource: Option<String>, one_way: Option<[OneWay; 2]>) -> Self {
        let agree = one_way.as_ref().is_some_and(|ways| ways.iter().all(|way| way.negative == 0));
        Self {
            report: "ring-tune clock",
            source: match clock.source() {
                Source::Tsc => "TSC",
                Source::Cntvct => "generic timer",
                _ => "CLOCK_MONOTONIC",
            },
            hz: clock.hz(),
            resolution_ns: resolution_ns(&clock),
            stamp_cost_ns: stamp_cost_ns(&clock),
            pair_cost_ns: clock.measure_cost_ns(),
            // The kernel watches the TSC, and takes another clock where it found it to be wrong.
            is_usable_one_way: agree
                && (clock.source() != Source::Tsc || clocksource.as_deref() == Some("tsc")),
            clocksource,
            one_way,
        }
    }
}

/// The two CPUs; none where there is one only.
fn cpus(named: Option<&CpuSet>, topology: &Topology) -> anyhow::Result<Option<[usize; 2]>> {
    let allowed = allowed_cpus()?;
    let Some(named) = named else { return Ok(topology.best_pair(&allowed, None)) };
    let cpus: Vec<usize> = named.iter().collect();
    let cpus: [usize; 2] =
        cpus.try_into().ok().with_context(|| format!("--cpus {named}: name two CPUs, as in --cpus 2,3"))?;
    ensure!(named.is_subset(&allowed), "--cpus {named}: this process may only use {allowed}");
    Ok(Some(cpus))
}

/// The smallest step that was seen; a coarse clock stands still for many stamps.
fn resolution_ns(clock: &Clock) -> f64 {
    let mut smallest = f64::INFINITY;
    let mut last = clock.start();
    let mut stamps = 0;
    while stamps < 100_000 || smallest == f64::INFINITY {
        let now = clock.start();
        let step_ns = clock.between_ns(last, now);
        if step_ns > 0.0 {
            smallest = smallest.min(step_ns);
        }
        last = now;
        stamps += 1;
    }
    smallest
}

/// The mean of a thousand stamps, in the quietest of a hundred blocks.
fn stamp_cost_ns(clock: &Clock) -> f64 {
    let block = || {
        let start = clock.start();
        for _ in 0..999 {
            core::hint::black_box(clock.start());
        }
        clock.between_ns(start, clock.stop()) / 1_000.0
    };
    (0..100).map(|_| block()).fold(f64::INFINITY, f64::min)
}

fn text(report: &Report, topology: &Topology) -> String {
    let mut text = format!(
        "{} at {:.3} MHz; the kernel's clock source is {}\n\
         a stamp costs {:.1} ns; stamps in a row are {:.1} ns apart at the least, and a start with its stop {:.1} ns as a rule\n",
        report.source,
        report.hz / 1e6,
        plain(report.clocksource.as_deref().unwrap_or("not told")),
        report.stamp_cost_ns,
        report.resolution_ns,
        report.pair_cost_ns,
    );
    let Some(ways) = &report.one_way else {
        return text + "one CPU only: there is nothing to compare the clock with\n";
    };
    let share = topology.share(ways[0].from, ways[0].to);
    text += &format!("two processes on CPUs {} and {}: {share}\n", ways[0].from, ways[0].to);
    for way in ways {
        text += &format!("  {way}\n");
    }
    let negative: u64 = ways.iter().map(|way| way.negative).sum();
    text += &match (report.is_usable_one_way, negative) {
        (true, _) => "no stamp came before it was sent: the clock can be used for one-way times\n".into(),
        (false, 0) => format!(
            "no stamp came before it was sent, but the kernel does not read its own time from the {}: do not rely on it for \
             one-way times, halve round trips\n",
            report.source
        ),
        (false, _) => format!(
            "{negative} stamps came before they were sent: the clock cannot be used for one-way times here, halve round \
             trips\n"
        ),
    };
    text
}
