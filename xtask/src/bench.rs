//! The benchmarks: two processes, one ring, the latency beside the floor of this machine and beside what people
//! use instead.
//!
//! The program starts itself again as the peer. Both processes are pinned and make the same arms over one shared
//! segment. Round after round a short slice of each arm runs, so that whatever the machine does meets all of
//! them, and ratios are formed within a round. No figure is ever a reason to fail.

mod arms;
mod compared;
mod count;
mod host;
mod json;
mod memory;
mod output;
mod plan;
mod plot;
mod probe;
mod process;
mod progress;
mod rounds;
mod row;
mod session;
mod suites;
mod table;
mod watch;

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ring_shm::Pages;
use ring_tune::Clock;

use host::{Disturbance, Host};
use memory::{Kind, Memory};
use output::Output;
use plan::{Plan, Scale};
use progress::Progress;
use row::Row;
use session::Session;
use suites::{Comparison, Suite};

use crate::say::say;

/// The time of all rounds with `--quick`, however busy the machine is.
const QUICK: Duration = Duration::from_secs(15);

/// Rounds from which on what follows a table is said.
const FEWEST: u32 = 3;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw what the suite notify shows, latency and CPU time over the gap, into this SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Fewer rounds and shorter slices: under 20 seconds where nothing else runs
    #[arg(long)]
    quick: bool,
    /// Only these suites
    #[arg(long, value_name = "A[,B]", value_delimiter = ',')]
    suite: Vec<Suite>,
    /// The CPUs of the two processes [default: two cores that share the last-level cache]
    #[arg(long, value_name = "A,B")]
    cpus: Option<String>,
    /// Rounds over all arms [default: 25, or 7 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Other crates as well, in threads: builds them first, which needs the network
    #[arg(long)]
    compare: bool,
    /// What this program tells itself when it starts the other process
    #[arg(long, hide = true)]
    peer: Option<String>,
    /// What this program tells itself when it starts a process that counts system calls
    #[arg(long, hide = true)]
    counter: Option<String>,
}

/// Runs the suites that the user asks for; or follows, as the other process.
pub(crate) fn run(args: Args) -> Result<()> {
    probe::keep();
    if let Some(orders) = &args.peer {
        return process::be_peer(orders);
    }
    if let Some(orders) = &args.counter {
        return count::count(orders);
    }
    let suites = if args.suite.is_empty() { Suite::ALL.to_vec() } else { args.suite };
    ensure!(
        args.plot.is_none() || suites.contains(&Suite::Notify),
        "--plot draws the suite notify, which --suite leaves out: add it there"
    );
    let scale = Scale {
        rounds: args.rounds.unwrap_or(if args.quick { 7 } else { 25 }),
        quick: args.quick,
        compare: args.compare,
        at_most: None,
    };
    let allowed = ring_tune::allowed_cpus()?;
    let cpus = match &args.cpus {
        Some(text) => host::parse(text, &allowed)?,
        None => host::choose(&allowed),
    };
    let json = args.json.as_deref().map(Output::create).transpose()?;
    let plot = args.plot.as_deref().map(Output::create).transpose()?;

    let program = args.compare.then(compared::build).transpose()?;

    ring_tune::pin_to(cpus[0])?;
    let clock = Clock::new();
    let mut host = Host::look(cpus, &clock, &obtainable_memory()?);
    say(format_args!("{host}\n"))?;
    if cpus[0] == cpus[1] {
        say(format_args!("One CPU only: what spins is left out, and there is no floor to compare with.\n"))?;
    }

    let mut all = Measured::default();
    let begun = Instant::now();
    for (suite, left) in suites.iter().zip((1..=suites.len()).rev()) {
        // What a suite leaves of its part of the time, the next ones share.
        let part = QUICK.saturating_sub(begun.elapsed()) / u32::try_from(left).unwrap_or(u32::MAX);
        let scale = Scale { at_most: args.quick.then_some(part), ..scale };
        let measured = run_suite(*suite, scale, &host, clock, program.as_deref())?;
        all.rows.extend(measured.rows);
        all.comparisons.extend(measured.comparisons);
        all.seen = all.seen.and(measured.seen);
    }
    conclude(&mut host, all.seen)?;
    if let Some(json) = json {
        json.write(&json::text(&host, &all.rows, &all.comparisons)?)?;
    }
    plot.map_or(Ok(()), |plot| plot.write(plot::svg(&all.rows)?.as_bytes()))
}

