//! The figures for programs.

#[cfg(test)]
mod tests;

use anyhow::Result;
use serde::Serialize;

use super::host::Host;
use super::row::Row;
use super::suites::Comparison;

#[derive(Debug, Serialize)]
struct Document<'a> {
    host: &'a Host,
    rows: &'a [Row],
    comparisons: &'a [Comparison],
}

/// The document.
pub(crate) fn text(host: &Host, rows: &[Row], comparisons: &[Comparison]) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(&Document { host, rows, comparisons })?;
    text.push(b'\n');
    Ok(text)
}
