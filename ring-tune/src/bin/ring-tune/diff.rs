//! `ring-tune diff`: two reports of one kind, what got better, what worse, and what is noise.

mod compare;
mod facts;
mod kinds;
mod load;
mod runs;
#[cfg(test)]
mod tests;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};

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
  jitter     gaps in a second that the thread ran, and the share of the time lost, where each lies outside of what the
             tenths of the other's time had, and 10 % apart
  topology   medians that each lie outside of what the other's rounds had, and 5 % apart; of 5 rounds at least
  clock      costs and medians that are 25 % apart, since they come without a spread; any more negative samples
  bench      the ratio to the floor, as for topology; the median where there is no ratio, as for clock

A run cannot tell how much the next one will differ, and on a shared machine that is a lot. Measure in turn, and name \
several reports of both, in the order in which they were made: A1.json B1.json A2.json B2.json. A figure is then the \
median of its side's runs, its spread is all that they had, and what lies outside of that is a change if it is 5 % apart \
(jitter 10 %).

Of many figures some lie outside by chance: of single runs of 5 rounds one in 20, of 7 rounds one in 80. Percentiles and \
maxima of gaps are shown, but not judged: the percentiles of what is left rise when short gaps go, and a maximum is a \
single event; nor is what had fewer rounds, or a thread that was moved from its CPU. Ends with 0 if nothing got worse, with 2 if something did, and with 1 for an error.")]
pub(crate) struct Args {
    /// The report from before
    #[arg(value_name = "A.json")]
    before: PathBuf,

    /// The report from after
    #[arg(value_name = "B.json")]
    after: PathBuf,

    /// More reports from before and after, in turn
    #[arg(value_name = "A2.json B2.json")]
    more: Vec<PathBuf>,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    ensure!(
        args.more.len() % 2 == 0,
        "there are {} reports: name as many from before as from after, in turn",
        args.more.len() + 2
    );
    let (before, after) = sides(args)?;
    let comparison = Comparison::of(&before, &after);
    if args.json {
        say_json(&comparison)?;
    } else {
        say(format_args!("{}", text::of(&comparison)))?;
    }
    Ok(if comparison.worse.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// The reports from before, and those from after, each as one.
fn sides(args: &Args) -> anyhow::Result<(Loaded, Loaded)> {
    let (mut before, mut after) = (vec![Loaded::read(&args.before)?], vec![Loaded::read(&args.after)?]);
    for pair in args.more.chunks_exact(2) {
        before.push(Loaded::read(&pair[0])?);
        after.push(Loaded::read(&pair[1])?);
    }
    let kind = before[0].kind;
    for other in before.iter().chain(&after) {
        ensure!(
            other.kind == kind,
            "{} is a report of {kind}, and {} one of {}: compare those of one kind",
            before[0].name,
            other.name,
            other.kind
        );
    }
    let [before, after] = [before, after].map(runs::together);
    before.zip(after).context("there is no report")
}
