//! A process and its threads.

use ring_tune::Tree;

use super::counts::Counts;
use crate::counters::field;

/// Adds what is counted for each thread. False: the process has ended.
pub(super) fn add(tree: &Tree, pid: u32, counts: &mut Counts) -> bool {
    let folder = format!("proc/{pid}/task");
    let Ok(threads) = tree.names(&folder) else { return false };
    // A zombie has threads until its parent has asked for it.
    let state = tree.text(&format!("proc/{pid}/stat")).unwrap_or_default();
    if matches!(after_name(&state).and_then(|rest| rest.split(' ').next()), None | Some("Z" | "X")) {
        return false;
    }
    for thread in threads {
        add_thread(tree, &format!("{folder}/{thread}"), counts);
    }
    true
}

/// A thread that ends meanwhile is left out in part.
fn add_thread(tree: &Tree, folder: &str, counts: &mut Counts) {
    let read = |name: &str| tree.text(&format!("{folder}/{name}")).unwrap_or_default();
    let status = read("status");
    let name = field(&status, "Name").unwrap_or("?").to_owned();
    let thread = folder.rsplit('/').next().unwrap_or_default();
    let mut add = |what: &str, count: Option<u64>| {
        if let Some(count) = count {
            counts.add(format!("{name} ({thread}) {what}"), count);
        }
    };
    let number = |text: &str, key: &str| field(text, key)?.parse().ok();
    add("voluntary switches", number(&status, "voluntary_ctxt_switches"));
    add("involuntary switches", number(&status, "nonvoluntary_ctxt_switches"));
    // proc_pid_stat(5): fields 10 and 12 of the line, of which the name ends the second.
    let stat = read("stat");
    let fault = |place: usize| after_name(&stat)?.split(' ').nth(place - 3)?.parse().ok();
    add("minor faults", fault(10));
    add("major faults", fault(12));
    // Scheduler statistics of the kernel's documentation: time on the CPU, and in the run queue, in ns.
    let schedule = read("schedstat");
    let time = |place: usize| schedule.split(' ').nth(place)?.parse().ok();
    add("ns on a CPU", time(0));
    add("ns in the run queue", time(1));
    add("migrations", field(&read("sched"), "se.nr_migrations").and_then(|count| count.parse().ok()));
}

/// The fields of a line of `stat` behind the name, which may hold anything.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(") ").map(|(_, rest)| rest)
}
