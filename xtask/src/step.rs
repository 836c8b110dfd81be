//! Steps that run one after the other, and the table at the end.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::say;
use crate::workspace::Workspace;

/// What says nothing for so long hangs. Builds may take longer than this, but not in silence.
const PATIENCE: Duration = Duration::from_secs(600);

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

/// Does the work of each job, as many at once as there are processors, in their order, and hands on what came of each as
/// it ends. No further one is begun after an error there.
pub(crate) fn at_once<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> R + Sync,
    mut ended: impl FnMut(&J, R) -> Result<()>,
) -> Result<()> {
    let queue = Mutex::new(jobs.iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (send, results) = mpsc::channel();
    let worker = &|send: mpsc::Sender<_>| {
        while let Some(job) = next() {
            if send.send((job, work(job))).is_err() {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism()?.get() {
            let send = send.clone();
            scope.spawn(move || worker(send));
        }
        drop(send);
        results.into_iter().try_for_each(|(job, result)| ended(job, result))
    })
}

/// Runs commands for one named step, with a progress line where somebody watches.
#[derive(Debug)]
pub(crate) struct Runner {
    name: String,
    log: PathBuf,
    begin: Instant,
    patience: Duration,
}

impl Runner {
    /// The output of its commands also stays in a file below the target folder.
    pub(crate) fn new(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target("xtask");
        fs::create_dir_all(&folder)?;
        let file = name.replace(|character: char| !character.is_alphanumeric(), "-");
        let log = folder.join(format!("{file}.log"));
        Ok(Self { name: name.into(), log, begin: Instant::now(), patience: PATIENCE })
    }

    /// For a step of which one test takes up to an hour.
    pub(crate) fn patient(self) -> Self {
        Self { patience: 6 * PATIENCE, ..self }
    }

    /// Runs a command until it ends, or says nothing for too long, and keeps what it says. Nothing that it starts
    /// outlives it.
    pub(crate) fn capture(&self, command: &mut Command) -> Result<Captured> {
        let log = File::create(&self.log).with_context(|| format!("cannot write {}", self.log.display()))?;
        let program = PathBuf::from(command.get_program());
        let group = Group::new()?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(group.id()?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let (mut said_bytes, mut said_at) = (0, Instant::now());
        while child.try_wait()?.is_none() && said_at.elapsed() < self.patience {
            say::progress(format_args!("{} … {:.0} s", self.name, self.seconds()));
            thread::sleep(Duration::from_millis(50));
            let bytes = log.metadata()?.len();
            if bytes != said_bytes {
                (said_bytes, said_at) = (bytes, Instant::now());
            }
        }
        say::progress(format_args!(""));
        let hangs = child.try_wait()?.is_none();
        drop(group);
        let status = child.wait()?;
        let mut output = String::from_utf8_lossy(&fs::read(&self.log)?).into_owned();
        if hangs {
            let seconds = self.patience.as_secs_f32();
            output.push_str(&format!("{}: nothing was said for {seconds} s, so it was ended\n", self.name));
        }
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

/// Processes that end with their owner.
#[derive(Debug)]
pub(crate) struct Group(Child);

impl Group {
    /// The group does not get what the keyboard sends, so that Ctrl-C ends its owner alone. Whatever ends that closes
    /// the input of the shell that leads the group, which then kills the group, and so itself.
    pub(crate) fn new() -> Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", "read -r line; kill -s KILL 0"]).stdin(Stdio::piped());
        Ok(Self(shell.process_group(0).spawn().context("cannot start sh")?))
    }

    /// For `CommandExt::process_group`.
    pub(crate) fn id(&self) -> Result<i32> {
        Ok(self.0.id().try_into()?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // This closes the input. There is nobody to tell when it fails.
        let _ = self.0.wait();
    }
}
