//! The figures for programs.

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use super::host::Host;
use super::row::Row;

/// The file, opened before the run, so that nobody waits for a run to learn that it cannot be written.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: File,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    host: &'a Host,
    rows: &'a [Row],
}

impl Output {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        // What is in it stays until there is something to put in its place.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.into(), file })
    }

    pub(crate) fn write(self, host: &Host, rows: &[Row]) -> Result<()> {
        self.replace_with(&text(host, rows)?).with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn replace_with(&self, text: &[u8]) -> std::io::Result<()> {
        // A pipe or a terminal has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        (&self.file).write_all(text)
    }
}

fn text(host: &Host, rows: &[Row]) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(&Document { host, rows })?;
    text.push(b'\n');
    Ok(text)
}
