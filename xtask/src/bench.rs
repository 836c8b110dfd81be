//! The benchmarks: two processes, one ring, the latency beside the floor of this machine and beside what people
//! use instead.
//!
//! The program starts itself again as the peer. Both processes are pinned and make the same arms over one shared
//! segment. Round after round a short slice of each arm runs, so that whatever the machine does meets all of
//! them, and ratios are formed within a round. No figure is ever a reason to fail.

mod arms;
mod exchange;
mod memory;
mod plan;
mod process;
mod rounds;
mod row;
mod session;
mod stream;
mod suites;
mod table;
mod watch;

use std::path::PathBuf;

use anyhow::Result;
use plan::Scale;
use session::Session;
use suites::Suite;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fewer rounds and shorter slices: under 20 seconds
    #[arg(long)]
    quick: bool,
    /// Only these suites
    #[arg(long, value_name = "A[,B]", value_delimiter = ',')]
    suite: Vec<Suite>,
    /// The two CPUs to run on [default: two cores that share the last-level cache]
    #[arg(long, value_name = "A,B")]
    cpus: Option<String>,
    /// Rounds over all arms [default: 25, or 7 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// What this program tells itself when it starts the other process
    #[arg(long, hide = true)]
    peer: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<()> {
    if let Some(orders) = &args.peer {
        return process::be_peer(orders);
    }
    let scale = Scale { rounds: args.rounds.unwrap_or(if args.quick { 7 } else { 25 }), quick: args.quick };
    ring_tune::pin_to(0)?;
    let clock = ring_tune::Clock::new();
    let suites = if args.suite.is_empty() { Suite::ALL.to_vec() } else { args.suite };
    for suite in suites {
        let plan = suite.plan(scale, true);
        let mut session = Session::start(&plan, 1, clock)?;
        let outcome = rounds::run(&plan, |_| (), |series| session.run(&plan, series))?;
        println!("\n{}\n", suite.title());
        print!("{}", table::of_rows(&row::rows(&plan, &outcome)));
        println!("{} rounds, {} dropped; clock {}", outcome.rounds, outcome.dropped, session.clock_cost_ns());
        println!("\n{}", suite.reading(&plan, &outcome));
    }
    Ok(())
}
