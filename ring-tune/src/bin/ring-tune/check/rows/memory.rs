//! Memory: what costs milliseconds, or does not work at all, fails; what may cost warns.

mod huge;
mod swap;

use ring_tune::Unread;

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const ROWS: &[Row] =
    &[NUMA_BALANCING, ZONE_RECLAIM, huge::THP, huge::SHMEM_THP, huge::POOL, KSM, swap::SWAP, swap::MEMLOCK];

const NUMA_BALANCING: Row = Row {
    id: "numa-balancing",
    group: Group::Memory,
    what: "pages that are unmapped to see who uses them",
    source: "/proc/sys/kernel/numa_balancing",
    profiles: Profile::ALL,
    // https://github.com/deepseek-ai/DeepEP/issues/624
    why: "the kernel unmaps parts of a process again and again, in the thread that it interrupts, and each \
          page then faults: 5 ms on average, and more than 16 ms at times, were measured on an RDMA path \
          (deepseek-ai/DeepEP #624)",
    price: "programs that are not bound to a node may keep their memory on a far one",
    now: "write 0 to /proc/sys/kernel/numa_balancing",
    boot: "numa_balancing=disable",
    judge: numa_balancing,
};

/// The kernel's admin-guide/sysctl/kernel.rst: 0 is off, 1 balances, 2 sorts into tiers of memory, and both may be set.
fn numa_balancing(host: &Host) -> Result<Judged, Unread> {
    const BALANCING: &str = "proc/sys/kernel/numa_balancing";
    Ok(match host.tree.number(BALANCING)? {
        0 => Judged::ok("0", "0"),
        modes => Judged::fail(modes.to_string(), "0").change(BALANCING, "0").boot("numa_balancing=disable"),
    })
}

const ZONE_RECLAIM: Row = Row {
    id: "zone-reclaim",
    group: Group::Memory,
    what: "reclaim of a node's memory before another node's is used",
    source: "/proc/sys/vm/zone_reclaim_mode",
    profiles: Profile::ALL,
    why: "who needs a page while the node is full first scans and writes back the node's pages, and stalls, \
          although other memory is free",
    price: "a full node's programs take memory of other nodes",
    now: "write 0 to /proc/sys/vm/zone_reclaim_mode",
    boot: "vm.zone_reclaim_mode = 0 in a file of /etc/sysctl.d",
    judge: zone_reclaim,
};

/// The kernel's admin-guide/sysctl/vm.rst: 1 reclaims, 2 also writes pages out, 4 also swaps.
fn zone_reclaim(host: &Host) -> Result<Judged, Unread> {
    const MODE: &str = "proc/sys/vm/zone_reclaim_mode";
    Ok(match host.tree.number(MODE)? {
        0 => Judged::ok("0", "0"),
        modes => Judged::fail(modes.to_string(), "0").change(MODE, "0"),
    })
}

const KSM: Row = Row {
    id: "ksm",
    group: Group::Memory,
    what: "merging of equal pages",
    source: "/sys/kernel/mm/ksm/run",
    profiles: Profile::ALL,
    why: "a page that was merged is copied at the next write: a fault in the middle of a message",
    price: "virtual machines with equal pages take more memory",
    now: "write 0 to /sys/kernel/mm/ksm/run, or 2 to part the pages that are merged already",
    boot: "w /sys/kernel/mm/ksm/run - - - - 0 in a file of /etc/tmpfiles.d; ksm and ksmtuned of the \
           distribution disabled",
    judge: ksm,
};

/// The kernel's admin-guide/mm/ksm.rst: 0 stops, 1 runs, 2 stops and parts what was merged.
fn ksm(host: &Host) -> Result<Judged, Unread> {
    const RUN: &str = "sys/kernel/mm/ksm/run";
    let run = host.tree.number(RUN)?;
    let wanted = "0 or 2";
    Ok(match run {
        0 | 2 => Judged::ok(run.to_string(), wanted),
        1 => Judged::fail(run.to_string(), wanted).change(RUN, "0"),
        _ => return Err(Unread::strange(RUN, "is neither 0, 1 nor 2")),
    })
}
