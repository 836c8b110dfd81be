//! The command `ring-tune`: measure the host, explain it, mend it.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod clock;
mod counters;
mod diff;
mod fix;
mod jitter;
#[cfg(test)]
#[path = "../../../tests/common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the tests from outside use it too, and more of it")]
mod laid_out;
mod line;
mod run;
mod say;
#[cfg(test)]
#[path = "../../../tests/common/skip.rs"]
mod skip;
mod snapshot;
mod topology;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How a command ends: success, or that the host is not as it should be.
type Result = anyhow::Result<ExitCode>;

/// Is this host ready to move messages at the speed of its hardware? If not: what it costs, and how to mend it.
#[derive(Debug, Parser)]
#[command(name = "ring-tune", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ring-tune check --profile spin --cpus 2,3   what keeps two spinning threads from being quick
  ring-tune fix --print                       how to mend it, as text
  ring-tune topology --heat-map map.svg       what a hand-over costs between each pair of CPUs
  ring-tune run -- ./server                   pinned and scheduled as the profile wants it
  ring-tune jitter --seconds 10               what interrupts a spinning thread, and who did it
  ring-tune diff before.json after.json       what got better, and what worse

Ends with 0 where all is well; with 2 where a row fails (check), something is left to mend (fix) or got worse (diff), or
--strict refuses (run); and with 1 for an error.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at all that makes a host slow or uneven, and say how to mend it
    Check(check::Args),
    /// Write how to mend it, or mend what can be mended at run time, and undo it
    Fix(fix::Args),
    /// Save the files that `check` reads, to be looked at elsewhere with --root
    Snapshot(snapshot::Args),
    /// Measure the hand-over of a cache line between CPUs, beside what they share
    Topology(topology::Args),
    /// Measure the clock: what a stamp costs, and whether two processes agree on it
    Clock(clock::Args),
    /// Run a command pinned, scheduled and with its memory as the profile wants it
    Run(run::Args),
    /// Spin, and record each time that something else ran instead, with its likely cause
    Jitter(jitter::Args),
    /// Once a second, what has happened: interrupts, switches, faults, drops, cache misses
    Watch(watch::Args),
    /// Compare two reports: what got better, worse, or neither beyond the noise
    Diff(diff::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // 2 is clap's own status for wrong usage, and means something else here.
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let result = match cli.command {
        Command::Check(args) => check::run(&args),
        Command::Fix(args) => fix::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Topology(args) => topology::run(&args),
        Command::Clock(args) => clock::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Jitter(args) => jitter::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Diff(args) => diff::run(&args),
    };
    match result {
        Ok(status) => status,
        Err(error) => {
            if !say::nobody_reads(&error) {
                say::warn(format_args!("error: {error:#}\n"));
            }
            ExitCode::FAILURE
        }
    }
}
