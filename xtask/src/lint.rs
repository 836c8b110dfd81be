//! `cargo xtask lint`: what a reviewer should not have to look for.

mod dependencies;
mod no_std;
mod orderings;
mod probe;
mod rules;

use std::process::Command;

use anyhow::{Result, bail};

use crate::loom::{CRATES, Modelled};
use crate::say::say;
use crate::source::{self, Source};
use crate::step::{Outcome, Runner};
use crate::workspace::Workspace;

/// Workspaces of their own, which cargo does not check together with this one.
const BESIDE: [&str; 2] = ["compare", "fuzz"];

/// Runs every check, also after one has failed.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::find()?;
    let mut report = Report { workspace: &workspace, failed: 0 };

    report.check("format", |runner| {
        with_component(&workspace, runner, "fmt", &["--all", "--check", "--", "--color=never"])
    })?;
    check_clippy(&mut report)?;
    report.check("documentation", |runner| Ok(runner.capture(&mut documentation(&workspace))?.into()))?;
    report
        .check("dependencies", |_| Ok(Outcome::of_objections(&dependencies::check(workspace.metadata()))))?;
    for name in workspace.libraries().into_iter().chain(BESIDE) {
        let sources = source::of_library(&workspace.root().join(name).join("src"))?;
        report.check(&format!("orderings in {name}"), |_| {
            Ok(Outcome::of_objections(&in_crate(name, orderings::check(&sources))))
        })?;
        if !BESIDE.contains(&name) {
            report.check(&format!("cfg(loom) in {name}"), |_| {
                Ok(Outcome::of_objections(&in_crate(name, rules::check_loom(name, &sources))))
            })?;
        }
    }
    report.check("safety sections", |_| {
        Ok(Outcome::of_objections(&rules::check_unsafe(&all_sources(&workspace)?)))
    })?;
    for name in workspace.libraries() {
        report.check(&format!("no_std {name}"), |runner| no_std::check(&workspace, runner, name))?;
    }
    report.check("machine code of push and pop", |_| probe::check())?;

    match report.failed {
        0 => Ok(()),
        1 => bail!("a check failed"),
        failed => bail!("{failed} checks failed"),
    }
}

struct Report<'a> {
    workspace: &'a Workspace,
    failed: u32,
}

impl Report<'_> {
    fn check(&mut self, name: &str, check: impl FnOnce(&Runner) -> Result<Outcome>) -> Result<()> {
        let runner = Runner::new(self.workspace, &format!("lint {name}"))?;
        let outcome = check(&runner)?;
        let seconds = runner.seconds();
        match outcome {
            Outcome::Passed => say(format_args!("{name:<40} ok       {seconds:5.1} s\n"))?,
            Outcome::Skipped(reason) => say(format_args!("{name:<40} skipped  {seconds:5.1} s  {reason}\n"))?,
            Outcome::Failed(output) => {
                self.failed += 1;
                say(format_args!("{name:<40} FAILED   {seconds:5.1} s\n\n{}\n\n", output.trim_end()))?;
            }
        }
        Ok(())
    }
}

/// Everything as users have it, each library without its features, and those with models as loom sees them.
fn check_clippy(report: &mut Report<'_>) -> Result<()> {
    let workspace = report.workspace;
    report.check("clippy, all features", |runner| {
        let arguments = ["--quiet", "--workspace", "--all-targets", "--all-features", "--", "-Dwarnings"];
        with_component(workspace, runner, "clippy", &arguments)
    })?;
    for name in workspace.libraries() {
        report.check(&format!("clippy {name}, no features"), |runner| {
            let arguments =
                ["--quiet", "--package", name, "--lib", "--no-default-features", "--", "-Dwarnings"];
            with_component(workspace, runner, "clippy", &arguments)
        })?;
    }
    for Modelled { name, feature } in &CRATES {
        report.check(&format!("clippy {name}, loom"), |runner| {
            let mut command = workspace.cargo_with_flags("--cfg loom", "loom");
            command.args(["clippy", "--quiet", "--package", name, "--lib", "--profile=test"]);
            command.args(["--features", feature, "--", "-Dwarnings"]);
            if is_there(workspace, "clippy") {
                Ok(runner.capture(&mut command)?.into())
            } else {
                Ok(missing("clippy"))
            }
        })?;
    }
    Ok(())
}

/// Runs `cargo fmt` or `cargo clippy`, which are parts of the toolchain that a minimal one lacks.
fn with_component(workspace: &Workspace, runner: &Runner, name: &str, arguments: &[&str]) -> Result<Outcome> {
    if !is_there(workspace, name) {
        return Ok(missing(name));
    }
    Ok(runner.capture(workspace.cargo().arg(name).args(arguments))?.into())
}

fn is_there(workspace: &Workspace, component: &str) -> bool {
    let works =
        || workspace.cargo().args([component, "--version"]).output().is_ok_and(|out| out.status.success());
    let add = || Command::new("rustup").args(["component", "add", component_package(component)]).output();
    works() || (add().is_ok() && works())
}

fn missing(component: &str) -> Outcome {
    Outcome::Skipped(format!("not installed: rustup component add {}", component_package(component)))
}

fn component_package(component: &str) -> &str {
    if component == "fmt" { "rustfmt" } else { component }
}

fn documentation(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.env("RUSTDOCFLAGS", "-Dwarnings").args([
        "doc",
        "--quiet",
        "--workspace",
        "--no-deps",
        "--all-features",
    ]);
    command
}

/// Every file of every member, and of the workspaces beside this one.
fn all_sources(workspace: &Workspace) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for name in workspace.libraries().into_iter().chain(["xtask"]).chain(BESIDE) {
        for folder in ["src", "tests", "examples", "benches", "fuzz_targets"] {
            let files = source::rust_files(&workspace.root().join(name).join(folder))?;
            for path in files {
                let text = std::fs::read_to_string(&path)?;
                sources.push(Source::parse(path.strip_prefix(workspace.root())?, &text)?);
            }
        }
    }
    Ok(sources)
}

/// Completes paths that are relative to a crate's `src`.
fn in_crate(name: &str, objections: Vec<String>) -> Vec<String> {
    objections.into_iter().map(|objection| format!("{name}/src/{objection}")).collect()
}
