//! `cargo xtask vm`: a virtual machine whose kernel has soft-RoCE, RDMA without a card for it.
//!
//! Most kernels of containers and of rented machines have no RDMA, and nobody wants a test to load modules into the one
//! that runs. So the guest is Debian's kernel under QEMU, which emulates: slow, but the same everywhere.
//!
//! - [`machine`] makes it, once: QEMU and the kernel from Debian's packages, and what the guest starts from.
//! - [`boot`] has the bare kernel, and the order of its modules.
//! - [`guest`] runs a command in it.
//!
//! What runs inside is in `xtask/vm`: `init` lays out the guest's files, `start` brings the devices up.

mod boot;
mod guest;
mod machine;

use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};

use crate::say::say;
use crate::step::Runner;
use crate::workspace::Workspace;
use guest::Guest;
pub(crate) use machine::Machine;

/// What to run, and where.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The guest sees this machine's files, read-only, below a /tmp, a /run and a /dev of its own; it may write to the \
workspace, to the target folder and to what --rw names. The command is root, in the folder that it is called from, with \
PATH, HOME and the variables RING_* and RUST_*.\n\
\n\
Devices: rxe0 at 192.0.2.1 and 2001:db8::1; rxea at 198.51.100.1 and rxeb at 198.51.100.2, joined by the veth pair va \
and vb, where `tc qdisc add dev va root netem` loses and delays.\n\
\n\
The status is that of the command; 124 when its time was up; 125 when the guest ended before the command.")]
pub(crate) struct Args {
    /// Processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    cpus: u32,
    /// Memory in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,
    /// Seconds after which the guest is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// A further folder that the guest may write to
    #[arg(long, value_name = "FOLDER")]
    rw: Vec<PathBuf>,
    /// A further variable that the command gets, if it is set
    #[arg(long, value_name = "NAME")]
    env: Vec<OsString>,
    /// Where to write what the guest's kernel says
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// No RDMA device
    #[arg(long)]
    bare: bool,
    /// What to run [default: nothing, so that the machine is made if it is not there yet]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Makes the machine where there is none yet, and runs the command in it.
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let begin = Instant::now();
    let workspace = Workspace::find()?;
    let machine = Machine::get(&workspace).map_err(|error| anyhow!("not here, because {error:#}"))?;
    if args.command.is_empty() {
        say(format_args!("{}, after {:.1} s\n", machine.description()?, begin.elapsed().as_secs_f64()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut writable = vec![workspace.root().to_owned(), workspace.target("")];
    for folder in &args.rw {
        match folder.canonicalize() {
            Ok(folder) if folder.is_dir() => writable.push(folder),
            _ => bail!("--rw {}: no such folder", folder.display()),
        }
    }
    let guest = Guest {
        cpus: args.cpus,
        memory_mib: args.memory,
        timeout: Duration::from_secs(args.timeout),
        writable: guest::outermost(writable),
        variables: guest::variables(&args.env),
        console: args.console,
        bare: args.bare,
        folder: std::env::current_dir()?,
        command: args.command,
    };
    guest.run(&machine, &workspace.target("vm").join("jobs"))
}

/// What `cargo test` puts before a test program so that it runs in the guest.
pub(crate) fn cargo_runner(timeout: Duration) -> Result<Vec<String>> {
    let xtask = std::env::current_exe()?;
    let xtask = xtask.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", xtask.display()))?;
    Ok([xtask, "vm", "--timeout", &timeout.as_secs().to_string(), "--"].map(String::from).to_vec())
}

/// A runner for the steps that make the machine.
fn step(workspace: &Workspace) -> Result<Runner> {
    Runner::new(workspace, "vm")
}
