//! `ring-tune run`: a command pinned, scheduled and with its memory as the profile wants it.
//!
//! The settings are made in this process, which then becomes the command, as taskset, chrt and numactl do it: affinity,
//! policy and memory policy outlive an exec. So the command has this process's number, its terminal and its signals, and
//! its status is its own, with no parent in between that could get any of it wrong. The limit on the wake-up latency
//! holds as long as somebody has the device open: the command inherits the descriptor. One that closes all descriptors
//! at its start, as some daemons do, gives the limit up.

mod apply;
mod device;
mod plan;
mod report;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use ring_tune::{CpuSet, Topology, Tree};

use self::apply::{apply, reachable_cpus};
use self::plan::{Memory, Plan};
use self::report::Report;
use crate::check::Profile;
use crate::say::{plain, say, say_json, warn};

/// What a shell ends with where a command is not found, and where it is found and cannot be executed; POSIX, 2.8.2.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// What to run, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// What the CPUs are for
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,

    /// Run on these CPUs, as in 2,3 or 4-7; on the best pair if none are named
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,

    /// Prefer CPUs on the NUMA node of this device: an RDMA device, a network interface or a PCI address
    #[arg(long, value_name = "DEVICE", conflicts_with = "node")]
    near: Option<String>,

    /// Take memory from this NUMA node, and prefer its CPUs; the node of the CPUs if none is named
    #[arg(long, value_name = "NODE")]
    node: Option<usize>,

    /// From where memory comes; hybrid prefers the node, the other profiles bind to it
    #[arg(long, value_enum)]
    memory: Option<Memory>,

    /// Schedule by SCHED_FIFO with this priority, 1 to 99; left as it is if none is named
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,

    /// Keep all CPUs of the machine from idle states that take longer than this to leave, in µs
    #[arg(long, value_name = "US", default_value_t = 2)]
    latency_us: u32,

    /// Do not start the command if something cannot be had, and end with 2
    #[arg(long)]
    strict: bool,

    /// Print the plan, try it in this process, say what cannot be had, and start nothing
    #[arg(long)]
    dry_run: bool,

    /// One JSON object: with --dry-run to standard output, otherwise to standard error, since the output is the command's
    #[arg(long)]
    json: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
What cannot be had is said on standard error, a line each with what to do about it, and the command runs without.
This process becomes the command: signals and the exit status are the command's own. The status is 127 where the
command is not found, 126 where it cannot be executed, 2 where --strict refuses it, and 1 for an error before that.

SCHED_FIFO is for threads that sleep, or for isolated CPUs: one that spins starves what else must run on its CPU, and
the kernel stops it for 50 ms in each second. Locked memory does not outlive the start of a command: one that needs it
locks its own. The limit on the wake-up latency lasts as long as the command keeps the descriptor that it inherits.

Examples:
  ring-tune run -- ./server --port 7000            on the best pair of CPUs, with memory of their node
  ring-tune run --near mlx5_0 --profile rdma -- ./server
  ring-tune run --cpus 2,3 --fifo 10 --strict -- ./server
  ring-tune run --dry-run -- ./server              what would be done, and what cannot be had";

pub(crate) fn run(args: &Args) -> crate::Result {
    // Nothing is called like that, but options are mistyped.
    let first = args.command.first().map(|first| first.to_string_lossy()).unwrap_or_default();
    ensure!(
        !first.starts_with('-'),
        "{}: there is no such option; the command comes after --",
        plain(&first)
    );
    let tree = Tree::live();
    let topology = Topology::read(&tree).context("cannot tell which CPUs this machine has")?;
    let plan = Plan::of(args, &tree, &topology, &reachable_cpus(&topology)?)?;
    let missing = apply(&plan);
    let is_refused = args.strict && !(missing.is_empty() && plan.unknown_node.is_none());
    let starts = !(args.dry_run || is_refused);

    let report = Report::of(&plan, &missing, &args.command, starts);
    match (args.json, args.dry_run) {
        (true, true) => say_json(&report)?,
        (true, false) => warn(format_args!("{}\n", serde_json::to_string(&report)?)),
        (false, true) => say(format_args!("{}", report.text()))?,
        (false, false) => {
            missing.iter().for_each(|error| warn(format_args!("ring-tune: {error}\n")));
            plan.unknown_node.iter().for_each(|error| warn(format_args!("ring-tune: {error}\n")));
        }
    }
    if starts {
        return Ok(become_command(&args.command));
    }
    if is_refused {
        if !args.dry_run {
            warn(format_args!("ring-tune: not started, since --strict asks for all of it\n"));
        }
        return Ok(ExitCode::from(2));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns only where the command cannot be executed.
fn become_command(command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::FAILURE };
    let error = Command::new(program).args(arguments).exec();
    let name = plain(&program.to_string_lossy());
    if error.kind() == ErrorKind::NotFound {
        warn(format_args!(
            "ring-tune: {name}: no such command, or its interpreter is missing: look at PATH, or name it with its path\n"
        ));
        return ExitCode::from(NOT_FOUND);
    }
    warn(format_args!("ring-tune: {name}: cannot be executed: {error}\n"));
    ExitCode::from(NOT_EXECUTABLE)
}
