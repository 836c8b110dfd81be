//! How tests say what they do not test on this machine.

use core::fmt::Display;
use std::collections::BTreeSet;
use std::format;
use std::io::Write;
use std::string::String;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Says what the calling test leaves out, and why: `cargo xtask test` counts lines that begin with `SKIPPED`, so there
/// is one a test, however much it leaves out.
pub(crate) fn skip(reason: impl Display) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let thread = thread::current();
    // The harness names a thread after its test, unless it runs all of them in its own.
    let test = thread.name().unwrap_or("test");
    let is_first = SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(test.into());
    let word = if is_first { "SKIPPED" } else { "and in" };
    // Not `eprintln!`: the harness would capture it. On a line of its own, since the harness may have begun one, and in
    // one piece, since other tests write too.
    std::io::stderr().write_all(format!("\n{word} {test}: {reason}\n").as_bytes()).unwrap();
}
