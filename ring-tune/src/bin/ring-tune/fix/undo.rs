//! `ring-tune fix --undo`.

use anyhow::Context;

use super::kernel_file::Failure;
use super::plan::are_known;
use super::state::{Changed, Folder};
use super::{Args, Done, Outcome, kernel_file, setting};
use crate::say::warn;

/// Writes the old values back, the youngest change first. What cannot be undone stays noted.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let nothing = "nothing was changed";
    if !rustix::process::geteuid().is_root() {
        anyhow::bail!(
            "nothing was written: run it as root, which alone may write the files and read {}",
            args.state.display()
        );
    }
    let Some(folder) = Folder::open(&args.state)? else {
        are_known(&args.row, |_| false)?;
        warn(format_args!("{nothing}: there is no {}\n", args.state.display()));
        return Ok(Outcome { done: vec![], is_left: false, noted: Ok(()) });
    };
    let (mut state, is_restarted) = folder.load()?;
    // Another version may have rows that this one has not.
    are_known(&args.row, |id| state.changed.iter().any(|changed| changed.row == id))?;
    if is_restarted {
        warn(format_args!("{nothing} since the machine was started, which undid what was changed before\n"));
    }
    let is_asked = |changed: &Changed| args.row.is_empty() || args.row.contains(&changed.row);
    let asked = state.changed.iter().rev().filter(|changed| is_asked(changed));
    let done = restored(asked, args.force);
    state.changed.retain(|changed| !done.iter().any(|done| done.is_done && done.path == changed.path));
    let noted = folder
        .save(&state)
        .context("the old values were written back all the same: once there is room, --undo notes that too");
    Ok(Outcome { done, is_left: !state.changed.is_empty(), noted })
}

/// A file that is to be restored.
struct Undo<'a> {
    changed: &'a Changed,
    /// What it said first; none where it is not to be written.
    found: Option<String>,
    result: Result<String, String>,
}

/// One file may change another, or be refused until another is back, as a minimum above the maximum: each is tried
/// again as long as one more comes back. Whether somebody else has changed one is told before the first is written.
fn restored<'a>(asked: impl Iterator<Item = &'a Changed>, is_forced: bool) -> Vec<Done> {
    let mut undos: Vec<Undo<'_>> = asked.map(|changed| Undo::look(changed, is_forced)).collect();
    for _ in 0..=undos.len() {
        let came_back = undos.iter_mut().map(Undo::write_back).filter(|came_back| *came_back).count();
        if came_back == 0 {
            break;
        }
    }
    undos.into_iter().map(Undo::done).collect()
}

impl<'a> Undo<'a> {
    /// Without a value after the write, the process ended around it: who else may have written there is not known.
    fn look(changed: &'a Changed, is_forced: bool) -> Self {
        let before = &changed.before;
        let settled = |result| Self { changed, found: None, result };
        let now = match read(changed) {
            Ok(now) => now,
            Err(Failure::Vanished) if is_forced => return settled(Ok("is gone, and forgotten".into())),
            Err(Failure::Vanished) => return settled(Err("is gone: --force forgets it".into())),
            Err(failure) => return settled(Err(failure.to_string())),
        };
        let is_back = setting::same(&now, before);
        let after = changed.after.as_ref().filter(|after| !is_back && !setting::same(after, &now));
        match after {
            Some(after) if !is_forced => settled(Err(format!(
                "says {now} and not {after}, so somebody else changed it: --force writes {before}"
            ))),
            _ => Self { changed, found: Some(now), result: Ok(format!("says {before} already")) },
        }
    }

    /// Whether it was written, and says now what it said before.
    fn write_back(&mut self) -> bool {
        let before = &self.changed.before;
        let Some(found) = &self.found else { return false };
        let back = || Ok(format!("{found} -> {before}"));
        match read(self.changed) {
            Ok(now) if setting::same(&now, before) => {
                if self.result.is_err() {
                    self.result = back();
                }
                return false;
            }
            _ => {}
        }
        let written = kernel_file::write(&self.changed.path, before).and_then(|()| read(self.changed));
        self.result = match written {
            Ok(now) if setting::same(&now, before) => back(),
            Ok(now) => Err(format!("took {before}, and says {now}")),
            Err(failure) => Err(failure.to_string()),
        };
        self.result.is_ok()
    }

    fn done(self) -> Done {
        let changed = self.changed;
        Done {
            row: changed.row.clone(),
            path: changed.path.clone(),
            before: changed.after.clone().unwrap_or_default(),
            wanted: changed.before.clone(),
            is_done: self.result.is_ok(),
            what: self.result.unwrap_or_else(|why| why),
        }
    }
}

fn read(changed: &Changed) -> Result<String, Failure> {
    kernel_file::read(&changed.path).map(|text| setting::of(&text).to_owned())
}
