//! `ring-shm clean`.

use std::process::ExitCode;

use ring_shm::{Error, Listed};
use serde_json::{Value, json};

use crate::say::{plain, say};

/// What to remove.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A segment is removed if no process has it mapped, but for those that only look at it as `show` does. Ends with 0 if all \
could be handled, those in use included, and with 1 if something was passed over for an error.")]
pub(crate) struct Args {
    /// Only these segments
    names: Vec<String>,

    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    /// One JSON array
    #[arg(long)]
    json: bool,
}

/// What became of a segment.
struct Fate {
    name: String,
    result: Result<&'static str, Error>,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let mut fates = Vec::new();
    if args.names.is_empty() {
        // A file that cannot even be read is no known segment, so it is nobody's failure that it stays.
        for listed in ring_shm::list()?.filter(|listed| listed.error().is_none()) {
            fates.extend(fate(listed.name(), clean(&listed, args.dry_run), true));
        }
    } else {
        for name in &args.names {
            let result = ring_shm::find(name).and_then(|listed| clean(&listed, args.dry_run));
            fates.extend(fate(name, result, false));
        }
    }
    if args.json {
        let all: Value = fates.iter().map(Fate::json).collect();
        say(format_args!("{all:#}\n"))?;
    } else {
        for Fate { name, result } in &fates {
            let name = plain(name);
            match result {
                Ok(done) => say(format_args!("{done}: {name}\n"))?,
                Err(error) => say(format_args!("passed over: {name}: {error}\n"))?,
            }
        }
    }
    let has_failed = fates.iter().any(|fate| fate.result.is_err());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn clean(listed: &Listed, dry_run: bool) -> Result<&'static str, Error> {
    if dry_run {
        return Ok(if listed.is_used()? { "in use" } else { "would be removed" });
    }
    Ok(if listed.clean()? { "removed" } else { "in use" })
}

/// None: somebody else was faster, and it is gone or is another one, which nobody named.
fn fate(name: &str, result: Result<&'static str, Error>, is_any: bool) -> Option<Fate> {
    match result {
        Err(Error::Missing | Error::Replaced) if is_any => None,
        result => Some(Fate { name: name.to_owned(), result }),
    }
}

impl Fate {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "result": self.result.as_ref().copied().unwrap_or("passed over"),
            "error": self.result.as_ref().err().map(ToString::to_string),
        })
    }
}
