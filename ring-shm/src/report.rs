//! What was obtained, as opposed to what was asked for.

use core::fmt;

use crate::Errno;
use crate::name::Name;

/// What a segment really is, for people ([`Display`](fmt::Display)) and for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    pub(crate) name: Option<Name>,
    /// Address of the data in this process.
    pub address: usize,
    /// Length of the data, bytes.
    pub data_bytes: u64,
    /// Length of the mapping: header and data in whole pages, bytes.
    pub mapped_bytes: u64,
    /// Memory that the kernel has set aside for the segment, bytes.
    pub reserved_bytes: u64,
    /// Size of the pages, bytes, as the file system tells it.
    pub page_bytes: u64,
    /// Why huge pages were asked for and not obtained.
    pub fall_back: Option<Errno>,
    /// Whether this process keeps the segment in memory.
    pub locked: Locked,
    /// Whether the kernel keeps everybody from truncating the segment. A named one is never sealed.
    pub sealed: bool,
}

/// Whether a segment is locked in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locked {
    /// It is.
    Yes,
    /// It is not, and nobody wanted it.
    NotAsked,
    /// It is not, for this reason.
    Refused(Errno),
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().map_or("(anonymous)", Name::as_str);
        writeln!(formatter, "segment   {name}")?;
        writeln!(
            formatter,
            "data      {} at {:#x}, in a mapping of {}",
            Size(self.data_bytes),
            self.address,
            Size(self.mapped_bytes)
        )?;
        write!(formatter, "pages     {}", Size(self.page_bytes))?;
        match self.fall_back {
            None => writeln!(formatter)?,
            Some(error) => writeln!(formatter, " instead of 2 MiB: {error}")?,
        }
        writeln!(formatter, "reserved  {}", Size(self.reserved_bytes))?;
        writeln!(formatter, "locked    {}", self.locked)?;
        match self.sealed {
            true => write!(formatter, "sealed    yes"),
            false => write!(formatter, "sealed    no: who can write to its file can truncate it"),
        }
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes => formatter.write_str("yes"),
            Self::NotAsked => formatter.write_str("no, not asked for"),
            Self::Refused(error) if error.is_lock_limit() => {
                write!(formatter, "no: {error}; raise RLIMIT_MEMLOCK")
            }
            Self::Refused(error) => write!(formatter, "no: {error}"),
        }
    }
}

/// A number of bytes, in the largest unit that leaves no fraction.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, shift) = match self.0.trailing_zeros() {
            _ if self.0 == 0 => ("B", 0),
            30.. => ("GiB", 30),
            20.. => ("MiB", 20),
            10.. => ("KiB", 10),
            _ => ("B", 0),
        };
        write!(formatter, "{} {unit}", self.0 >> shift)
    }
}

#[cfg(test)]
mod tests;
