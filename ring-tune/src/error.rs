//! What can go wrong when the host is asked for something.

use core::ffi::c_int;
use core::fmt;

/// A request that the host refused, with what to do about it. What the kernel said is the
/// [`source`](core::error::Error::source) of an error, and not in its text.
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

    /// The text is no list of CPUs.
    #[error("not a list of CPUs: write numbers and ranges with commas between them, as in 0-3,8")]
    CpuList,

    /// The kernel refused to move the thread.
    #[error("cannot pin to CPU {cpu}: {}", pin_remedy(*.source))]
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
    #[error("cannot read the CPUs that this thread may use: {}", read_remedy(*.source))]
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
///
/// ```
/// use ring_tune::Errno;
///
/// assert_eq!(Errno::PERM.to_string(), "Operation not permitted (errno 1)");
/// assert_eq!(Errno(-7).to_string(), "(errno -7)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub c_int);

impl Errno {
    /// An argument that the kernel does not take.
    pub const INVAL: Self = Self(libc::EINVAL);
    /// A system call that this kernel does not have, or a sandbox forbids.
    pub const NOSYS: Self = Self(libc::ENOSYS);
    /// The operation is not permitted to this user, or in this sandbox.
    pub const PERM: Self = Self(libc::EPERM);
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match *self {
            Self::INVAL => "Invalid argument ",
            Self::NOSYS => "Function not implemented ",
            Self::PERM => "Operation not permitted ",
            _ => "",
        };
        write!(formatter, "{message}(errno {})", self.0)
    }
}

impl core::error::Error for Errno {}

/// What to do about a CPU that a thread was not moved to.
fn pin_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => {
            "it is offline, or outside the cpuset of this process; choose one from `allowed_cpus`, or widen \
             cpuset.cpus of its cgroup"
        }
        _ => "allow sched_setaffinity in the sandbox of this process",
    }
}

/// What to do about a set of CPUs that cannot be read.
fn read_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => "the machine has more CPUs than a set holds, raise MAX_CPUS",
        _ => "allow sched_getaffinity in the sandbox of this process",
    }
}

#[cfg(test)]
mod tests {
    use core::error::Error as _;
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_errno_is_the_source_and_decides_what_to_do() {
        let error = |source| Error::Pin { cpu: 3, source };
        assert_eq!(error(Errno::INVAL).source().unwrap().to_string(), "Invalid argument (errno 22)");
        for (errno, culprit) in [(Errno::INVAL, "cpuset"), (Errno::PERM, "sandbox"), (Errno(-7), "sandbox")] {
            let text = error(errno).to_string();
            assert!(text.contains("CPU 3") && text.contains(culprit), "{text}");
            assert!(!text.contains("errno"), "said twice: {text}");
        }
    }
}
