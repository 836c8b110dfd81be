//! The program of the comparison with other crates: a workspace of its own, in `compare/`, built when it is asked for.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use measure::threads::{Make, Run, Threads};
use measure::{Samples, Slice};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::workspace::Workspace;

/// The program, with its arms made.
#[derive(Debug)]
pub(crate) struct Compared {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Builds the program, with cargo's own progress, and returns where it is.
pub(crate) fn build() -> Result<PathBuf> {
    let workspace = Workspace::find()?;
    let folder = workspace.target("compare");
    let built = workspace
        .cargo()
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(workspace.root().join("compare/Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder)
        .stdout(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    ensure!(built.success(), "the comparison does not build; without --compare the bench needs none of it");
    Ok(folder.join("release/compare"))
}

impl Compared {
    /// Starts the program and has it make these arms.
    pub(crate) fn start(program: &Path, cpus: [usize; 2], arms: Vec<Threads>) -> Result<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut compared = Self { child, orders, answers };
        let _: String = compared.ask(&Make { cpus, arms })?;
        Ok(compared)
    }

    /// Runs a slice of one of its arms.
    pub(crate) fn run(&mut self, arm: usize, slice: Slice) -> Result<Samples> {
        self.ask(&Run { arm, slice })
    }

    fn ask<A: DeserializeOwned>(&mut self, order: &impl Serialize) -> Result<A> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        self.orders.write_all(line.as_bytes()).context("the program of the comparison is gone")?;
        line.clear();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line)
            .context("the program of the comparison has ended; it may have said why above")
    }
}

impl Drop for Compared {
    fn drop(&mut self) {
        // It may be in the middle of a slice that has no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
