//! Paths in the kernel's own file systems, built without an allocation.

use core::ffi::CStr;
use core::fmt::{self, Write};

const BYTES: usize = 64;

/// A path that ends in a zero byte.
pub(crate) struct ShortPath {
    /// The path, then at least one zero byte.
    bytes: [u8; BYTES],
    length: usize,
}

impl ShortPath {
    /// None if it is too long.
    pub(crate) fn new(path: fmt::Arguments<'_>) -> Option<Self> {
        let mut this = Self { bytes: [0; BYTES], length: 0 };
        this.write_fmt(path).ok()?;
        Some(this)
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for ShortPath {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes[..BYTES - 1].get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
