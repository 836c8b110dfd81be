//! What the commands print.
//!
//! `println!` panics when nobody reads on or the disk is full; here that is an error like any other.

use core::error::Error;
use core::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Prints text to standard output.
pub(crate) fn say(text: Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush())
}

/// Prints text to standard error. There is nobody to tell when that fails.
pub(crate) fn warn(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// A name as people may see it: anybody can make a segment, and give it a name that moves a terminal's cursor.
pub(crate) fn plain(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '\'' | '"' => text.push(letter),
            _ => text.extend(letter.escape_debug()),
        }
    }
    text
}

/// Whether the reader of the output has gone, as `head` does: no failure to complain about.
pub(crate) fn nobody_reads(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
