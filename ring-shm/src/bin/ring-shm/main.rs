//! The command `ring-shm`: what segments there are, what goes on in one, and away with those that nobody uses.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod clean;
mod list;
mod look;
mod say;
mod show;

use core::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How a command ends: success, or that it had to pass something over.
type Result = core::result::Result<ExitCode, Box<dyn Error>>;

/// Segments of shared memory with rings in them.
#[derive(Debug, Parser)]
#[command(name = "ring-shm", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ring-shm list                          what there is, and who is alive
  ring-shm show quotes --watch           a line each second, until interrupted
  ring-shm show quotes --json | jq .fill
  ring-shm clean --dry-run               what nobody uses
  ring-shm clean                         remove it";

#[derive(Debug, Subcommand)]
enum Command {
    /// Every segment of this machine: in /dev/shm and on hugetlbfs mounts, known by its first bytes
    List(list::Args),
    /// One segment: who is alive, how full its ring is, and how fast it goes
    Show(show::Args),
    /// Remove the segments that nobody uses, and what killed creators left; other files are not touched
    Clean(clean::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Clean(args) => clean::run(&args),
    };
    match result {
        Ok(status) => status,
        Err(error) => {
            if !say::nobody_reads(&*error) {
                say::warn(format_args!("error: {error}\n"));
            }
            ExitCode::FAILURE
        }
    }
}
