//! `cargo xtask loom`: the models alone.

mod models;
pub(crate) mod mutants;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::say::{progress, say};
use crate::step::at_once;
use crate::workspace::Workspace;
use models::{Models, is_slow, place_from_slowest};

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

/// Runs the models, with a line on each as it ends.
pub(crate) fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let cargo_test = cargo_test(&workspace, args.preemptions);
    let line = |line: &str| say(format_args!("{line}\n"));
    if !args.mutants {
        let filter = args.filter.as_deref().unwrap_or_default();
        let Explored { passed, failed } = explore(&cargo_test, |model| model.contains(filter), line)?;
        say(format_args!("{passed} passed, {failed} failed\n"))?;
        ensure!(failed == 0, "a model failed");
        return Ok(());
    }
    let untouched = explore(&cargo_test, |model| !args.quick || !is_slow(model), |_| Ok(()))?;
    ensure!(untouched.failed == 0, "a model fails as it is: run `cargo xtask loom`");
    let mutants::Tally { killed, survived, exempt } =
        mutants::run(&workspace, &cargo_test, args.filter.as_deref(), args.quick, line)?;
    say(format_args!("{killed} killed, {survived} survived, {exempt} exempt\n"))?;
    ensure!(survived == 0, "an ordering can be weakened and no model notices: enrich the models");
    Ok(())
}

/// Numbers of models.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// Runs the models of that kind, each in a process of its own, those that take longest first; reports on each in a
/// line, and on one that fails with all that it says.
pub(crate) fn explore(
    cargo_test: &Command,
    is_wanted: impl Fn(&str) -> bool,
    mut report: impl FnMut(&str) -> Result<()>,
) -> Result<Explored> {
    let programs = Models::build(cargo_test)?;
    let all = programs.iter().flat_map(|models| models.names.iter().map(move |name| (models, name.as_str())));
    let mut jobs: Vec<_> = all.filter(|(_, name)| is_wanted(name)).collect();
    jobs.sort_by_key(|(_, name)| place_from_slowest(name));
    let work = |(models, name): &(&Models, &str)| {
        let begin = Instant::now();
        // A panic while another one unwinds ends the process, and what the runner has captured until then is lost.
        let output = models.command(cargo_test, &[name]).arg("--nocapture").output();
        output.map(|output| (output, begin.elapsed().as_secs_f64()))
    };

    let mut explored = Explored::default();
    at_once(&jobs, work, |(models, name), ended| {
        let (output, seconds) =
            ended.with_context(|| format!("cannot start {}", models.program.display()))?;
        let [said, complained] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        progress(format_args!(""));
        if output.status.success() && said.contains("1 passed;") {
            explored.passed += 1;
            report(&format!("ok     {seconds:6.1} s  {}: {name}", models.name))?;
        } else {
            explored.failed += 1;
            let end = output.status;
            report(&format!("FAILED {seconds:6.1} s  {}: {name}\n{said}\n{complained}\n{end}", models.name))?;
        }
        progress(format_args!("{} of {} models", explored.passed + explored.failed, jobs.len()));
        Ok(())
    })?;
    progress(format_args!(""));
    Ok(explored)
}

/// What builds all models.
pub(crate) fn cargo_test(workspace: &Workspace, preemptions: Option<u32>) -> Command {
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
