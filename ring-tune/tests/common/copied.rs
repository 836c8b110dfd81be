//! The command where users may execute it to whom the folder of the build is closed.

use std::path::Path;
use std::process::Command;

/// Copies the command to this path.
pub(crate) fn copy_command(to: &Path) {
    // Another process writes it: a child that a test beside this one forks meanwhile would hold the file open for
    // writing, and nobody could execute it.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_ring-tune")).arg(to).status().unwrap();
    assert!(copied.success());
}
