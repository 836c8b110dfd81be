//! The programs that run the models, one a crate.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// What the names of those models have in them that take most of the time of all.
const SLOW: [&str; 8] = [
    "wakes::a_producer_wakes_two_",
    "tests::pair::",
    "wakes::a_producer_and_a_closer_",
    "wakes::sleepers_share_",
    "::kills::what_the_dead_did_",
    "::deaths::",
    "_is_seen_going_on",
    "::three_threads_share_",
];

/// Where that is in a list from the slowest on which a model stands; the fast ones share the end.
pub(super) fn place_from_slowest(model: &str) -> usize {
    SLOW.iter().position(|slow| model.contains(slow)).unwrap_or(SLOW.len())
}

/// Whether a model is one of those that take most of the time.
pub(super) fn is_slow(model: &str) -> bool {
    place_from_slowest(model) < SLOW.len()
}

/// All models of one crate.
#[derive(Debug)]
pub(super) struct Models {
    /// Of the crate.
    pub(super) name: String,
    /// What runs them.
    pub(super) program: PathBuf,
    pub(super) names: Vec<String>,
}

impl Models {
    /// Builds the models of every crate.
    pub(super) fn build(cargo_test: &Command) -> Result<Vec<Self>> {
        let mut build = Command::new(cargo_test.get_program());
        with_environment_of(&mut build, cargo_test);
        let output = build
            .args(cargo_test.get_args())
            .args(["--no-run", "--message-format=json-render-diagnostics"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo")?;
        ensure!(output.status.success(), "the models do not build");
        let programs = programs(&String::from_utf8_lossy(&output.stdout));
        programs.into_iter().map(|(name, program)| Self::new(name, program)).collect()
    }

    fn new(name: String, program: PathBuf) -> Result<Self> {
        let output = Command::new(&program).args(["--list", "--format=terse"]).output()?;
        ensure!(output.status.success(), "{} does not list its models", program.display());
        let names = String::from_utf8(output.stdout)?;
        let names = names.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
        Ok(Self { name, program, names })
    }

    /// Runs some of them, one after the other: as threads of one process they would wait for each other in the kernel,
    /// since loom maps and unmaps a stack for each thread of each execution.
    pub(super) fn command(&self, cargo_test: &Command, names: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        with_environment_of(&mut command, cargo_test);
        command.args(names).args(["--exact", "--test-threads=1"]).stdin(Stdio::null());
        command
    }
}

/// The name of each crate whose models were built, and the program that runs them, from what cargo says.
fn programs(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let program = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some((folder.file_name()?.to_str()?.to_owned(), program.into()))
    };
    messages.filter_map(program).collect()
}

fn with_environment_of(to: &mut Command, from: &Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
    if let Some(folder) = from.get_current_dir() {
        to.current_dir(folder);
    }
}
