//! What the commands print.
//!
//! `println!` panics when nobody reads on or the disk is full; here that is an error like any other.

use core::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};

/// Prints text to standard output.
pub(crate) fn say(text: Arguments<'_>) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Prints text to standard error. There is nobody to tell when that fails.
pub(crate) fn warn(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Puts a line in the place of the one that said before how far things are, where somebody watches.
pub(crate) fn progress(text: Arguments<'_>) {
    if io::stderr().is_terminal() {
        warn(format_args!("\r\x1b[K{text}"));
    }
}

/// Whether the reader of the output has gone, as `head` does: no failure to complain about.
pub(crate) fn nobody_reads(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
