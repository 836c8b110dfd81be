//! `cargo xtask ci`: exactly what CI runs.

use std::process::ExitCode;

use anyhow::Result;

use crate::{lint, test};

/// Lint, then test; what a user's machine may lack is mandatory.
pub(crate) fn run() -> Result<ExitCode> {
    lint::run()?;
    test::run(&test::Args::ci())
}
