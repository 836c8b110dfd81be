//! `cargo xtask loom`: the models alone.

pub(crate) mod mutants;

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::say::say;
use crate::workspace::Workspace;

/// A crate that has models.
pub(crate) struct Modelled {
    pub(crate) name: &'static str,
    /// What its models need. Not all features: tokio does not build for loom.
    pub(crate) feature: &'static str,
}

/// The crates that have models.
pub(crate) const CRATES: [Modelled; 3] = [
    Modelled { name: "ring-core", feature: "ring-core/alloc" },
    Modelled { name: "ring-notify", feature: "ring-notify/std" },
    Modelled { name: "ring-verbs", feature: "ring-verbs/std" },
];

/// Bounds the search where no other bound is asked for: what goes wrong needs fewer switches than this.
const PREEMPTIONS: u32 = 3;

/// What to explore, and how far.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only the models whose name contains this, or weaken only orderings whose place does
    filter: Option<String>,

    /// How often a thread may be interrupted in one execution; 3 unless LOOM_MAX_PREEMPTIONS says otherwise
    #[arg(long, value_name = "N")]
    preemptions: Option<u32>,

    /// Weaken each ordering in turn and see whether a model notices; none may survive
    #[arg(long)]
    mutants: bool,

    /// With --mutants: one ordering of each sort in each folder
    #[arg(long, requires = "mutants")]
    quick: bool,
}

/// Runs the models, with their output as it comes.
pub(crate) fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let mut command = models(&workspace, args.preemptions);
    if args.mutants {
        let report = |line: &str| say(format_args!("{line}\n"));
        let mutants::Tally { killed, survived, exempt } =
            mutants::run(&workspace, &command, args.filter.as_deref(), args.quick, report)?;
        say(format_args!("{killed} killed, {survived} survived, {exempt} exempt\n"))?;
        ensure!(survived == 0, "an ordering can be weakened and no model notices: enrich the models");
        return Ok(());
    }
    command.arg("--").args(&args.filter);
    if command.status().context("cannot start cargo")?.success() { Ok(()) } else { bail!("a model failed") }
}

/// The test runner over all models; arguments for it may follow after `--`.
pub(crate) fn models(workspace: &Workspace, preemptions: Option<u32>) -> Command {
    let mut command = workspace.cargo_with_flags("--cfg loom", "loom");
    command.args(["test", "--release", "--lib"]);
    for Modelled { name, feature } in &CRATES {
        command.args(["--package", name, "--features", feature]);
    }
    // The models take seconds, and the optimiser would take minutes.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "none");
    // A search that is cut off would pass for one that found nothing.
    command.env_remove("LOOM_MAX_DURATION").env_remove("LOOM_MAX_PERMUTATIONS");
    if preemptions.is_some() || std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", preemptions.unwrap_or(PREEMPTIONS).to_string());
    }
    command
}
