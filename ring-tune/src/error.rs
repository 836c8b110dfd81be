//! What can go wrong when the host is asked for something.

mod errno;
mod remedy;

use core::ffi::c_int;

pub use errno::Errno;
use remedy::{
    Limit, Thread, latency_limit_remedy, lock_memory_remedy, memory_policy_remedy, pin_remedy,
    pin_thread_remedy, read_policy_remedy, read_remedy, scheduling_remedy,
};

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

    /// The bytes are not what a recorder or stages wrote.
    #[error("these bytes hold no recorder: pass on what to_bytes of the same version gave, whole")]
    RecorderBytes,

    /// Stages with other steps cannot be merged.
    #[error(
        "the steps have other names, so their times do not belong together: name the same steps in both processes"
    )]
    OtherStages,

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

    /// The kernel refused to move a thread.
    #[error("cannot pin {}: {}", Thread(*.thread), pin_thread_remedy(*.source))]
    PinThread {
        /// The thread's number, 0 for the calling thread.
        thread: c_int,
        /// What the kernel answered.
        source: Errno,
    },

    /// The kernel accepted the set, but the thread has another one.
    #[error(
        "pinning {} was accepted but is not in effect: CPU {cpu} is offline or outside its cpuset, or a daemon moved it \
         meanwhile; name CPUs that its cpuset allows, and pin again",
        Thread(*.thread)
    )]
    PinThreadNotInEffect {
        /// The thread's number, 0 for the calling thread.
        thread: c_int,
        /// The first CPU that is in one of the two sets only.
        cpu: usize,
    },

    /// The threads of a process cannot be listed.
    #[error(
        "cannot list the threads of process {process}: it has ended, or /proc is not mounted or hides it"
    )]
    ListThreads {
        /// The process.
        process: c_int,
        /// What the kernel answered.
        source: Errno,
    },

    /// The calling thread does not get the policy SCHED_FIFO.
    #[error("cannot schedule this thread by SCHED_FIFO {priority}: {}", scheduling_remedy(*.source))]
    Fifo {
        /// The priority that was asked for.
        priority: u8,
        /// What the kernel answered.
        source: Errno,
    },

    /// The policy was accepted, but the thread has another one.
    #[error(
        "SCHED_FIFO {priority} was accepted but is not in effect: look for a daemon such as rtkit that changes the \
         policy of threads, and ask again"
    )]
    FifoNotInEffect {
        /// The priority that was asked for.
        priority: u8,
    },

    /// The scheduling policy of the calling thread cannot be read.
    #[error("cannot read how this thread is scheduled: allow sched_getattr in the sandbox of this process")]
    ReadScheduling {
        /// What the kernel answered.
        source: Errno,
    },

    /// The memory of this process cannot be locked or unlocked.
    #[error(
        "cannot lock or unlock the memory of this process: RLIMIT_MEMLOCK {}; {}",
        Limit(*.limit_bytes), lock_memory_remedy(*.source, *.limit_bytes)
    )]
    LockMemory {
        /// RLIMIT_MEMLOCK, in bytes; `u64::MAX` where there is no limit, or none was to be read.
        limit_bytes: u64,
        /// What the kernel answered.
        source: Errno,
    },

    /// The kernel refused a memory policy.
    #[error("cannot take memory from NUMA node {node}: {}", memory_policy_remedy(*.source))]
    MemoryPolicy {
        /// The node that was asked for.
        node: usize,
        /// What the kernel answered.
        source: Errno,
    },

    /// The policy was accepted, but the thread has another one.
    #[error(
        "taking memory from NUMA node {node} was accepted but is not in effect: look for a cpuset whose cpuset.mems \
         changed meanwhile, and ask again"
    )]
    MemoryPolicyNotInEffect {
        /// The node that was asked for.
        node: usize,
    },

    /// The memory policy of the calling thread cannot be read or put back.
    #[error("cannot read or put back the memory policy of this thread: {}", read_policy_remedy(*.source))]
    ReadMemoryPolicy {
        /// What the kernel answered.
        source: Errno,
    },

    /// The memory policy is none that this crate sets.
    #[error("cannot set a memory policy of mode {mode}: choose Local, Bind or Preferred")]
    OtherMemoryPolicy {
        /// The kernel's number of the mode.
        mode: c_int,
    },

    /// There is no /dev/cpu_dma_latency: whether CPUs sleep deeply is not for this system to say.
    #[error(
        "cannot limit the wake-up latency to {limit_us} µs: there is no /dev/cpu_dma_latency; mount it into the \
         container, or take a kernel with CONFIG_CPU_IDLE; on a virtual machine only the host decides how CPUs sleep"
    )]
    LatencyLimitAbsent {
        /// The limit that was asked for, in µs.
        limit_us: u32,
        /// What the kernel answered.
        source: Errno,
    },

    /// The limit on the wake-up latency of CPUs cannot be set.
    #[error("cannot limit the wake-up latency to {limit_us} µs: {}", latency_limit_remedy(*.source))]
    LatencyLimit {
        /// The limit that was asked for, in µs.
        limit_us: u32,
        /// What the kernel answered.
        source: Errno,
    },
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

    #[test]
    fn each_text_is_one_line_and_says_what_to_do() {
        let errnos = [libc::EPERM, libc::EACCES, libc::EINVAL, libc::ENOMEM, libc::ENOSYS, libc::ESRCH, -7];
        for source in errnos.map(Errno) {
            for error in [
                Error::PinThread { thread: 0, source },
                Error::PinThreadNotInEffect { thread: 12, cpu: 3 },
                Error::ListThreads { process: 12, source },
                Error::Fifo { priority: 5, source },
                Error::FifoNotInEffect { priority: 5 },
                Error::LockMemory { limit_bytes: 65_536, source },
                Error::LockMemory { limit_bytes: u64::MAX, source },
                Error::MemoryPolicy { node: 1, source },
                Error::MemoryPolicyNotInEffect { node: 1 },
                Error::ReadMemoryPolicy { source },
                Error::LatencyLimitAbsent { limit_us: 2, source },
                Error::LatencyLimit { limit_us: 2, source },
            ] {
                let text = error.to_string();
                assert!(!text.contains("  ") && !text.contains('\n') && !text.contains("errno"), "{text}");
                assert!(text.contains(": ") && text.is_ascii() != text.contains('µ'), "{text}");
            }
        }
        let refused = |source| Error::LockMemory { limit_bytes: 65_536, source }.to_string();
        assert!(refused(Errno(libc::ENOMEM)).contains("allows 65536 bytes; all mappings count"));
        assert!(refused(Errno::PERM).contains("sandbox"), "the limit is not why");
        let none = Error::LockMemory { limit_bytes: 0, source: Errno::PERM }.to_string();
        assert!(none.contains("allows 0 bytes; all mappings count"), "{none}");
        let pinned = Error::PinThread { thread: 0, source: Errno::INVAL }.to_string();
        assert!(pinned.starts_with("cannot pin this thread: "), "{pinned}");
    }
}
