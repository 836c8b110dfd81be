//! What two CPUs have in common.

use core::fmt;

/// The nearest thing that two CPUs have in common; what the way between them costs depends on it.
///
/// ```
/// assert_eq!(ring_tune::Share::Cache { level: 3 }.to_string(), "two cores that share the L3 cache");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Share {
    /// They are one.
    Cpu,
    /// Two threads of one core.
    Core,
    /// A cache.
    Cache {
        /// 2 or 3, mostly.
        level: u32,
    },
    /// Memory.
    Node,
    /// The package alone.
    Package,
    /// No more than the machine: they are in two packages.
    Machine,
    /// The kernel does not tell.
    Unknown,
}

impl Share {
    /// The larger, the nearer.
    pub(super) const fn closeness(self) -> u8 {
        match self {
            Self::Cpu => 6,
            Self::Core => 5,
            Self::Cache { .. } => 4,
            Self::Node => 3,
            Self::Package => 2,
            Self::Machine => 1,
            Self::Unknown => 0,
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("one CPU"),
            Self::Core => formatter.write_str("two threads of one core"),
            Self::Cache { level } => write!(formatter, "two cores that share the L{level} cache"),
            Self::Node => formatter.write_str("two cores of one node that share no cache"),
            Self::Package => formatter.write_str("two nodes of one package"),
            Self::Machine => formatter.write_str("two packages"),
            Self::Unknown => formatter.write_str("the kernel does not tell what they share"),
        }
    }
}
