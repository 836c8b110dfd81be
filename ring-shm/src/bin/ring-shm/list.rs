//! `ring-shm list`.

use std::process::ExitCode;

use serde_json::Value;

use crate::look::{COLUMNS, Look};
use crate::say::say;

/// What to list, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One JSON array
    #[arg(long)]
    json: bool,

    /// Look into segments of other users, too, who could truncate them just then and so kill this command
    #[arg(long)]
    any_owner: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let mut looks: Vec<_> = ring_shm::list()?.map(|listed| Look::of(listed, args.any_owner)).collect();
    looks.sort_by(|one, other| one.listed.name().cmp(other.listed.name()));
    if args.json {
        let all: Value = looks.iter().map(Look::json).collect();
        say(format_args!("{all:#}\n"))?;
    } else {
        let rows =
            core::iter::once(COLUMNS.map(str::to_owned)).chain(looks.iter().map(Look::cells)).collect();
        say(format_args!("{}", table(rows)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rows with their columns one below the other.
fn table(rows: Vec<[String; COLUMNS.len()]>) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS.len()] = core::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
