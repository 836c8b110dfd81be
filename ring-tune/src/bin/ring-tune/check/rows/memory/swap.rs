//! Memory that is swapped out, and memory that may be locked.

use ring_tune::Unread;

use super::super::present;
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};
use crate::counters::field;

pub(super) const SWAP: Row = Row {
    id: "swap",
    group: Group::Memory,
    what: "how readily pages are swapped out",
    source: "/proc/swaps, /proc/sys/vm/swappiness",
    profiles: Profile::ALL,
    why: "a page that was swapped out comes back by a major fault: the thread waits for the disk",
    price: "the page cache gives way first, and files are read again more often",
    now: "write 10 to /proc/sys/vm/swappiness, or turn the swap space off: swapoff -a",
    boot: "vm.swappiness = 10 in a file of /etc/sysctl.d, or no swap space in /etc/fstab",
    judge: swap,
};

/// proc_swaps(5): a line of headings, then a line for each space. The kernel's admin-guide/sysctl/vm.rst: swappiness is
/// 0 to 200; the latency profiles of tuned set 10.
fn swap(host: &Host) -> Result<Judged, Unread> {
    const SWAPPINESS: &str = "proc/sys/vm/swappiness";
    const MOST: i64 = 10;
    let wanted = format!("{MOST} at most, or no swap space");
    let swaps = host.tree.text("proc/swaps")?;
    if swaps.lines().skip(1).all(|line| line.trim().is_empty()) {
        return Ok(Judged::ok("no swap space", wanted));
    }
    let swappiness = host.tree.number(SWAPPINESS)?;
    let actual = format!("swappiness {swappiness}");
    Ok(match swappiness {
        ..=MOST => Judged::ok(actual, wanted),
        _ => Judged::fail(actual, wanted).change(SWAPPINESS, MOST.to_string()),
    })
}

pub(super) const MEMLOCK: Row = Row {
    id: "memlock",
    group: Group::Memory,
    what: "how much memory a process of this user may lock",
    source: "/proc/self/limits, /proc/self/status",
    profiles: Profile::ALL,
    why: "beyond the limit mlock fails, and so does the registration of memory for RDMA (ibv_reg_mr: cannot allocate \
          memory); mlockall counts the stack of each thread as well, of mostly 8 MiB",
    price: "a program with a leak can take memory that nobody else gets back",
    now: "prlimit --memlock=unlimited --pid PID as root, for processes that run already",
    boot: "LimitMEMLOCK=infinity in the service, or memlock lines in /etc/security/limits.d",
    judge: memlock,
};

/// Some rings, and the stacks of some threads.
const FEWEST_BYTES: u64 = 64 << 20;

/// proc_pid_limits(5), and capabilities(7) for `CAP_IPC_LOCK`, which no limit binds.
fn memlock(host: &Host) -> Result<Judged, Unread> {
    const LIMITS: &str = "proc/self/limits";
    const STATUS: &str = "proc/self/status";
    const CAP_IPC_LOCK: u32 = 14;
    let limits = host.tree.text(LIMITS)?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|rest| rest.split_whitespace().next());
    let Some(soft) = soft else { return Err(Unread::strange(LIMITS, "has no line for locked memory")) };
    let wanted = "64 MiB at least";
    if soft == "unlimited" {
        return Ok(Judged::ok(soft, wanted));
    }
    let Ok(bytes) = soft.parse::<u64>() else {
        return Err(Unread::strange(LIMITS, "has a limit of locked memory that is no number"));
    };
    let others = "other users have limits of their own: check as the user who runs the rings";
    let status = present(host.tree.text(STATUS))?.unwrap_or_else(|| "CapEff: 0".into());
    let capabilities = field(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let Some(capabilities) = capabilities else {
        return Err(Unread::strange(STATUS, "has no line of capabilities"));
    };
    if capabilities >> CAP_IPC_LOCK & 1 == 1 {
        return Ok(
            Judged::ok(format!("{}, which does not bind CAP_IPC_LOCK", sized(bytes)), wanted).note(others)
        );
    }
    Ok(match bytes {
        FEWEST_BYTES.. => Judged::ok(sized(bytes), wanted),
        _ if host.profile == Profile::Rdma => Judged::fail(sized(bytes), wanted).note(others),
        _ => Judged::warn(sized(bytes), wanted).note(others),
    })
}

fn sized(bytes: u64) -> String {
    match bytes {
        0x10_0000.. => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}
