//! `ring-tune fix`: what the check asks for as text, done, or undone.

mod apply;
mod beside;
mod command_line;
mod kernel_file;
mod plan;
mod print;
mod setting;
mod state;
mod undo;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use serde::Serialize;

use crate::check::{Host, Target};
use crate::say::{plain, say, say_json, warn, word};
use plan::Plan;
use print::Format;

const STATE: &str = "/var/lib/ring-tune";

/// What to do about what the check finds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
--apply saves what each file says before it writes the first, and --undo writes that back, also after a crash in \
between; a restart of the machine undoes all by itself. A value that somebody else has changed since is left alone.

Ends with 0 if nothing is left to mend (--undo: to restore), with 2 if something is, and with 1 for an error.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,

    /// Write what to do as text, which is what happens if nothing else is asked for
    #[arg(long, group = "action")]
    print: bool,

    /// Write the files that mend it at run time
    #[arg(long, group = "action")]
    apply: bool,

    /// Write back what the files said before
    #[arg(long, group = "action")]
    undo: bool,

    /// This row only, by the name that `check` shows; may be given several times
    #[arg(long, value_name = "ID")]
    row: Vec<String>,

    /// Which text
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["apply", "undo", "json"])]
    format: Format,

    /// Undo what somebody else has changed since, too, and forget files that are gone
    #[arg(long, requires = "undo")]
    force: bool,

    /// Where the old values are kept
    #[arg(long, value_name = "DIR", default_value = STATE)]
    state: PathBuf,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let is_live = args.target.root.is_none();
    ensure!(is_live || !(args.apply || args.undo), "--root is a copy of a machine: only --print is possible");
    if args.undo {
        return tell(args, "undo", undo::run(args)?, &[]);
    }
    let plan = Plan::of(&Host::look(&args.target)?, &args.row)?;
    if args.apply {
        let by_hand: Vec<_> = plan.by_hand().map(|finding| finding.row.id).collect();
        return tell(args, "apply", apply::run(&plan, &args.state)?, &by_hand);
    }
    if args.json {
        say_json(&print::json(&plan))?;
    } else {
        let text = print::text(&plan, args.format);
        if text.is_empty() {
            warn(format_args!("note: {}\n", print::absent(&plan, args.format)));
        }
        say(format_args!("{text}"))?;
    }
    Ok(status(plan.findings.is_empty()))
}

/// What became of a file.
#[derive(Debug, Serialize)]
struct Done {
    row: String,
    /// Without a slash at the front.
    path: String,
    before: String,
    wanted: String,
    is_done: bool,
    /// What happened, in words that follow the path.
    what: String,
}

/// What became of all of them.
#[derive(Debug)]
struct Outcome {
    done: Vec<Done>,
    /// Whether there is something that can be undone.
    is_left: bool,
    /// Whether the disk has it.
    noted: anyhow::Result<()>,
}

/// What a reader of JSON gets.
#[derive(Debug, Serialize)]
struct Told<'a> {
    report: &'static str,
    action: &'static str,
    files: &'a [Done],
    by_hand: &'a [&'static str],
}

/// That the disk has not taken it is said last, after what was done.
fn tell(args: &Args, action: &'static str, outcome: Outcome, by_hand: &[&'static str]) -> crate::Result {
    let files = &outcome.done;
    if args.json {
        say_json(&Told { report: "ring-tune fix", action, files, by_hand })?;
    } else {
        for done in files {
            let mark = if done.is_done { "done" } else { "LEFT" };
            say(format_args!(
                "{mark}  {}: /{} {}\n",
                plain(&done.row),
                plain(&done.path),
                plain(&done.what)
            ))?;
        }
        if files.is_empty() {
            say(format_args!("no file to {}\n", if action == "undo" { "restore" } else { "write" }))?;
        } else if action == "apply" && outcome.is_left {
            let is_usual = args.state.as_os_str() == STATE;
            let state = match is_usual {
                true => String::new(),
                false => format!(" --state {}", word(&args.state.to_string_lossy())),
            };
            say(format_args!("`ring-tune fix --undo{}` writes the old values back\n", plain(&state)))?;
        }
        if !by_hand.is_empty() {
            say(format_args!("no file mends {}: see `ring-tune fix --print`\n", by_hand.join(", ")))?;
        }
    }
    outcome.noted?;
    Ok(status(by_hand.is_empty() && files.iter().all(|done| done.is_done)))
}

fn status(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
