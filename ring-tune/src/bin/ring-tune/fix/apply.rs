//! `ring-tune fix --apply`.

use std::path::Path;

use anyhow::Context;

use super::beside::beside;
use super::kernel_file::Failure;
use super::plan::{Plan, Step};
use super::state::{Changed, Folder, State};
use super::{Done, Outcome, kernel_file, setting};
use crate::say::plain;

/// Writes what the plan says, once the disk holds what was there before.
pub(super) fn run(plan: &Plan, folder: &Path) -> anyhow::Result<Outcome> {
    if plan.steps.is_empty() {
        return Ok(Outcome { done: vec![], is_left: false, noted: Ok(()) });
    }
    if !rustix::process::geteuid().is_root() {
        let needs: Vec<String> =
            plan.steps.iter().map(|step| format!("\n  {}: /{}", step.row, plain(&step.path))).collect();
        anyhow::bail!("nothing was written: run it as root, which alone may write{}", needs.concat());
    }
    let folder = Folder::make(folder)?;
    let (mut state, _) = folder.load()?;
    let mut done = vec![];
    let mut begun = vec![];
    for step in &plan.steps {
        match begin(step, &mut state) {
            Begun::Ready(before) => begun.push((step, before)),
            Begun::Settled(settled) => done.push(settled),
        }
    }
    for (step, _) in &begun {
        keep_beside(step, &mut state);
    }
    folder.save(&state)?;
    let written = begun.into_iter().map(|(step, before)| {
        let written = kernel_file::write(&step.path, &step.value);
        (step, before, written)
    });
    // Read once all are written: one file may change another.
    let written: Vec<_> = written.collect();
    for (step, before, written) in written {
        done.push(read_back(step, before, written, &mut state));
    }
    for changed in state.changed.iter_mut().filter(|changed| changed.is_beside && changed.after.is_none()) {
        changed.after = kernel_file::read(&changed.path).ok().map(|text| setting::of(&text).to_owned());
    }
    // What was not changed after all needs no undoing.
    let is_same = |after: &String, before: &str| setting::same(after, before);
    state.changed.retain(|changed| {
        changed.is_beside || changed.after.as_ref().is_none_or(|after| !is_same(after, &changed.before))
    });
    state.forget_lonely();
    let noted = folder.save(&state).context(
        "the files were written all the same, and can be undone: what `--undo` does not know any more is whether \
         somebody else changes them from now on",
    );
    Ok(Outcome { done, is_left: !state.changed.is_empty(), noted })
}

enum Begun {
    /// What the file says now.
    Ready(String),
    Settled(Done),
}

/// Notes what a file says, unless an earlier run has: the oldest value counts.
fn begin(step: &Step, state: &mut State) -> Begun {
    let text = kernel_file::read(&step.path);
    let before = text.as_ref().map(|text| setting::of(text).to_owned()).unwrap_or_default();
    let settled = |is_done, what| {
        let (row, path) = (step.row.into(), step.path.clone());
        Begun::Settled(Done { row, path, before: before.clone(), wanted: step.value.clone(), is_done, what })
    };
    if let Err(failure) = &text {
        return settled(false, failure.to_string());
    }
    if setting::same(&before, &step.value) {
        return settled(true, format!("says {before} already"));
    }
    if let Err(failure) = kernel_file::writable(&step.path) {
        return settled(false, failure.to_string());
    }
    match state.changed.iter_mut().find(|changed| changed.path == step.path) {
        Some(changed) => {
            changed.after = None;
            changed.is_beside = false;
        }
        None => {
            let (row, path) = (step.row.into(), step.path.clone());
            state.changed.push(Changed { row, path, before: before.clone(), after: None, is_beside: false });
        }
    }
    Begun::Ready(before)
}

/// Notes what the kernel may change with a file, in front of all, so that it comes back after it.
fn keep_beside(step: &Step, state: &mut State) {
    let Some(path) = beside(&step.path) else { return };
    match state.changed.iter_mut().find(|changed| changed.path == path) {
        Some(changed) => changed.after = None,
        None => {
            let Ok(text) = kernel_file::read(&path) else { return };
            let before = setting::of(&text).to_owned();
            let row = step.row.into();
            state.changed.insert(0, Changed { row, path, before, after: None, is_beside: true });
        }
    }
}

fn read_back(step: &Step, before: String, written: Result<(), Failure>, state: &mut State) -> Done {
    let after = kernel_file::read(&step.path).map(|text| setting::of(&text).to_owned());
    if let Some(changed) = state.changed.iter_mut().find(|changed| changed.path == step.path) {
        changed.after = after.as_ref().ok().cloned();
    }
    let is_done = after.as_ref().is_ok_and(|after| setting::same(after, &step.value));
    let what = match (written, after) {
        (Ok(()), Ok(after)) if is_done => format!("{before} -> {after}"),
        (Ok(()), Ok(after)) => format!("took {}, and says {after}", step.value),
        (Err(failure), _) | (_, Err(failure)) => failure.to_string(),
    };
    Done { row: step.row.into(), path: step.path.clone(), before, wanted: step.value.clone(), is_done, what }
}
