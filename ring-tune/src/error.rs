//! What can go wrong when the host is asked for something.

use core::fmt;

/// A request that the host refused, with what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The number names no CPU that a set can hold.
    #[error("CPU {cpu} does not exist: name one below {limit}; `allowed_cpus` lists those that may be used")]
    CpuOutOfRange {
        /// The CPU that was asked for.
        cpu: usize,
        /// The first number that is too large.
        limit: usize,
    },

    /// The kernel refused to move the thread.
    #[error(
        "cannot pin to CPU {cpu}: it is offline, or outside the cpuset of this process; choose one from \
         `allowed_cpus`, or widen cpuset.cpus of its cgroup"
    )]
    Pin {
        /// The CPU that was asked for.
        cpu: usize,
        /// What the kernel answered.
        source: Errno,
    },

    /// The kernel accepted the pinning, but the thread may still run elsewhere.
    #[error(
        "pinning to CPU {cpu} was accepted but is not in effect (the thread runs on CPU {runs_on}): look for \
         a cpuset that changed meanwhile, or a daemon that moves threads, and pin again"
    )]
    PinNotInEffect {
        /// The CPU that was asked for.
        cpu: usize,
        /// Where the thread was found.
        runs_on: usize,
    },

    /// The set of allowed CPUs cannot be read.
    #[error(
        "cannot read the CPUs that this thread may use: allow sched_getaffinity in the sandbox (EPERM, \
         ENOSYS), or raise MAX_CPUS on a larger machine (EINVAL)"
    )]
    ReadAffinity {
        /// What the kernel answered.
        source: Errno,
    },

    /// The CPU under the calling thread cannot be read.
    #[error("cannot tell which CPU this thread runs on: allow getcpu in the sandbox")]
    ReadCurrentCpu {
        /// What the kernel answered.
        source: Errno,
    },
}

/// An error number of the operating system; any number is valid.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Argument not valid here.
    pub const EINVAL: Self = Self(libc::EINVAL);
    /// System call not known.
    pub const ENOSYS: Self = Self(libc::ENOSYS);
    /// Not permitted.
    pub const EPERM: Self = Self(libc::EPERM);

    /// The number as the operating system has it.
    ///
    /// ```
    /// assert_eq!(ring_tune::Errno::EPERM.raw(), 1);
    /// ```
    #[must_use]
    pub fn raw(self) -> i32 {
        self.0
    }

    pub(crate) fn from_raw(number: i32) -> Self {
        Self(number)
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Self::EINVAL => Some("EINVAL"),
            Self::ENOSYS => Some("ENOSYS"),
            Self::EPERM => Some("EPERM"),
            _ => None,
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "Errno({name})"),
            None => write!(formatter, "Errno({})", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "{name} (errno {})", self.0),
            None => write!(formatter, "errno {}", self.0),
        }
    }
}

impl core::error::Error for Errno {}

#[cfg(test)]
mod tests {
    use core::error::Error as _;
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_errno_is_the_source_and_unknown_numbers_are_shown() {
        let error = Error::Pin { cpu: 3, source: Errno::from_raw(libc::EINVAL) };
        assert_eq!(error.source().unwrap().to_string(), "EINVAL (errno 22)");
        assert!(error.to_string().contains("CPU 3"));
        assert_eq!(Errno::from_raw(-7).to_string(), "errno -7");
    }
}
