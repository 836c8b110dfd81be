//! The models of a crate, which judge its weakened orderings.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, ensure};

use super::Mutant;
use crate::loom::models::{Models, is_slow};
use crate::source::folder_of;

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

/// Runs the models of a mutant until one notices, those that take longest last.
pub(super) fn judge(mutant: &Mutant, models: &Models, cargo_test: &Command) -> Result<Fate> {
    for group in models_for(models, &mutant.path).iter().filter(|group| !group.is_empty()) {
        let mut command = models.command(cargo_test, group);
        command.env("RUST_BACKTRACE", "0").env("RING_MUTANT", &mutant.place);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the models")?;
        let fate = watch(&mut child);
        // A model that has noticed something ends the matter, and one that hangs would never end.
        let _ = child.kill();
        child.wait()?;
        let fate = fate?;
        if fate != Fate::Survived {
            return Ok(fate);
        }
    }
    Ok(Fate::Survived)
}

/// The models of the folder that a file belongs to, fast ones and slow ones; all for a file that has none of its own.
fn models_for<'a>(models: &'a Models, path: &Path) -> [Vec<&'a str>; 2] {
    let prefix = format!("{}::tests::", folder_of(path));
    let has_own = models.names.iter().any(|model| model.starts_with(&prefix));
    let judges =
        models.names.iter().filter(|model| !has_own || model.starts_with(&prefix)).map(String::as_str);
    let (slow, fast) = judges.partition(|model| is_slow(model));
    [fast, slow]
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
