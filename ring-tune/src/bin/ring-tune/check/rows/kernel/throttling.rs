//! What ends a thread's turn although it has a real-time policy.

#[cfg(test)]
mod tests;

use ring_tune::{CpuSet, Tree, Unread};

use super::super::present;
use super::{is_at_least, is_left_alone};
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const RT_THROTTLING: Row = Row {
    id: "rt-throttling",
    group: Group::Kernel,
    what: "the share of a CPU that real-time threads may take",
    source: "/proc/sys/kernel/{sched_rt_runtime_us,sched_rt_period_us}, /sys/fs/cgroup/*/cpu.rt_runtime_us, \
             /sys/kernel/debug/sched/fair_server",
    profiles: Profile::POLLING,
    why: "a thread that spins under SCHED_FIFO or SCHED_RR is stopped for the rest of each period, 50 ms of each \
          second unless changed, even if nobody else wants the CPU",
    price: "such a thread, gone wrong, takes its CPU for good: nothing else runs there, not even a shell",
    now: "write -1 to /proc/sys/kernel/sched_rt_runtime_us, where such threads run on CPUs of their own",
    boot: "kernel.sched_rt_runtime_us = -1 in a file of /etc/sysctl.d",
    judge: rt_throttling,
};

const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";

/// What stops a real-time thread that never sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RealTimeLimit {
    /// It has so much of each period, and waits for the rest of it, whether anybody else wants the CPU or not.
    Budget { runtime_us: i64, period_us: i64 },
    /// Threads of other policies that wait for its CPU get a share of it.
    FairServers,
    /// Nothing does.
    None,
}

impl RealTimeLimit {
    /// The kernel's scheduler/sched-rt-group.rst. From 6.12 on, and without groups of real-time threads, the sysctl
    /// stops nobody: fair servers see to it that other threads run (commits 5f6bd380c7bd and d741f297bcea).
    pub(crate) fn of(tree: &Tree) -> Result<Self, Unread> {
        let runtime_us = tree.number(RUNTIME)?;
        let period_us = tree.number("proc/sys/kernel/sched_rt_period_us")?;
        let has_groups = !tree.find("sys/fs/cgroup/*/cpu.rt_runtime_us")?.is_empty();
        Ok(if is_at_least(tree, (6, 12))? && !has_groups {
            Self::FairServers
        } else if runtime_us < 0 || runtime_us >= period_us {
            Self::None
        } else {
            Self::Budget { runtime_us, period_us }
        })
    }
}

fn rt_throttling(host: &Host) -> Result<Judged, Unread> {
    let wanted = "-1 where threads spin under SCHED_FIFO or SCHED_RR";
    let judged = match RealTimeLimit::of(&host.tree)? {
        RealTimeLimit::FairServers => return fair_servers(host),
        RealTimeLimit::None => return Ok(Judged::ok("no limit", wanted)),
        RealTimeLimit::Budget { runtime_us, period_us } => {
            Judged::warn(format!("{runtime_us} of {period_us} µs"), wanted)
        }
    };
    let judged = judged.note("concerns threads under SCHED_FIFO or SCHED_RR that never sleep, and no others");
    // Where the kernel itself needs the CPUs, the limit is what keeps such a thread from stopping the machine.
    Ok(if is_left_alone(host)? { judged.change(RUNTIME, "-1") } else { judged })
}

/// The files are root's, and debugfs need not be mounted: what is not seen is as the kernel starts.
fn fair_servers(host: &Host) -> Result<Judged, Unread> {
    let mut servers = vec![];
    for cpu in host.cpus.iter() {
        let number = |name: &str| {
            let read = host.tree.number(&format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/{name}"));
            if matches!(read, Err(Unread::Denied { .. })) { Ok(None) } else { present(read) }
        };
        if let (Some(runtime_ns), Some(period_ns)) = (number("runtime")?, number("period")?) {
            servers.push((cpu, runtime_ns, period_ns));
        }
    }
    let serving: CpuSet =
        servers.iter().filter(|(_, runtime, _)| *runtime > 0).map(|(cpu, ..)| *cpu).collect();
    let judged = match servers.iter().max_by_key(|(_, runtime, _)| *runtime) {
        None => Judged::info("no limit, but fair servers"),
        Some((_, 0, _)) => return Ok(Judged::ok("no limit, no fair servers", "no limit")),
        Some((_, runtime_ns, period_ns)) => {
            let [runtime, period] = [runtime_ns / 1_000, period_ns / 1_000];
            Judged::info(format!("no limit, but fair servers: {runtime} of {period} µs on {serving}"))
        }
    };
    Ok(judged.note(
        "a real-time thread gives way while threads of other policies wait for its CPU, 50 ms of each second unless \
         changed: keep them off by isolation",
    ))
}
