//! What was obtained, as opposed to what was asked for.

use core::fmt;

use crate::Errno;
use crate::name::Name;
use crate::pages::PageSize;

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
    /// Why the pages are smaller than those asked for, if they are. Whoever attaches does not know.
    pub fall_back: FallBack,
    /// On which NUMA node the pages lie, as the kernel says now.
    pub nodes: Nodes,
    /// Whether every page was made present in this process.
    pub prefaulted: bool,
    /// Whether this process keeps the segment in memory: what of it is present, if it was not prefaulted.
    pub locked: Locked,
    /// Whether a core dump of this process contains the segment.
    pub in_core_dumps: bool,
    /// Whether a child that this process forks has the segment mapped.
    pub across_forks: bool,
    /// Whether the kernel keeps everybody from truncating the segment. A named one is never sealed.
    pub sealed: bool,
}

/// Why a segment has smaller pages than its creator would have liked; nothing if it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FallBack {
    /// Why there were none of 1 GiB.
    pub from_1gib: Option<Errno>,
    /// Why there were none of 2 MiB.
    pub from_2mib: Option<Errno>,
}

impl FallBack {
    pub(crate) fn note(&mut self, pages: PageSize, error: Errno) {
        match pages {
            PageSize::Huge1GiB => self.from_1gib = Some(error),
            PageSize::Huge2MiB => self.from_2mib = Some(error),
            PageSize::Base => {}
        }
    }
}

/// Where the pages of a segment lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nodes {
    /// Nobody named a node, so they were not counted, which takes time.
    NotAsked,
    /// So many of them here and there.
    #[non_exhaustive]
    Counted {
        /// The node that was named.
        node: u32,
        /// Pages that lie on it.
        there: u64,
        /// Pages that lie on other nodes.
        elsewhere: u64,
        /// Pages that are not present in this process, of which the kernel says nothing.
        absent: u64,
    },
    /// The kernel does not say, for this reason.
    Unknown(Errno),
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
        writeln!(formatter, "{}", self.fall_back)?;
        writeln!(formatter, "nodes     {}", self.nodes)?;
        writeln!(formatter, "reserved  {}", Size(self.reserved_bytes))?;
        match self.prefaulted {
            true => writeln!(formatter, "present   yes")?,
            false => writeln!(formatter, "present   no: the first touch of a page is a fault")?,
        }
        write!(formatter, "locked    {}", self.locked)?;
        match (self.locked, self.prefaulted) {
            (Locked::Yes, false) => writeln!(formatter, ", each page from its first touch on")?,
            _ => writeln!(formatter)?,
        }
        writeln!(formatter, "dumped    {}", if self.in_core_dumps { "yes" } else { "no" })?;
        writeln!(formatter, "forked    {}", if self.across_forks { "yes" } else { "no" })?;
        match self.sealed {
            true => write!(formatter, "sealed    yes"),
            false => write!(formatter, "sealed    no: who can write to its file can truncate it"),
        }
    }
}

impl fmt::Display for FallBack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [("1 GiB", self.from_1gib), ("2 MiB", self.from_2mib)];
        let mut before = "";
        for (size, error) in reasons.into_iter().filter_map(|(size, error)| Some((size, error?))) {
            write!(formatter, "{before} instead of {size}: {error}")?;
            before = ",";
        }
        Ok(())
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => formatter.write_str("not asked for"),
            Self::Counted { node, there, elsewhere, absent } => {
                write!(formatter, "{there} pages on node {node}, {elsewhere} elsewhere")?;
                match absent {
                    0 => Ok(()),
                    _ => write!(formatter, ", {absent} not present"),
                }
            }
            Self::Unknown(error) => write!(formatter, "unknown: {error}"),
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
pub(crate) struct Size(pub(crate) u64);

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
