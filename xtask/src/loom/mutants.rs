//! `cargo xtask loom --mutants`: each ordering of ring-core is needed.
//!
//! One at a time, each Release, Acquire and AcqRel becomes Relaxed and each fence goes, and the models must notice.
//! They are built once, with a hook that weakens the place that the environment names. The models of a folder judge its
//! own orderings, and all together what has no models of its own.
//!
//! What no model can notice says so in its ORDERING comment, with the word "Unmodelled" and how it was shown instead;
//! it is left out here, and counted.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::say::progress;
use crate::source::{self, Access, Source, folder_of};
use crate::workspace::Workspace;

/// The crate whose orderings are weakened.
const CRATE: &str = "ring-core";

/// The word in an ORDERING comment that exempts it.
const EXEMPT: &str = "Unmodelled:";

/// What the names of those models have in them that take half of the time of all, and of the folder that has them.
const SLOW: &str = "::deaths::";
const SLOW_FOLDER: &str = "mpmc::";

/// A model that says nothing for so long has not noticed.
const BOUND: Duration = Duration::from_secs(180);

/// One ordering to weaken.
#[derive(Debug)]
struct Mutant {
    /// Relative to the crate's `src`.
    path: PathBuf,
    line: usize,
    ordering: String,
    is_fence: bool,
    /// What the hook in the models compares with.
    place: String,
}

/// How the models took it.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// By this one.
    Killed(String),
    Survived,
    OutOfTime,
}

/// How it went for all of them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) killed: u64,
    pub(crate) survived: u64,
    pub(crate) exempt: u64,
}

/// Weakens each ordering in the files whose path has `only` in it, or with `quick` one of each sort in each folder, and
/// reports on each in a line.
pub(crate) fn run(
    workspace: &Workspace,
    models: &Command,
    only: Option<&str>,
    quick: bool,
    mut report: impl FnMut(&str) -> Result<()>,
) -> Result<Tally> {
    let sources = source::of_library(&workspace.root().join(CRATE).join("src"))?;
    let (mut mutants, exempt) = find(&sources, quick);
    mutants.retain(|mutant| only.is_none_or(|only| mutant.to_string().contains(only)));
    ensure!(!mutants.is_empty(), "no ordering found to weaken");
    let program = build(models)?;
    let untouched = judge(workspace, models, &program, None, quick)?;
    ensure!(untouched == Fate::Survived, "a model fails as it is: run `cargo xtask loom`");

    let mut tally = Tally { exempt, ..Tally::default() };
    for (index, mutant) in mutants.iter().enumerate() {
        progress(format_args!("mutant {} of {}: {mutant}", index + 1, mutants.len()));
        let begin = Instant::now();
        let fate = judge(workspace, models, &program, Some(mutant), false)?;
        let seconds = begin.elapsed().as_secs_f64();
        progress(format_args!(""));
        match fate {
            Fate::Killed(model) => {
                tally.killed += 1;
                report(&format!("killed    {seconds:6.1} s  {mutant}  by {model}"))?;
            }
            Fate::Survived => {
                tally.survived += 1;
                report(&format!("SURVIVED  {seconds:6.1} s  {mutant}"))?;
            }
            Fate::OutOfTime => {
                tally.survived += 1;
                report(&format!("NO END    {seconds:6.1} s  {mutant}"))?;
            }
        }
    }
    Ok(tally)
}

impl core::fmt::Display for Mutant {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { path, line, ordering, is_fence, .. } = self;
        let change = if *is_fence { "no fence" } else { "Relaxed" };
        write!(formatter, "{CRATE}/src/{}:{line}: {ordering} -> {change}", path.display())
    }
}

/// The orderings to weaken, and how many are exempt.
fn find(sources: &[Source], quick: bool) -> (Vec<Mutant>, u64) {
    let (mut mutants, mut exempt) = (Vec::new(), 0);
    // What the shim is told is told by the rings, which are weakened themselves.
    let mut sorts = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.path.starts_with("sync")) {
        for (index, access) in source.facts.accesses.iter().enumerate() {
            let Some(mutant) = mutant(source, index, access) else { continue };
            if source.comments_at(access).iter().any(|comment| comment.text.contains(EXEMPT)) {
                exempt += 1;
            } else if !quick
                || (!mutant.is_fence && sorts.insert((folder_of(&source.path), mutant.ordering.clone())))
            {
                mutants.push(mutant);
            }
        }
    }
    (mutants, exempt)
}

fn mutant(source: &Source, index: usize, access: &Access) -> Option<Mutant> {
    let callee = access.callee.as_ref()?;
    let is_fence = callee.name == "fence";
    if access.ordering == "Relaxed" && !is_fence {
        return None;
    }
    // An exchange has two orderings, of which the second is for its failure.
    let before = &source.facts.accesses[..index];
    let argument = before.iter().filter(|other| other.callee.as_ref() == Some(callee)).count();
    let path = source.path.display();
    Some(Mutant {
        path: source.path.clone(),
        line: access.line,
        ordering: access.ordering.clone(),
        is_fence,
        place: format!("{CRATE}/src/{path}:{}:{}:{argument}", callee.line, callee.column),
    })
}

/// Builds the models and returns the program that runs them.
fn build(models: &Command) -> Result<PathBuf> {
    let mut build = Command::new(models.get_program());
    with_environment_of(&mut build, models);
    let output = build
        .args(models.get_args())
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the models do not build");
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let program =
        messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
            message["executable"].as_str().filter(|_| message["profile"]["test"] == true).map(PathBuf::from)
        });
    program.context("cargo does not say what it has built")
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

/// Runs the models until one notices, those that take longest last or, if it is to be `quick`, not at all.
fn judge(
    workspace: &Workspace,
    models: &Command,
    program: &Path,
    mutant: Option<&Mutant>,
    quick: bool,
) -> Result<Fate> {
    let mut command = Command::new(program);
    with_environment_of(&mut command, models);
    command.current_dir(workspace.root()).env("RUST_BACKTRACE", "0");
    let folder = mutant.and_then(|mutant| {
        command.env("RING_MUTANT", &mutant.place);
        filter(workspace, &mutant.path)
    });
    let mut slow = Command::new(program);
    with_environment_of(&mut slow, &command);
    let fate = outcome(command.args(&folder).args(["--skip", SLOW]))?;
    match folder {
        Some(folder) if folder != SLOW_FOLDER => Ok(fate),
        _ if quick || fate != Fate::Survived => Ok(fate),
        _ => outcome(slow.arg(SLOW)),
    }
}

fn outcome(command: &mut Command) -> Result<Fate> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the models")?;
    let fate = watch(&mut child);
    // A model that has noticed something ends the matter, and one that hangs would never end.
    let _ = child.kill();
    child.wait()?;
    fate
}

/// The models of the folder that a file belongs to; all for a file that has none of its own.
fn filter(workspace: &Workspace, path: &Path) -> Option<String> {
    let folder = folder_of(path);
    let models = workspace.root().join(CRATE).join("src").join(&folder).join("tests.rs");
    models.is_file().then(|| format!("{folder}::"))
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
