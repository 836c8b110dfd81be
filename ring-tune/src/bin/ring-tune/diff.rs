//! `ring-tune diff`: two reports of one kind, what got better, what worse, and what is noise.

mod compare;
mod facts;
mod kinds;
mod load;
#[cfg(test)]
mod tests;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;

use crate::say::{say, say_json};
use compare::Comparison;
use load::Loaded;

/// What to compare.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Takes reports of check, jitter, topology and clock as --json prints them, and those of a bench: an object with host and \
rows.

What counts as a change:
  check      another verdict: FAIL is worse than WARN, and WARN than OK and INFO; what could be told in one report
             alone is a change, and neither better nor worse
  jitter     gaps a second and the share of the time lost, where each lies outside of what the tenths of the other's
             time had, and 10 % apart
  topology   medians that lie outside of each other's spread, and 5 % apart
  clock      costs and medians that are 5 % apart, any more negative samples
  bench      the ratio to the floor, as for topology; the median where there is no ratio

Percentiles and maxima of gaps are shown, but not judged: the percentiles of what is left rise when short gaps go, and \
a maximum is a single event. Ends with 0 if nothing got worse, with 2 if something did, and with 1 for an error.")]
pub(crate) struct Args {
    /// The report from before
    #[arg(value_name = "A.json")]
    before: PathBuf,

    /// The report from after
    #[arg(value_name = "B.json")]
    after: PathBuf,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let before = Loaded::read(&args.before)?;
    let after = Loaded::read(&args.after)?;
    ensure!(
        before.kind == after.kind,
        "{} is a report of {}, and {} one of {}: compare two of one kind",
        before.name,
        before.kind,
        after.name,
        after.kind
    );
    let comparison = Comparison::of(&before, &after);
    if args.json {
        say_json(&comparison)?;
    } else {
        say(format_args!("{}", text::of(&comparison)))?;
    }
    Ok(if comparison.worse.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
