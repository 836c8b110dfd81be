//! `ring-tune check`: all rows, each with what is, what is wanted, what it costs and how to mend it.

pub(crate) mod asked;
mod earlier;
pub(crate) mod ethtool;
mod files;
mod finding;
mod host;
pub(crate) mod nic;
mod pci;
mod profile;
mod report;
mod row;
mod rows;
mod spin;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use ring_tune::CpuSet;

pub(crate) use earlier::{COUNTERS, Earlier, FOLDER};
pub(crate) use files::{DEVICE_FILES, FILES};
pub(crate) use finding::{Finding, Verdict};
pub(crate) use host::Host;
pub(crate) use profile::Profile;
pub(crate) use report::Report;
pub(crate) use row::Row;
pub(crate) use rows::RealTimeLimit;

use crate::say::{has_colours, say, say_json};

/// Which machine to look at, and for what.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Target {
    /// What the CPUs are for
    #[arg(long, value_enum, default_value_t)]
    pub(crate) profile: Profile,

    /// The CPUs that are to be quick, as in 2,3 or 4-7; the best pair if none are named
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<CpuSet>,

    /// A folder with the files of another machine, as `snapshot` saves them
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

/// What to check.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Verdicts: OK, WARN, FAIL, INFO (to know, not to mend), SKIP (this machine does not have it), UNKNOWN (it could not be \
read). Ends with 0 if nothing fails, with 2 if something does, and with 1 for an error.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,

    /// One JSON object
    #[arg(long)]
    json: bool,

    /// Show what is well and what does not apply, too
    #[arg(long, short)]
    all: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let host = Host::look(&args.target)?;
    let report = Report::of(&host);
    if args.json {
        say_json(&report)?;
    } else {
        say(format_args!("{}", text::of(&report, args.all, has_colours())))?;
    }
    Ok(if report.is_ready() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
