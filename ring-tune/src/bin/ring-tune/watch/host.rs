//! CPUs, and what is counted for all of them.

use ring_tune::{CpuSet, Tree};

use super::counts::Counts;
use crate::counters::{by_cpu, field, pressure_us, steal_ticks};

pub(super) fn add(tree: &Tree, cpus: &CpuSet, counts: &mut Counts) {
    let read = |path: &str| tree.text(path).unwrap_or_default();
    for (path, kind) in [("proc/interrupts", "interrupt"), ("proc/softirqs", "softirq")] {
        for source in by_cpu(&read(path)).unwrap_or_default() {
            for cpu in cpus.iter() {
                counts.add(
                    format!("CPU {cpu} {kind} {} {}", source.name, source.what).trim_end(),
                    source.count(cpu),
                );
            }
        }
    }
    let stat = read("proc/stat");
    let softnet = read("proc/net/softnet_stat");
    for cpu in cpus.iter() {
        counts.add(format!("CPU {cpu} ticks stolen by the hypervisor"), steal_ticks(&stat, cpu).unwrap_or(0));
        // net/core/net-procfs.c: hexadecimal; dropped, then polls that ran out of time.
        for (place, what) in [(1, "packets dropped"), (2, "polls cut short")] {
            counts.add(format!("CPU {cpu} {what}"), of_softnet(&softnet, cpu, place).unwrap_or(0));
        }
    }
    counts.add(
        "context switches of the machine",
        field(&stat, "ctxt").and_then(|count| count.parse().ok()).unwrap_or(0),
    );
    for what in ["cpu", "memory", "io"] {
        let waited = pressure_us(&read(&format!("proc/pressure/{what}"))).unwrap_or(0);
        counts.add(format!("us in which a task waited for {what}"), waited);
    }
    let memory = read("proc/vmstat");
    for name in [
        "pgfault",
        "pgmajfault",
        "pgmigrate_success",
        "numa_hint_faults",
        "compact_stall",
        "pswpin",
        "pswpout",
    ] {
        counts.add(name, field(&memory, name).and_then(|count| count.parse().ok()).unwrap_or(0));
    }
}

/// The lines are those of CPUs that are online, which say their number in column 13 from Linux 5.10 on.
fn of_softnet(text: &str, cpu: usize, place: usize) -> Option<u64> {
    let number = |line: &str, place: usize| u64::from_str_radix(line.split_whitespace().nth(place)?, 16).ok();
    let is_of = |line: &&str| number(line, 12).is_some_and(|number| usize::try_from(number) == Ok(cpu));
    number(text.lines().find(is_of)?, place)
}
