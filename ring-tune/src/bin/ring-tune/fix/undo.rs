//! `ring-tune fix --undo`.

use anyhow::Context;

use super::beside::belongs_to;
use super::kernel_file::Failure;
use super::plan::are_known;
use super::state::{Changed, Folder, State};
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
    let is_named = |changed: &Changed| args.row.is_empty() || args.row.contains(&changed.row);
    let is_asked = |changed: &&Changed| match changed.is_beside {
        true => state.changed.iter().any(|other| is_named(other) && belongs_to(changed, other)),
        false => is_named(changed),
    };
    let asked = state.changed.iter().rev().filter(is_asked);
    let mut undos: Vec<Undo> = asked.map(|changed| Undo::look(changed.clone(), args.force)).collect();
    begin(&mut state, &undos);
    // A full disk is no reason not to go on: what it holds is enough.
    let _ = folder.save(&state);
    restore(&mut undos);
    end(&mut state, &undos);
    let noted = folder
        .save(&state)
        .context("the old values were written back all the same: once there is room, --undo notes that too");
    let is_told = |undo: &&Undo| !undo.changed.is_beside || undo.is_written || undo.result.is_err();
    let done = undos.iter().filter(is_told).map(Undo::done).collect();
    Ok(Outcome { done, is_left: !state.changed.is_empty(), noted })
}

/// From the first write on, a run after this one could not tell who changed what.
fn begin(state: &mut State, undos: &[Undo]) {
    for changed in &mut state.changed {
        if let Some(undo) = undos.iter().find(|undo| undo.is_of(changed) && undo.found.is_some()) {
            changed.before.clone_from(&undo.wanted);
            changed.after = None;
        }
    }
}

/// Forgets what came back.
fn end(state: &mut State, undos: &[Undo]) {
    let is_back = |changed: &Changed| undos.iter().any(|undo| undo.is_of(changed) && undo.result.is_ok());
    state.changed.retain(|changed| changed.is_beside || !is_back(changed));
    for changed in &mut state.changed {
        match undos.iter().find(|undo| undo.is_of(changed)) {
            Some(undo) if undo.result.is_ok() => changed.after = Some(undo.wanted.clone()),
            Some(undo) => {
                changed.after.clone_from(&undo.changed.after);
                // It counts as one that was written, and is tried again.
                changed.is_beside = false;
            }
            None => {}
        }
    }
    state.forget_lonely();
}

/// A file that is to be restored.
struct Undo {
    changed: Changed,
    /// What it is to say.
    wanted: String,
    /// What it said first; none where it is not to be written.
    found: Option<String>,
    is_written: bool,
    result: Result<String, String>,
}

/// One file may change another, or be refused until another is back, as a minimum above the maximum: each is tried
/// again as long as one more comes back. Whether somebody else has changed one is told before the first is written.
fn restore(undos: &mut [Undo]) {
    for _ in 0..=undos.len() {
        let came_back = undos.iter_mut().map(Undo::write_back).filter(|came_back| *came_back).count();
        if came_back == 0 {
            break;
        }
    }
}

impl Undo {
    /// Without a value after the write, the process ended around it: who else may have written there is not known.
    fn look(changed: Changed, is_forced: bool) -> Self {
        let before = changed.before.clone();
        let now = read(&changed);
        let undo = |wanted, result| {
            let found = None;
            Self { changed: changed.clone(), wanted, found, is_written: false, result }
        };
        let now = match now {
            Ok(now) => now,
            Err(Failure::Vanished) if is_forced || changed.is_beside => {
                return undo(before, Ok("is gone, and forgotten".into()));
            }
            Err(Failure::Vanished) => return undo(before, Err("is gone: --force forgets it".into())),
            Err(failure) => return undo(before, Err(failure.to_string())),
        };
        let is_back = setting::same(&now, &before);
        let after = changed.after.as_ref().filter(|after| !is_back && !setting::same(after, &now));
        let undo = match after {
            // What somebody else chose since is what counts, though the kernel may change that again.
            Some(_) if changed.is_beside => undo(now.clone(), Ok(format!("says {now}"))),
            Some(after) if !is_forced => {
                let why = format!(
                    "says {now} and not {after}, so somebody else changed it: --force writes {before}"
                );
                return undo(before, Err(why));
            }
            _ => {
                let already = format!("says {before} already");
                undo(before, Ok(already))
            }
        };
        Self { found: Some(now), ..undo }
    }

    fn is_of(&self, changed: &Changed) -> bool {
        self.changed.path == changed.path
    }

    /// Whether it was written, and says now what it is to say.
    fn write_back(&mut self) -> bool {
        let wanted = &self.wanted;
        let Some(found) = &self.found else { return false };
        let back = || Ok(format!("{found} -> {wanted}"));
        match read(&self.changed) {
            Ok(now) if setting::same(&now, wanted) => {
                if self.result.is_err() {
                    self.result = back();
                }
                return false;
            }
            _ => {}
        }
        let written = kernel_file::write(&self.changed.path, wanted).and_then(|()| read(&self.changed));
        self.is_written = true;
        self.result = match written {
            Ok(now) if setting::same(&now, wanted) => back(),
            Ok(now) => Err(format!("took {wanted}, and says {now}")),
            Err(failure) => Err(failure.to_string()),
        };
        self.result.is_ok()
    }

    fn done(&self) -> Done {
        let changed = &self.changed;
        Done {
            row: changed.row.clone(),
            path: changed.path.clone(),
            before: changed.after.clone().unwrap_or_default(),
            wanted: self.wanted.clone(),
            is_done: self.result.is_ok(),
            what: self.result.clone().unwrap_or_else(|why| why),
        }
    }
}

fn read(changed: &Changed) -> Result<String, Failure> {
    kernel_file::read(&changed.path).map(|text| setting::of(&text).to_owned())
}
