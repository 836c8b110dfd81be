//! `ring-tune snapshot`: the files that the check reads, in a tar archive without secrets.

mod copy;
mod secrets;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use ring_tune::Tree;

use crate::say::{plain, say, warn};
use copy::Copy;
pub(crate) use secrets::REDACTED;

/// What to save, and where.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The archive holds what the kernel says of CPUs, memory and devices. Environments and command lines of processes, names \
of hosts, addresses, and parameters of the kernel's command line that no row asks for are left out; names of \
devices are kept, and some network interfaces are named by their address. What is measured is not saved: the row \
spin-gaps says so. To look at it:

  mkdir host && tar -xf FILE -C host && ring-tune check --root host")]
pub(crate) struct Args {
    /// The archive to write, a new file; - for standard output
    file: PathBuf,

    /// Show what is saved
    #[arg(long)]
    list: bool,

    /// A folder with saved files of another machine, to be saved again
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let to_stdout = args.file.as_os_str() == "-";
    ensure!(!to_stdout || !io::stdout().is_terminal(), "an archive is nothing for a terminal: name a file");
    ensure!(!to_stdout || !args.list, "--list and the archive would mix on standard output: name a file");
    ensure!(
        to_stdout || args.file.symlink_metadata().is_err(),
        "{} exists: name another",
        args.file.display()
    );
    let tree = match &args.root {
        Some(root) => Tree::below(root)?,
        None => Tree::live(),
    };
    let copy = Copy::of(&tree)?;
    if args.list {
        for path in copy.paths() {
            say(format_args!("{}\n", plain(path)))?;
        }
    }
    if to_stdout {
        copy.archive(io::stdout().lock())?;
    } else {
        let bytes =
            write(&copy, &args.file).with_context(|| format!("cannot write {}", args.file.display()))?;
        let size = bytes.div_ceil(1 << 10);
        warn(format_args!("{} files, {size} KiB: {}\n", copy.paths().count(), args.file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// A new file, its length in bytes; none is left where it could not be written to its end. That it is new is the
/// kernel's to tell: no other file system call says so on all file systems, and for two at once.
fn write(copy: &Copy<'_>, path: &Path) -> io::Result<u64> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let result = copy.archive(&file).and_then(|()| file.sync_all()).and_then(|()| file.metadata());
    if result.is_err() {
        let _ = std::fs::remove_file(path);
    }
    Ok(result?.len())
}
