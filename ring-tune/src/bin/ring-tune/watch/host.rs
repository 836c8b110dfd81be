//! CPUs, and what is counted for all of them.

use ring_tune::{CpuSet, Tree};

use super::counts::{Counts, Whose};
use crate::counters::{TICK_MS, by_cpu, field, pressure_us, steal_ticks};

const PRESSURE: [(&str, &str); 3] = [
    ("proc/pressure/cpu", "cpu_pressure_us"),
    ("proc/pressure/memory", "memory_pressure_us"),
    ("proc/pressure/io", "io_pressure_us"),
];

/// The kernel's names in `/proc/vmstat`.
const MEMORY: &[&str] =
    &["pgfault", "pgmajfault", "pgmigrate_success", "numa_hint_faults", "compact_stall", "pswpin", "pswpout"];

/// Adds what can be read.
pub(super) fn add(tree: &Tree, cpus: &CpuSet, counts: &mut Counts) {
    let read = |path: &str| tree.text(path).unwrap_or_default();
    let stat = read("proc/stat");
    let softnet = read("proc/net/softnet_stat");
    for cpu in cpus.iter() {
        let group = counts.of(Whose::Cpu(cpu));
        group.add("steal_ms", steal_ticks(&stat, cpu).map(|ticks| ticks.saturating_mul(TICK_MS)));
        group.add("softnet_dropped", of_softnet(&softnet, cpu, DROPPED));
        group.add("softnet_squeezed", of_softnet(&softnet, cpu, SQUEEZED));
    }
    for (path, kind) in [("proc/interrupts", "interrupt"), ("proc/softirqs", "softirq")] {
        let sources = by_cpu(&read(path)).unwrap_or_default();
        for cpu in cpus.iter() {
            let group = counts.of(Whose::Cpu(cpu));
            for source in &sources {
                let name = format!("{} {}", source.name, source.what);
                group.add_kind(kind, name.trim_end(), source.count(cpu));
            }
        }
    }
    let number = |text: &str, name| field(text, name)?.parse().ok();
    let machine = counts.of(Whose::Machine);
    machine.add("context_switches", number(&stat, "ctxt"));
    for (path, name) in PRESSURE {
        machine.add(name, pressure_us(&read(path)));
    }
    let memory = read("proc/vmstat");
    for &name in MEMORY {
        machine.add(name, number(&memory, name));
    }
}

/// What this kernel does not tell.
pub(super) fn absent(tree: &Tree) -> Vec<&'static str> {
    let mut absent = vec![];
    for path in ["proc/interrupts", "proc/softirqs", "proc/net/softnet_stat", PRESSURE[0].0] {
        if tree.text(path).is_err() {
            absent.push(path);
        }
    }
    absent
}

/// Places in a line of `/proc/net/softnet_stat`, as net/core/net-procfs.c of the kernel writes it in hexadecimal.
const DROPPED: usize = 1;
const SQUEEZED: usize = 2;
const NUMBER_OF_CPU: usize = 12;

/// The lines are those of CPUs that are online; they say whose they are from Linux 5.10 on.
fn of_softnet(text: &str, cpu: usize, place: usize) -> Option<u64> {
    let number = |line: &str, place| u64::from_str_radix(line.split_whitespace().nth(place)?, 16).ok();
    let is_of = |line: &&str| number(line, NUMBER_OF_CPU).is_some_and(|of| usize::try_from(of) == Ok(cpu));
    number(text.lines().find(is_of)?, place)
}
