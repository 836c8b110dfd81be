//! The models of a crate, which judge its weakened orderings.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Mutant;
use crate::source::folder_of;

/// What the names of those models have in them that take most of the time of all.
const SLOW: [&str; 4] =
    ["::deaths::", "wakes::a_producer_and_a_closer_", "wakes::a_producer_wakes_two_", "tests::pair::"];

/// A model that says nothing for so long has not noticed.
const BOUND: Duration = Duration::from_secs(180);

/// How the models took it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// By this one.
    Killed(String),
    Survived,
    OutOfTime,
}

/// All models of one crate.
pub(super) struct Judge {
    /// Of the crate.
    pub(super) name: String,
    /// The program that runs them.
    program: PathBuf,
    models: Vec<String>,
}

impl Judge {
    /// Builds the models of every crate.
    pub(super) fn all(models: &Command) -> Result<Vec<Self>> {
        let mut build = Command::new(models.get_program());
        with_environment_of(&mut build, models);
        let output = build
            .args(models.get_args())
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
        let models = String::from_utf8(output.stdout)?;
        let models =
            models.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
        Ok(Self { name, program, models })
    }

    /// Runs all models as they are, or with `quick` all but those that take longest.
    pub(super) fn untouched(&self, models: &Command, quick: bool) -> Result<Fate> {
        let [fast, slow] = self.models_for(None);
        let groups = if quick { vec![fast] } else { vec![fast, slow] };
        self.run(&groups, models, None)
    }

    /// Runs the models of a mutant until one notices, those that take longest last.
    pub(super) fn judge(&self, mutant: &Mutant, models: &Command) -> Result<Fate> {
        self.run(&self.models_for(Some(&mutant.path)), models, Some(mutant))
    }

    /// Runs one group of models after the other.
    fn run(&self, groups: &[Vec<&str>], models: &Command, mutant: Option<&Mutant>) -> Result<Fate> {
        for group in groups.iter().filter(|group| !group.is_empty()) {
            let fate = self.outcome(group, models, mutant)?;
            if fate != Fate::Survived {
                return Ok(fate);
            }
        }
        Ok(Fate::Survived)
    }

    /// The models of the folder that a file belongs to, fast ones and slow ones; all for a file that has none of its
    /// own.
    fn models_for(&self, path: Option<&Path>) -> [Vec<&str>; 2] {
        let prefix = path.map(|path| format!("{}::tests::", folder_of(path)));
        let is_own = |model: &String| prefix.as_ref().is_some_and(|prefix| model.starts_with(prefix));
        let has_own = self.models.iter().any(is_own);
        let models = self.models.iter().filter(|model| !has_own || is_own(model)).map(String::as_str);
        let (slow, fast) = models.partition(|model| SLOW.iter().any(|slow| model.contains(slow)));
        [fast, slow]
    }

    fn outcome(&self, names: &[&str], models: &Command, mutant: Option<&Mutant>) -> Result<Fate> {
        let mut command = Command::new(&self.program);
        with_environment_of(&mut command, models);
        command.args(names).arg("--exact").env("RUST_BACKTRACE", "0");
        if let Some(mutant) = mutant {
            command.env("RING_MUTANT", &mutant.place);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start the models")?;
        let fate = watch(&mut child);
        // A model that has noticed something ends the matter, and one that hangs would never end.
        let _ = child.kill();
        child.wait()?;
        fate
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

/// Reads what the models say until one fails, all have passed, or nothing more comes.
fn watch(child: &mut Child) -> Result<Fate> {
    let output = BufReader::new(child.stdout.take().context("no output")?);
    let (send, lines) = mpsc::channel();
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let mut passed = 0;
    loop {
        let line = match lines.recv_timeout(BOUND) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => return Ok(Fate::OutOfTime),
            // It has ended in the middle, by a signal: something was noticed.
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(Fate::Killed("an abort".into())),
        };
        match line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            Some((model, "FAILED")) => return Ok(Fate::Killed(model.into())),
            Some((_, "ok")) => passed += 1,
            _ => {}
        }
        if line.starts_with("test result: ok") {
            ensure!(passed > 0, "no model ran");
            return Ok(Fate::Survived);
        }
    }
}
