//! Interrupts of devices, and kernel work that is bound to no CPU.

mod affinity;
mod balancer;

use ring_tune::Unread;

use super::per_cpu::{elsewhere, mask};
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "irq-affinity",
        group: Group::Interrupts,
        what: "devices whose interrupts go to the CPUs",
        source: "/proc/irq/*/{smp,effective}_affinity_list, /proc/interrupts",
        profiles: Profile::ALL,
        // MAX_SOFTIRQ_TIME, https://github.com/torvalds/linux/blob/master/kernel/softirq.c: looked at between rounds,
        // one of which may take netdev_budget_usecs.
        why: "each interrupt takes the CPU, and the softirq behind it may keep it for some milliseconds",
        price: "the other CPUs serve the interrupts; a driver may place those of its queues anew on \
                restart",
        now: "write the other CPUs to /proc/irq/N/smp_affinity_list",
        boot: "irqaffinity=LIST with the other CPUs, isolcpus=managed_irq,LIST for queues that the kernel \
               places",
        judge: affinity::affinity,
    },
    Row {
        id: "irq-default",
        group: Group::Interrupts,
        what: "CPUs that new interrupts go to",
        source: "/proc/irq/default_smp_affinity",
        profiles: Profile::ALL,
        why: "a device that comes or restarts while the thread runs may send its interrupts to the \
              thread's CPU",
        price: "the other CPUs serve new interrupts",
        now: "write the mask of the other CPUs to /proc/irq/default_smp_affinity",
        boot: "irqaffinity=LIST with the other CPUs",
        judge: default_affinity,
    },
    Row {
        id: "irqbalance",
        group: Group::Interrupts,
        what: "who moves interrupts about",
        source: "/proc/*/comm, /proc/PID/environ, /etc/default/irqbalance, /etc/sysconfig/irqbalance",
        profiles: Profile::ALL,
        // --interval of irqbalance(1), https://github.com/Irqbalance/irqbalance/blob/master/irqbalance.1
        why: "irqbalance moves interrupts every 10 s, onto these CPUs too, whatever was written before",
        price: "interrupts stay where they are, on busy CPUs too",
        now: "systemctl stop irqbalance, or set IRQBALANCE_BANNED_CPULIST in its configuration and restart \
              it",
        boot: "systemctl disable irqbalance",
        judge: balancer::irqbalance,
    },
    Row {
        id: "workqueues",
        group: Group::Interrupts,
        what: "CPUs of kernel work that is bound to none",
        source: "/sys/devices/virtual/workqueue/cpumask",
        profiles: Profile::ALL,
        why: "kernel threads with work of anybody (writing back, file systems, networks) run on these CPUs, \
              for as long as that work takes",
        price: "the other CPUs do this work",
        now: "write the mask of the other CPUs to /sys/devices/virtual/workqueue/cpumask",
        boot: "isolcpus=domain,LIST takes the CPUs out of it",
        judge: workqueues,
    },
];

fn default_affinity(host: &Host) -> Result<Judged, Unread> {
    let judged = masked(host, "proc/irq/default_smp_affinity", Judged::warn)?;
    let can_be_mended = !judged.changes.is_empty();
    Ok(if can_be_mended { judged.boot(format!("irqaffinity={}", elsewhere(host))) } else { judged })
}

fn workqueues(host: &Host) -> Result<Judged, Unread> {
    masked(host, "sys/devices/virtual/workqueue/cpumask", Judged::fail)
}

/// A mask of CPUs that is to be without the pinned ones.
fn masked(host: &Host, path: &str, otherwise: fn(String, String) -> Judged) -> Result<Judged, Unread> {
    let text = host.tree.text(path)?;
    let cpus = ring_tune::CpuSet::from_mask(&text)
        .map_err(|_| Unread::strange(path, "is no mask of CPUs"))?
        .intersection(host.topology.online());
    let wanted = format!("without {}", host.cpus);
    if cpus.intersection(&host.cpus).is_empty() {
        return Ok(Judged::ok(cpus.to_string(), wanted));
    }
    let others = elsewhere(host);
    let judged = otherwise(cpus.to_string(), wanted);
    Ok(match others.is_empty() {
        true => judged.note(NOWHERE_ELSE),
        false => judged.change(path, mask(&others)),
    })
}

/// What nothing that is written can mend.
const NOWHERE_ELSE: &str = "all CPUs are to be quick: none is left that could do it";
