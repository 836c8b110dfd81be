//! The workspace's commands.
//!
//! `cargo xtask --help` lists them; each has a file of its own.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arm;
mod bench;
mod ci;
mod fuzz;
mod lint;
mod loom;
mod say;
mod source;
mod step;
mod test;
mod tools;
mod vm;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The commands of the ring workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Two processes, one ring: the latency beside the floor of this machine and beside what people use
    Bench(bench::Args),
    /// Every test there is, with one summary
    Test(test::Args),
    /// The loom models: the interleavings of small rings, with a bounded number of preemptions
    Loom(loom::Args),
    /// Any calls in any order: held to a queue at first, then, with a hostile peer, to typed errors inside the region
    Fuzz(fuzz::Args),
    /// Format, clippy, documentation, dependency directions, ordering and safety comments, no_std, machine code
    Lint,
    /// The tests that need only threads on 64-bit Arm under QEMU, and a bare-metal build
    Arm,
    /// A command in a virtual machine whose kernel has soft-RoCE: RDMA without a card for it
    Vm(vm::Args),
    /// What CI runs: lint, then test
    Ci,
}

fn main() -> ExitCode {
    let succeeded = |()| ExitCode::SUCCESS;
    let result = match Cli::parse().command {
        Command::Bench(args) => bench::run(args).map(succeeded),
        Command::Test(args) => test::run(&args),
        Command::Loom(args) => loom::run(&args).map(succeeded),
        Command::Fuzz(args) => fuzz::run(&args).map(succeeded),
        Command::Lint => lint::run().map(succeeded),
        Command::Arm => arm::run().map(succeeded),
        Command::Vm(args) => vm::run(args),
        Command::Ci => ci::run(),
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
