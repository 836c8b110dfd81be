//! What to do about a refusal; the first words say why the kernel refuses so.

use core::ffi::c_int;
use core::fmt;

use super::Errno;

/// What to do about a CPU that a thread was not moved to.
pub(super) fn pin_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => {
            "it is offline, or outside the cpuset of this process; choose one from `allowed_cpus`, or widen \
             cpuset.cpus of its cgroup"
        }
        _ => "allow sched_setaffinity in the sandbox of this process",
    }
}

/// What to do about a set of CPUs that cannot be read.
pub(super) fn read_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => "the machine has more CPUs than a set holds, raise MAX_CPUS",
        _ => "allow sched_getaffinity in the sandbox of this process",
    }
}

/// A thread by its number, 0 for the calling one.
pub(super) struct Thread(pub(super) c_int);

impl fmt::Display for Thread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => formatter.write_str("this thread"),
            number => write!(formatter, "thread {number}"),
        }
    }
}

/// What to do about a thread that was not moved.
pub(super) fn pin_thread_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => {
            "none of the CPUs is online and in its cpuset, or the kernel has it fixed; choose from `allowed_cpus`, or \
             widen cpuset.cpus of its cgroup"
        }
        Errno::PERM => "it belongs to another user; run as that user, or with CAP_SYS_NICE",
        Errno(libc::ESRCH) => "there is no such thread, or it has ended",
        _ => "allow sched_setaffinity and sched_getaffinity in the sandbox of this process",
    }
}

/// What to do about a real-time policy that was refused; sched(7).
pub(super) fn scheduling_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => "priorities go from 1 to 99",
        Errno::PERM => {
            "raise RLIMIT_RTPRIO to that priority (`ulimit -r`, rtprio in limits.conf, LimitRTPRIO= of systemd) or \
             grant CAP_SYS_NICE; with real-time group scheduling, give its cgroup a budget in cpu.rt_runtime_us too"
        }
        _ => "allow sched_setattr in the sandbox of this process",
    }
}

/// A limit on locked memory as people say it.
pub(super) struct Limit(pub(super) u64);

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => formatter.write_str("sets no limit"),
            bytes => write!(formatter, "allows {bytes} bytes"),
        }
    }
}

/// What to do about memory that was not locked; mlock(2): EPERM is the answer where the limit is 0, and else a sandbox's.
pub(super) fn lock_memory_remedy(errno: Errno, limit_bytes: u64) -> &'static str {
    match (errno, limit_bytes) {
        (Errno::PERM, 0) | (Errno(libc::ENOMEM | libc::EAGAIN), 0..u64::MAX) => {
            "all mappings count; raise it (`ulimit -l`, memlock in limits.conf, LimitMEMLOCK= of systemd), or grant \
             CAP_IPC_LOCK; with that, map less, or raise memory.max of its cgroup"
        }
        (Errno(libc::ENOMEM | libc::EAGAIN), u64::MAX) => {
            "there is not as much memory; map less, or raise memory.max of its cgroup"
        }
        _ => "allow mlockall and munlockall in the sandbox of this process",
    }
}

/// What to do about a memory policy; set_mempolicy(2), mbind(2).
pub(super) fn memory_policy_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => {
            "it does not exist, has no memory, or is outside cpuset.mems of this process, choose one from \
             Mems_allowed_list in /proc/self/status; or the range ends within a huge page, name all of it"
        }
        Errno::NOSYS => {
            "this kernel has no NUMA policies (CONFIG_NUMA), so that there is nothing to choose from"
        }
        Errno(libc::EIO) => {
            "pages that lie elsewhere are shared or locked; bind before the memory is first touched"
        }
        Errno(libc::EFAULT) => "part of the range is not mapped",
        Errno(libc::ENOMEM) => "there is not enough memory on it; free some",
        _ => "allow set_mempolicy, get_mempolicy and mbind in the sandbox (docker: --cap-add SYS_NICE)",
    }
}

/// What to do about a memory policy that cannot be read; get_mempolicy(2).
pub(super) fn read_policy_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::INVAL => "the machine has more nodes than Linux is built for elsewhere, 1,024",
        Errno::NOSYS => {
            "this kernel has no NUMA policies (CONFIG_NUMA), so that there is nothing to choose from"
        }
        _ => "allow get_mempolicy and set_mempolicy in the sandbox (docker: --cap-add SYS_NICE)",
    }
}

/// What to do about a limit on the wake-up latency.
pub(super) fn latency_limit_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno(libc::EACCES) => {
            "/dev/cpu_dma_latency is not for this user; run as root, or let its group write it by a udev rule: \
             KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\""
        }
        Errno::INVAL => "limits go from 0 to 2,000,000,000 µs",
        Errno(libc::EMFILE | libc::ENFILE) => "too many files are open; close some, or raise RLIMIT_NOFILE",
        _ => "allow /dev/cpu_dma_latency in the sandbox or the cgroup of this process",
    }
}
