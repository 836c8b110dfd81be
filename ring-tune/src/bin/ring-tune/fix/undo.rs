//! `ring-tune fix --undo`.

use super::kernel_file::Failure;
use super::state::{Changed, Folder};
use super::{Args, Done, kernel_file, setting};
use crate::say::warn;

/// Writes the old values back, the youngest change first. What cannot be undone stays noted.
pub(super) fn run(args: &Args) -> anyhow::Result<Vec<Done>> {
    let nothing = "nothing was changed";
    if !rustix::process::geteuid().is_root() {
        anyhow::bail!(
            "nothing was written: run it as root, which alone may write the files and read {}",
            args.state.display()
        );
    }
    let Some(folder) = Folder::open(&args.state)? else {
        warn(format_args!("{nothing}: there is no {}\n", args.state.display()));
        return Ok(vec![]);
    };
    let (mut state, is_restarted) = folder.load()?;
    if is_restarted {
        warn(format_args!("{nothing} since the machine was started, which undid what was changed before\n"));
    }
    let mut done = vec![];
    let mut left = vec![];
    for changed in state.changed.into_iter().rev() {
        let is_asked = args.row.is_empty() || args.row.contains(&changed.row);
        if is_asked {
            let this = restore(&changed, args.force);
            let is_done = this.is_done;
            done.push(this);
            if is_done {
                continue;
            }
        }
        left.push(changed);
    }
    left.reverse();
    state.changed = left;
    folder.save(&state)?;
    Ok(done)
}

fn restore(changed: &Changed, is_forced: bool) -> Done {
    let result = write_back(changed, is_forced);
    let is_done = result.is_ok();
    let what = result.unwrap_or_else(|why| why);
    let (row, path, wanted) = (changed.row.clone(), changed.path.clone(), changed.before.clone());
    Done { row, path, before: changed.after.clone().unwrap_or_default(), wanted, is_done, what }
}

/// Without a value after the write, the process ended around it: who else may have written there is not known.
fn write_back(changed: &Changed, is_forced: bool) -> Result<String, String> {
    let read = || kernel_file::read(&changed.path).map(|text| setting::of(&text).to_owned());
    let now = match read() {
        Ok(now) => now,
        Err(Failure::Vanished) if is_forced => return Ok("is gone, and forgotten".into()),
        Err(Failure::Vanished) => return Err("is gone: --force forgets it".into()),
        Err(failure) => return Err(failure.to_string()),
    };
    let before = &changed.before;
    if setting::same(&now, before) {
        return Ok(format!("says {before} already"));
    }
    if let Some(after) = changed.after.as_ref().filter(|after| !is_forced && !setting::same(after, &now)) {
        return Err(format!(
            "says {now} and not {after}, so somebody else changed it: --force writes {before}"
        ));
    }
    kernel_file::write(&changed.path, before).map_err(|failure| failure.to_string())?;
    match read() {
        Ok(back) if setting::same(&back, before) => Ok(format!("{now} -> {before}")),
        Ok(back) => Err(format!("took {before}, and says {back}")),
        Err(failure) => Err(failure.to_string()),
    }
}
