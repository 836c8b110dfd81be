//! What the files said before they were changed, kept where a crash does not lose it.
//!
//! The folder holds one file, which is replaced as a whole: its new content and its new name reach the disk before
//! anything that it tells of is written. The folder is locked meanwhile.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::beside::belongs_to;
use super::kernel_file;

const FILE: &str = "changed.json";
const NEXT: &str = "changed.json.next";
const VERSION: u32 = 1;
const LONGEST_BYTES: u64 = 4 << 20;

/// What to do about a file that cannot be understood.
const AWAY: &str = "look who wrote it and move it away; a restart of the machine undoes what was changed";

/// All that was changed since this machine was started.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    version: u32,
    /// The kernel's own name for this run of it: a restart undoes what was written.
    boot: String,
    /// In the order in which they were first changed.
    pub(super) changed: Vec<Changed>,
}

/// A file that was changed, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changed {
    pub(super) row: String,
    /// Without a slash at the front, and without links.
    pub(super) path: String,
    /// What is to be written to undo it.
    pub(super) before: String,
    /// What it said after it was written; none from before the write until it was read back.
    pub(super) after: Option<String>,
    /// It is not written, but the kernel may change it with another one that is.
    #[serde(default)]
    pub(super) is_beside: bool,
}

impl State {
    /// Forgets what was kept because of others that are no more.
    pub(super) fn forget_lonely(&mut self) {
        let belongs = |changed: &Changed| self.changed.iter().any(|other| belongs_to(changed, other));
        let is_kept: Vec<bool> =
            self.changed.iter().map(|changed| !changed.is_beside || belongs(changed)).collect();
        let mut is_kept = is_kept.into_iter();
        self.changed.retain(|_| is_kept.next().unwrap_or(true));
    }
}

/// The folder that keeps the state, locked until it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Makes the folder where there is none.
    pub(super) fn make(path: &Path) -> anyhow::Result<Self> {
        match DirBuilder::new().mode(0o755).create(path) {
            Ok(()) => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                File::open(parent.unwrap_or(Path::new("."))).and_then(|parent| parent.sync_all())
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
        .with_context(|| {
            format!("cannot make {}, where old values are kept: name another --state", path.display())
        })?;
        Self::open(path)?.with_context(|| format!("{} has gone", path.display()))
    }

    /// Locks the folder; none where there is none.
    pub(super) fn open(path: &Path) -> anyhow::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => Err(error).with_context(|| {
                format!("cannot open the folder {}, or it is none: name another --state", path.display())
            })?,
        };
        belongs_to_root(&descriptor, path)?;
        match flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => anyhow::bail!("another `ring-tune fix` is at work: wait until it ends"),
            result => result.with_context(|| format!("cannot lock {}", path.display()))?,
        }
        Ok(Some(Self { descriptor, path: path.into() }))
    }

    /// What was changed since this machine was started, and whether there was something from before that.
    pub(super) fn load(&self) -> anyhow::Result<(State, bool)> {
        let boot = this_boot()?;
        let none =
            |is_restarted| (State { version: VERSION, boot: boot.clone(), changed: vec![] }, is_restarted);
        let Some(text) = self.read()? else { return Ok(none(false)) };
        let path = self.path.join(FILE);
        let state: State = serde_json::from_str(&text)
            .with_context(|| format!("{} is not what `fix --apply` writes: {AWAY}", path.display()))?;
        ensure!(
            state.version == VERSION,
            "{} is of another version of ring-tune: let that undo it",
            path.display()
        );
        for Changed { path: changed, .. } in &state.changed {
            let changed_plain = crate::say::plain(changed);
            ensure!(
                kernel_file::may_be(changed),
                "{} names {changed_plain}, no setting of the kernel: {AWAY}",
                path.display()
            );
        }
        Ok(if state.boot == boot { (state, false) } else { none(true) })
    }

    fn read(&self) -> anyhow::Result<Option<String>> {
        let path = self.path.join(FILE);
        let cannot = || format!("cannot read {}", path.display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.descriptor, FILE, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => Err(error).with_context(cannot)?,
        };
        belongs_to_root(&file, &path)?;
        let file = File::from(file);
        ensure!(file.metadata().with_context(cannot)?.is_file(), "{} is no regular file", path.display());
        let mut text = String::new();
        file.take(LONGEST_BYTES).read_to_string(&mut text).with_context(cannot)?;
        Ok(Some(text))
    }

    /// Returns once the state is on the disk. Where nothing is changed there is no file.
    pub(super) fn save(&self, state: &State) -> anyhow::Result<()> {
        let save = || -> anyhow::Result<()> {
            if state.changed.is_empty() {
                // The second is what a run that was killed left.
                for name in [FILE, NEXT] {
                    match unlinkat(&self.descriptor, name, AtFlags::empty()) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(error) => Err(error)?,
                    }
                }
            } else {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut next = File::from(openat(&self.descriptor, NEXT, flags, Mode::RUSR | Mode::WUSR)?);
                next.write_all(&serde_json::to_vec_pretty(state)?)?;
                next.sync_all()?;
                renameat(&self.descriptor, NEXT, &self.descriptor, FILE)?;
            }
            Ok(fsync(&self.descriptor)?)
        };
        save().with_context(|| format!("cannot keep the old values in {}", self.path.display()))
    }
}

/// Who may write there decides what root writes.
fn belongs_to_root(descriptor: &OwnedFd, path: &Path) -> anyhow::Result<()> {
    let metadata = File::from(descriptor.try_clone()?).metadata()?;
    ensure!(
        metadata.uid() == 0 && metadata.mode() & 0o022 == 0,
        "{} must belong to root and be writable by nobody else: look who made it, and remove it",
        path.display()
    );
    Ok(())
}

fn this_boot() -> anyhow::Result<String> {
    const BOOT: &str = "/proc/sys/kernel/random/boot_id";
    let boot = fs::read_to_string(BOOT).with_context(|| format!("cannot read {BOOT}"))?;
    Ok(boot.trim().into())
}
