//! Names of segments.

use core::ffi::{CStr, c_int};
use core::fmt;

use crate::error::NameFault;

/// Bytes that a file name can have.
const MAX_BYTES: usize = 255;

/// How the names begin under which segments are made.
const TEMPORARY: &str = ".ring-shm-";

/// A checked name, without its slash, as the kernel takes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    /// The name, then at least one zero byte.
    bytes: [u8; MAX_BYTES + 1],
    length: usize,
}

impl Name {
    /// Takes "/x" or "x", for a segment.
    pub(crate) fn new(name: &str) -> Result<Self, NameFault> {
        match Self::of_file(name)? {
            name if name.is_temporary() => Err(NameFault::Reserved),
            name => Ok(name),
        }
    }

    /// Takes that of a file, which may be one that is to become a segment.
    pub(crate) fn of_file(name: &str) -> Result<Self, NameFault> {
        let name = name.strip_prefix('/').unwrap_or(name);
        match name {
            "" => return Err(NameFault::Empty),
            "." | ".." => return Err(NameFault::Dots),
            _ if name.contains('/') => return Err(NameFault::Slash),
            _ if name.contains('\0') => return Err(NameFault::Zero),
            _ if name.len() > MAX_BYTES => return Err(NameFault::TooLong),
            _ => {}
        }
        Ok(Self::copy(name))
    }

    /// A name for a file that is to become a segment.
    pub(crate) fn temporary(process: c_int, number: u32) -> Self {
        Self::copy(&alloc::format!("{TEMPORARY}{process}-{number}"))
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.as_str().starts_with(TEMPORARY)
    }

    fn copy(name: &str) -> Self {
        let mut bytes = [0; MAX_BYTES + 1];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Self { bytes, length: name.len() }
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}
