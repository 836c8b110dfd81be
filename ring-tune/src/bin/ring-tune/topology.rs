//! `ring-tune topology`: what a hand-over costs between each pair of CPUs, beside what they share.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | a thread that ends | the look whether it lives | the last word that it sent |

mod heat_map;
mod measure;
mod report;

use std::fs::OpenOptions;
use std::io::{Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use ring_tune::{Clock, CpuSet, Topology, Tree, Unread, allowed_cpus};

use crate::say::{plain, say, say_json, warn};
use report::Report;

/// What to measure.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Two threads hand a word to and fro; a figure is half of a round trip, the mean of 64 in a row. All pairs are measured \
in turn, round after round; the median of the rounds is shown, in JSON with the fastest and the slowest round beside it.")]
pub(crate) struct Args {
    /// The CPUs, as in 0-7; all that this process may use if none are named
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,

    /// How many times each pair has its turn
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// A file to draw the matrix into, as SVG
    #[arg(long, value_name = "FILE")]
    heat_map: Option<PathBuf>,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let (topology, _) = of(&Tree::live())?;
    let allowed = allowed_cpus()?;
    let cpus = args.cpus.as_ref().unwrap_or(&allowed);
    ensure!(cpus.is_subset(&allowed), "--cpus {cpus}: this process may only use {allowed}");
    ensure!(
        cpus.len() > 1,
        "it takes two CPUs to hand something over: name them with --cpus; may be used: {allowed}"
    );
    // Opened before the run, so that nobody waits for a run to learn that it cannot be written.
    let heat_map = args.heat_map.as_ref().map(|path| {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        file.with_context(|| format!("cannot write {}", path.display()))
    });
    let heat_map = heat_map.transpose()?;

    let rounds = measure::rounds(Clock::new(), cpus, args.rounds, progress)?;
    let report = Report::of(&topology, cpus, &rounds);
    if let Some((mut file, path)) = heat_map.zip(args.heat_map.as_ref()) {
        let svg = heat_map::svg(&report)?;
        // A pipe has no length.
        let emptied = match file.metadata()?.is_file() {
            true => file.set_len(0),
            false => Ok(()),
        };
        let written = emptied.and_then(|()| file.write_all(svg.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        say_json(&report)?;
    } else {
        say(format_args!("{report}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// As much of the topology as can be read, and what is strange about it, which is told beside the report.
pub(crate) fn of(tree: &Tree) -> anyhow::Result<(Topology, Vec<Unread>)> {
    let (topology, strange) =
        Topology::read_in_part(tree).context("cannot tell which CPUs this machine has")?;
    for unread in &strange {
        warn(format_args!("{}: taken as if it were not there\n", plain(&unread.to_string())));
    }
    Ok((topology, strange))
}

/// Shown on a terminal; a large machine has thousands of pairs.
fn progress(done: usize, of: usize) {
    if std::io::IsTerminal::is_terminal(&stderr()) {
        let end = if done == of { "\r\x1b[K" } else { "" };
        warn(format_args!("\r{done} of {of} turns{end}"));
    }
}
