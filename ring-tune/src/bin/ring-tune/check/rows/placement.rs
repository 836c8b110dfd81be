//! Placement.

#[cfg(test)]
mod tests;

use ring_tune::{CpuSet, Share, Unread};

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "smt",
        group: Group::Placement,
        what: "threads that share a core with the CPUs",
        source: "/sys/devices/system/cpu/smt/active, /sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
        profiles: Profile::ALL,
        why: "two threads of a core share its execution units and its caches: a busy sibling slows the \
              thread, now more and now less, as what runs there comes and goes",
        price: "half of the machine's threads, which a server that is full misses",
        now: "echo off > /sys/devices/system/cpu/smt/control; or take the siblings offline, or isolate them and \
              leave them idle",
        boot: "",
        judge: smt,
    },
    Row {
        id: "shared-cache",
        group: Group::Placement,
        what: "what the CPUs share",
        source: "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list",
        profiles: Profile::ALL,
        // https://github.com/nviennot/core-to-core-latency: 197 ns between two packages of them
        why: "a message between two cores crosses the chip, or the socket: 23 ns within a last-level cache, 107 ns \
              without on an EPYC 7R13 (core-to-core-latency)",
        price: "none",
        now: "choose other CPUs, as the note says",
        boot: "the same: the CPUs are chosen in the configuration of the service",
        judge: shared_cache,
    },
];

const CONTROL: &str = "sys/devices/system/cpu/smt/control";

/// The kernel's ABI/testing/sysfs-devices-system-cpu.
fn smt(host: &Host) -> Result<Judged, Unread> {
    let wanted = "none, or isolated and idle";
    let mut shared = CpuSet::new();
    let mut open = CpuSet::new();
    for cpu in host.cpus.iter() {
        host.must_know(&format!("/cpu{cpu}/topology/thread_siblings_list"))?;
        let mut others = host.topology.siblings(cpu);
        others.remove(cpu);
        shared = shared.union(&others);
        // Idle is who is isolated and not in the list.
        open = open.union(&others.difference(&host.topology.isolated().difference(&host.cpus)));
    }
    if !open.is_empty() {
        let judged = Judged::fail(format!("CPUs {open}"), wanted).boot("nosmt");
        // The kernel keeps the first thread of each core.
        let are_first = host.cpus.iter().all(|cpu| host.topology.siblings(cpu).iter().next() == Some(cpu));
        let can = are_first && host.tree.text(CONTROL).is_ok_and(|control| control == "on");
        return Ok(if can { judged.change(CONTROL, "off") } else { judged });
    }
    if !shared.is_empty() {
        return Ok(Judged::ok(format!("CPUs {shared}, isolated"), wanted));
    }
    if host.is_virtual() {
        return Ok(Judged::skip("a virtual machine that is not told which CPUs share a core"));
    }
    let is_active = host.tree.number("sys/devices/system/cpu/smt/active")? == 1;
    Ok(Judged::ok(if is_active { "none" } else { "none, SMT is off" }, wanted))
}

fn shared_cache(host: &Host) -> Result<Judged, Unread> {
    let topology = &host.topology;
    let cpus: Vec<usize> = host.cpus.iter().collect();
    let [first, .., _] = cpus[..] else { return Ok(Judged::skip("one CPU exchanges nothing with another")) };
    for cpu in &cpus {
        host.must_know(&format!("/cpu{cpu}/topology"))?;
        host.must_know(&format!("/cpu{cpu}/cache"))?;
    }
    let wanted = "different cores below one last-level cache";
    let last_level = topology.last_level(first);
    let core = cpus.iter().find(|cpu| topology.siblings(**cpu).intersection(&host.cpus).len() > 1);
    if let Some(cpu) = core {
        let both = topology.siblings(*cpu).intersection(&host.cpus);
        return Ok(with_better(host, Judged::fail(format!("CPUs {both} are threads of one core"), wanted)));
    }
    if last_level.is_empty() {
        return Ok(Judged::skip("the kernel knows of no caches"));
    }
    if host.cpus.is_subset(&last_level) {
        let share = topology.share(first, cpus[1]);
        return Ok(Judged::ok(format!("CPUs {}: {share}", host.cpus).replace("two cores", "cores"), wanted));
    }
    let far: Vec<usize> = cpus.iter().copied().filter(|cpu| !last_level.contains(*cpu)).collect();
    let share = far.iter().map(|cpu| topology.share(first, *cpu)).max_by_key(|share| distance(*share));
    let far: CpuSet = far.into_iter().collect();
    let actual = format!("CPUs {first} and {far}: {}", share.unwrap_or(Share::Unknown));
    let judged = match share {
        Some(Share::Machine) => Judged::fail(actual, wanted),
        _ => Judged::warn(actual, wanted),
    };
    Ok(with_better(host, judged))
}

fn distance(share: Share) -> u8 {
    match share {
        Share::Machine => 3,
        Share::Package => 2,
        Share::Node => 1,
        _ => 0,
    }
}

/// Names a pair that is nearer, if there is one.
fn with_better(host: &Host, judged: Judged) -> Judged {
    let topology = &host.topology;
    match topology.best_pair(topology.online(), None) {
        Some([one, other]) if matches!(topology.share(one, other), Share::Cache { .. }) => {
            judged.note(format!("--cpus {one},{other}: {}.", topology.share(one, other)))
        }
        _ => judged,
    }
}
