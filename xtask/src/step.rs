//! Steps that run one after the other, and the table at the end.

use core::time::Duration;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::say;
use crate::workspace::Workspace;

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to object to.
    Passed,
    /// What is wrong, in full.
    Failed(String),
    /// Why this could not run here.
    Skipped(String),
}

impl Outcome {
    /// Failed where there is anything to object to, one objection a line.
    pub(crate) fn of_objections(objections: &[String]) -> Self {
        if objections.is_empty() { Self::Passed } else { Self::Failed(objections.join("\n")) }
    }
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct Captured {
    /// Whether it returned 0.
    pub(crate) success: bool,
    /// Standard output and standard error, in order.
    pub(crate) output: String,
}

impl From<Captured> for Outcome {
    fn from(captured: Captured) -> Self {
        if captured.success { Self::Passed } else { Self::Failed(captured.output) }
    }
}

/// Runs commands for one named step, with a progress line where somebody watches.
#[derive(Debug)]
pub(crate) struct Runner {
    name: String,
    log: PathBuf,
    begin: Instant,
}

impl Runner {
    /// The output of its commands also stays in a file below the target folder.
    pub(crate) fn new(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target("xtask");
        fs::create_dir_all(&folder)?;
        let file = name.replace(|character: char| !character.is_alphanumeric(), "-");
        Ok(Self { name: name.into(), log: folder.join(format!("{file}.log")), begin: Instant::now() })
    }

    /// Runs a command to its end and keeps what it says.
    pub(crate) fn capture(&self, command: &mut Command) -> Result<Captured> {
        let log = File::create(&self.log).with_context(|| format!("cannot write {}", self.log.display()))?;
        let program = PathBuf::from(command.get_program());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            say::progress(format_args!("{} … {:.0} s", self.name, self.seconds()));
            thread::sleep(Duration::from_millis(50));
        };
        say::progress(format_args!(""));
        let mut output = String::from_utf8_lossy(&fs::read(&self.log)?).into_owned();
        if !status.success() {
            output.push_str(&format!("{} ended with {status}\n", program.display()));
        }
        Ok(Captured { success: status.success(), output })
    }

    /// Seconds since the step began.
    pub(crate) fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}
