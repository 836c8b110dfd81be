//! What ring-verbs adds to a send and its completion: instructions, counted by callgrind over a driver without a device.
//!
//! Two programs pass messages through the same compiled driver: one by ring-verbs, one in C by the header's inline
//! functions, which keeps track of nothing. Each runs twice; the difference of the two counts is free of what a start
//! takes. Counts do not depend on the machine's load, so they may be bounded.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::step::{Captured, Runner};
use crate::tools;
use crate::workspace::Workspace;

/// Instructions that a message may cost more.
const BOUND: f64 = 60.0;

/// Messages of the two runs.
const RUNS: [u64; 2] = [1_000, 101_000];

/// The programs, and what they are made of; the table is that of the scripted device in the tests of ring-verbs.
const FILES: [(&str, &str); 5] = [
    ("provider.h", include_str!("../../verbs-cost/provider.h")),
    ("provider.c", include_str!("../../verbs-cost/provider.c")),
    ("untracked.c", include_str!("../../verbs-cost/untracked.c")),
    ("src/main.rs", include_str!("../../verbs-cost/tracked.rs")),
    ("src/table.rs", include_str!("../../../ring-verbs/tests/scripted/table.rs")),
];

/// Instructions of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    untracked: f64,
    tracked: f64,
}

impl Cost {
    pub(super) fn is_bounded(self) -> bool {
        self.tracked - self.untracked <= BOUND
    }

    /// For the summary.
    pub(super) fn note(self) -> String {
        let Self { untracked, tracked } = self;
        let more = tracked - untracked;
        format!(
            "instructions a message: C {untracked:.1}, ring-verbs {tracked:.1}: {more:.1} more, at most {BOUND}"
        )
    }
}

/// What the step needs of this machine.
///
/// # Errors
///
/// What is not there, for the summary.
pub(super) fn require() -> Result<(), String> {
    tools::require("valgrind", "valgrind")?;
    tools::require("cc", "gcc")?;
    if !Path::new("/usr/include/infiniband/verbs.h").exists() {
        tools::install(&["libibverbs-dev"])?;
    }
    Ok(())
}

/// Builds both programs and counts.
pub(super) fn measure(workspace: &Workspace, runner: &Runner) -> Result<Cost> {
    let folder = workspace.target("verbs-cost");
    write_out(workspace, &folder)?;
    let compile = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.current_dir(&folder).args(["-O2", "-Wall", "-Wextra", "-Werror"]).args(arguments);
        succeeded(runner.capture(&mut command)?)
    };
    compile(&["-c", "provider.c", "-o", "provider.o"])?;
    compile(&["untracked.c", "provider.o", "-o", "untracked"])?;
    let mut build = workspace.cargo();
    build.args(["rustc", "--quiet", "--release", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    build.arg("--target-dir").arg(folder.join("build")).arg("--");
    build.arg(format!("-Clink-arg={}", folder.join("provider.o").display()));
    succeeded(runner.capture(&mut build)?)?;

    let a_message = |program: &Path| -> Result<f64> {
        let [few, many] = RUNS.map(|messages| instructions(runner, program, messages));
        let [messages_few, messages_many] = RUNS;
        Ok((many? - few?) as f64 / (messages_many - messages_few) as f64)
    };
    let untracked = a_message(&folder.join("untracked"))?;
    let tracked = a_message(&folder.join("build/release/verbs-cost"))?;
    Ok(Cost { untracked, tracked })
}

/// Makes a package of its own, with the workspace's lock file and the profile that users have.
fn write_out(workspace: &Workspace, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    let path = workspace.root().join("ring-verbs");
    let manifest = format!(
        "[package]\nname = \"verbs-cost\"\nedition = \"2024\"\n\n\
         [profile.release]\ncodegen-units = 1\nlto = \"thin\"\n\n\
         [workspace]\n\n[dependencies]\nring-verbs = {{ path = {path:?} }}\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(workspace.root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// What a run executes, from start to end.
fn instructions(runner: &Runner, program: &Path, messages: u64) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(program).arg(messages.to_string());
    let captured = runner.capture(&mut command)?;
    let count = collected(&captured.output);
    succeeded(captured)?;
    count.context("callgrind does not say what it has counted")
}

/// The count in callgrind's last lines.
fn collected(output: &str) -> Option<u64> {
    let (_, count) = output.lines().find_map(|line| line.split_once("Collected : "))?;
    count.trim().parse().ok()
}

fn succeeded(captured: Captured) -> Result<()> {
    ensure!(captured.success, "{}", captured.output.trim_end());
    Ok(())
}
