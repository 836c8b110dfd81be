//! The figures for programs.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufWriter, Write};
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
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.into(), file })
    }

    pub(crate) fn write(self, host: &Host, rows: &[Row]) -> Result<()> {
        let mut writer = BufWriter::new(self.file);
        let written = write(&mut writer, host, rows).and_then(|()| Ok(writer.flush()?));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn write(writer: &mut impl Write, host: &Host, rows: &[Row]) -> Result<()> {
    serde_json::to_writer_pretty(&mut *writer, &Document { host, rows })?;
    writer.write_all(b"\n")?;
    Ok(())
}
