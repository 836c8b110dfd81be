//! Where to go on: the rows of `check` that a cause points to.

use ring_tune::Tree;

use super::gaps::Cause;
use super::report::OfCpu;
use super::text::unexplained;
use crate::check::RealTimeLimit;

/// Beginnings of the names of kernel threads, and the rows about what they do.
const THREADS: &[(&str, &[&str])] = &[
    ("kworker", &["workqueues", "stat-interval"]),
    ("ksoftirqd", &["irq-affinity"]),
    ("irq/", &["irq-affinity"]),
    ("rcu", &["rcu-offload"]),
    ("khugepaged", &["thp"]),
    ("kcompactd", &["thp"]),
    ("ksmd", &["ksm"]),
    ("kswapd", &["swap"]),
];

/// Their names, each once.
pub(super) fn rows(cpu: &OfCpu, cause: Cause) -> Vec<&'static str> {
    let mut rows = vec![];
    match cause {
        Cause::ContextSwitch => {
            rows.push("isolated");
            for task in &cpu.seen.tasks {
                let known = THREADS.iter().filter(|(beginning, _)| task.name.starts_with(beginning));
                rows.extend(known.flat_map(|(_, rows)| *rows));
            }
        }
        Cause::PageFault => rows.extend(["memlock", "numa-balancing", "thp"]),
        Cause::Other => {
            for interrupt in cpu.seen.interrupts.iter().flatten() {
                // Those of devices have numbers.
                match interrupt.name.as_str() {
                    "LOC" => rows.extend(["nohz-full", "timer-migration"]),
                    "NMI" => rows.push("watchdog"),
                    "MCP" => rows.push("mce-poll"),
                    name if name.parse::<u32>().is_ok() => rows.push("irq-affinity"),
                    _ => {}
                }
            }
            if !unexplained(&cpu.seen, cpu.tally(cause).count).is_empty() {
                rows.extend(["steal", "firmware-stalls"]);
            }
        }
    }
    let mut once: Vec<&str> = vec![];
    for row in rows {
        if !once.contains(&row) {
            once.push(row);
        }
    }
    once
}

/// That the kernel itself stops the threads of the measurement, which are scheduled as this process is.
pub(super) fn about_policy(tree: &Tree) -> Option<String> {
    let stat = tree.text("proc/self/stat").ok()?;
    let RealTimeLimit::Budget { runtime_us, period_us } = RealTimeLimit::of(tree).ok()? else { return None };
    is_real_time(&stat)?.then(|| {
        format!(
            "the threads have a real-time policy: the kernel stops them beyond {runtime_us} of each {period_us} µs, \
             which is a gap like others here (row rt-throttling of `ring-tune check`)"
        )
    })
}

/// Whether the policy is SCHED_FIFO or SCHED_RR, the 41st field of proc_pid_stat(5); the second one is in brackets.
pub(super) fn is_real_time(stat: &str) -> Option<bool> {
    let (_, rest) = stat.rsplit_once(')')?;
    let policy: u32 = rest.split_whitespace().nth(41 - 3)?.parse().ok()?;
    Some(policy == 1 || policy == 2)
}