/// What suites have shown.
#[derive(Debug, Default)]
struct Measured {
    rows: Vec<Row>,
    comparisons: Vec<Comparison>,
    seen: Disturbance,
}

/// The memory that a suite's segment would be made of now.
fn obtainable_memory() -> Result<ring_shm::Report> {
    let mut memory = Memory::default();
    memory.create(Kind::Usual, Pages::Huge2MiBIfAvailable, &[1])?;
    let (_, report) = memory.reports().pop().context("a segment was made and has no report")?;
    Ok(report)
}

fn run_suite(
    suite: Suite,
    scale: Scale,
    host: &Host,
    clock: Clock,
    program: Option<&Path>,
) -> Result<Measured> {
    let mut plan = suite.plan(scale, host.cpus[0] != host.cpus[1]);
    say(format_args!("\n{}\n\n", suite.title()))?;
    if plan.cases.is_empty() {
        say_what_is_missing(&plan)?;
        return Ok(Measured::default());
    }

    let mut session = Session::start(&plan, host.cpus, clock, program)?;
    for (kind, report) in session.reports() {
        match kind {
            Kind::Huge if report.fall_back.from_2mib.is_some() => {
                plan.forget(Kind::Huge, "no free pages of 2 MiB")
            }
            Kind::Usual if report.page_bytes != host.page_bytes => {
                say(format_args!(
                    "  (pages of {} KiB for this suite: of larger ones too few are free)\n",
                    report.page_bytes / 1024
                ))?;
            }
            _ => {}
        }
    }
    let progress = Progress::new(plan.suite, scale.rounds);
    let processes = [std::process::id(), session.peer_id()];
    let before = Disturbance::read(processes, host.cpus);
    let mut outcome =
        rounds::run(&plan, |round| progress.round(round), |series, slice| session.run(&plan, series, slice))?;
    let seen = Disturbance::read(processes, host.cpus).since(before);
    drop(progress);
    let counted = session.count(&plan)?;
    if let Ok(counted) = &counted {
        outcome.count(counted);
    }

    let rows = row::rows(&plan, &outcome);
    say(format_args!("{}", table::of_rows(&rows)))?;
    say(format_args!(
        "  {} rounds; {} more dropped, in which the floor moved by over 30 %; {:.1} ns of the clock's own taken off\n",
        outcome.rounds,
        outcome.dropped,
        session.clock_cost_ns()
    ))?;
    if outcome.cut_short {
        say(format_args!(
            "  the machine is too busy for all {} rounds in the time of --quick\n",
            scale.rounds
        ))?;
    }
    if let Err(reason) = counted {
        say(format_args!("  system calls could not be counted on this host: {reason:#}\n"))?;
    }
    say_what_is_missing(&plan)?;
    if outcome.rounds < FEWEST {
        say(format_args!("  fewer than {FEWEST} rounds count, too few to say anything about ratios\n"))?;
        return Ok(Measured { rows, comparisons: vec![], seen });
    }
    let comparisons = suite.comparisons(&plan, &outcome);
    let reading = suite.reading(&plan, &outcome);
    let lines: String = comparisons.iter().map(Comparison::to_string).collect();
    if !(lines.is_empty() && reading.is_empty()) {
        say(format_args!("\n{lines}{reading}"))?;
    }
    Ok(Measured { rows, comparisons, seen })
}

fn say_what_is_missing(plan: &Plan) -> Result<()> {
    let mut reasons: Vec<&str> = plan.missing.iter().map(|(_, reason)| reason.as_str()).collect();
    reasons.dedup();
    for reason in reasons {
        let cases =
            plan.missing.iter().filter(|(_, because)| because == reason).map(|(case, _)| case.as_str());
        say(format_args!(
            "  not available on this host ({reason}): {}\n",
            cases.collect::<Vec<_>>().join(", ")
        ))?;
    }
    Ok(())
}

/// Says what disturbed the run, and lowers the grade if it must.
fn conclude(host: &mut Host, seen: Disturbance) -> Result<()> {
    let before = host.grade;
    host.judge(seen);
    say(format_args!(
        "\nWhile this ran, the two processes were pre-empted {} times, and the hypervisor took {} ticks of their CPUs.\n",
        seen.pre_emptions, seen.steal_ticks
    ))?;
    if host.grade != before {
        say(format_args!("{host}\n"))?;
    }
    Ok(())
}
