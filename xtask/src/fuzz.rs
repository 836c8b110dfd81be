//! `cargo xtask fuzz`: any calls in any order, held to a queue until a hostile peer writes its first word and to typed
//! errors from then on, for as long as one likes.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::say::say;
use crate::workspace::Workspace;

/// What to run, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Targets: spsc, bytes, mpmc, broadcast [default: all, one after the other]
    targets: Vec<String>,
    /// Seconds for each
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

/// Runs each target under AddressSanitizer until its time is up or it has found something.
pub(crate) fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let known = targets(&workspace)?;
    for target in &args.targets {
        ensure!(known.contains(target), "no target {target}: there are {}", known.join(", "));
    }
    let program = workspace.target("tools").join("bin/cargo-fuzz");
    if !program.exists() {
        let root = workspace.target("tools");
        let mut install = workspace.cargo();
        install.args(["install", "cargo-fuzz", "--locked", "--quiet", "--root"]).arg(root);
        ensure!(install.status().context("cannot start cargo")?.success(), "cannot install cargo-fuzz");
    }
    let mut failed = Vec::new();
    for target in if args.targets.is_empty() { &known } else { &args.targets } {
        let mut fuzz = Command::new(&program);
        // The sanitizer's switch is not a stable one.
        fuzz.current_dir(workspace.root()).env("RUSTC_BOOTSTRAP", "1");
        fuzz.args(["fuzz", "run", "--fuzz-dir", "fuzz", target.as_str(), "--"]);
        fuzz.arg(format!("-max_total_time={}", args.seconds));
        // A call that takes ten seconds never ends.
        fuzz.args(["-max_len=8192", "-timeout=10", "-print_final_stats=1"]);
        let passed = fuzz.status().context("cannot start cargo-fuzz")?.success();
        say(format_args!("fuzz {target}: {}\n", if passed { "nothing found" } else { "FAILED" }))?;
        if !passed {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("something was found by {}", failed.join(", ")) }
}

/// The names of the files in `fuzz/fuzz_targets`.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(workspace.root().join("fuzz/fuzz_targets")).context("no fuzz targets")? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}
