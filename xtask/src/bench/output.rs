//! Files that a run leaves.

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file, opened before the run, so that nobody waits for a run to learn that it cannot be written.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: File,
}

impl Output {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        // What is in it stays until there is something to put in its place.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.into(), file })
    }

    pub(crate) fn write(self, text: &[u8]) -> Result<()> {
        self.replace_with(text).with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn replace_with(&self, text: &[u8]) -> std::io::Result<()> {
        // A pipe or a terminal has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        (&self.file).write_all(text)
    }
}
