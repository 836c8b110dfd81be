//! `cargo xtask loom --mutants`: each ordering of the crates with models is needed.
//!
//! One at a time, each Release, Acquire and AcqRel becomes Relaxed and each fence goes, and the models must notice.
//! They are built once, with a hook that weakens the place that the environment names. The models of a folder judge its
//! own orderings, and all of the crate together what has no models of its own.
//!
//! What no model can notice says so in its ORDERING comment, with the word "Unmodelled" and how it was shown instead;
//! it is left out here, and counted.

mod judge;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::CRATES;
use super::models::Models;
use crate::say::progress;
use crate::source::{self, Access, Source, folder_of};
use crate::step::at_once;
use crate::workspace::Workspace;
use judge::Fate;

/// The word in an ORDERING comment that exempts it.
const EXEMPT: &str = "Unmodelled:";

/// One ordering to weaken.
#[derive(Debug)]
struct Mutant {
    /// The crate's name, which is that of its folder.
    library: &'static str,
    /// Relative to the crate's `src`.
    path: PathBuf,
    line: usize,
    ordering: String,
    is_fence: bool,
    /// What the hook in the models compares with.
    place: String,
}

/// How it went for all of them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) killed: u64,
    pub(crate) survived: u64,
    pub(crate) exempt: u64,
}

/// Weakens each ordering in the files whose path has `only` in it, or with `quick` one of each sort in each folder, and
/// reports on each in a line. The models pass as they are: who calls this has run them.
pub(crate) fn run(
    workspace: &Workspace,
    cargo_test: &Command,
    only: Option<&str>,
    quick: bool,
    mut report: impl FnMut(&str) -> Result<()>,
) -> Result<Tally> {
    let (mut mutants, mut exempt) = (Vec::new(), 0);
    for library in &CRATES {
        let sources = source::of_library(&workspace.root().join(library.name).join("src"))?;
        let found = find(library.name, &sources, quick);
        mutants.extend(found.0);
        exempt += found.1;
    }
    mutants.retain(|mutant| only.is_none_or(|only| mutant.to_string().contains(only)));
    ensure!(!mutants.is_empty(), "no ordering found to weaken");
    let models = Models::build(cargo_test)?;
    let judge = |mutant: &Mutant| -> Result<(Fate, f64)> {
        let begin = Instant::now();
        let own = models.iter().find(|models| models.name == mutant.library);
        let own = own.with_context(|| format!("{} has no models", mutant.library))?;
        Ok((judge::judge(mutant, own, cargo_test)?, begin.elapsed().as_secs_f64()))
    };

    let mut tally = Tally { exempt, ..Tally::default() };
    let mut judged = 0;
    at_once(&mutants, judge, |mutant, fate| {
        let (fate, seconds) = fate?;
        judged += 1;
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
        progress(format_args!("{judged} of {} mutants", mutants.len()));
        Ok(())
    })?;
    progress(format_args!(""));
    Ok(tally)
}

impl core::fmt::Display for Mutant {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { library, path, line, ordering, is_fence, .. } = self;
        let change = if *is_fence { "no fence" } else { "Relaxed" };
        write!(formatter, "{library}/src/{}:{line}: {ordering} -> {change}", path.display())
    }
}

/// The orderings of a crate to weaken, and how many are exempt.
fn find(library: &'static str, sources: &[Source], quick: bool) -> (Vec<Mutant>, u64) {
    let (mut mutants, mut exempt) = (Vec::new(), 0);
    let mut sorts = BTreeSet::new();
    // What the shim is told is told by those who call it, which are weakened themselves.
    for source in sources.iter().filter(|source| !source.path.starts_with("sync")) {
        for (index, access) in source.facts.accesses.iter().enumerate() {
            let Some((mutant, callee)) = mutant(library, source, index, access) else { continue };
            let sort = (folder_of(&source.path), mutant.ordering.clone(), mutant.is_fence.then_some(callee));
            if source.comments_at(access).iter().any(|comment| comment.text.contains(EXEMPT)) {
                exempt += 1;
            } else if !quick || sorts.insert(sort) {
                mutants.push(mutant);
            }
        }
    }
    (mutants, exempt)
}

/// With the name of what is called.
fn mutant<'a>(
    library: &'static str,
    source: &Source,
    index: usize,
    access: &'a Access,
) -> Option<(Mutant, &'a str)> {
    let callee = access.callee.as_ref()?;
    let is_fence = callee.is_fence();
    if access.ordering == "Relaxed" && !is_fence {
        return None;
    }
    // An exchange has two orderings, of which the second is for its failure.
    let before = &source.facts.accesses[..index];
    let argument = before.iter().filter(|other| other.callee.as_ref() == Some(callee)).count();
    let path = source.path.display();
    let mutant = Mutant {
        library,
        path: source.path.clone(),
        line: access.line,
        ordering: access.ordering.clone(),
        is_fence,
        place: format!("{library}/src/{path}:{}:{}:{argument}", callee.line, callee.column),
    };
    Some((mutant, &callee.name))
}
