//! The tasks of this machine, and how much each has run.

use std::collections::BTreeMap;

use ring_tune::{CpuSet, Tree};
use serde::Serialize;

/// What each task has run, by its number.
#[derive(Debug, Default)]
pub(super) struct Tasks(BTreeMap<u32, Ran>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ran {
    process: u32,
    ns: u64,
    turns: u64,
}

/// A task that ran during a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) process: u32,
    pub(super) task: u32,
    /// How often it got a CPU.
    pub(super) turns: u64,
    pub(super) ran_ms: f64,
    /// Where it was last.
    #[serde(skip)]
    pub(super) cpu: usize,
}

impl Tasks {
    /// Empty where the kernel does not tell.
    pub(super) fn read(tree: &Tree) -> Self {
        let mut tasks = BTreeMap::new();
        for process in numbers(tree, "proc") {
            for task in numbers(tree, &format!("proc/{process}/task")) {
                // A task that has gone meanwhile is none that can be named.
                let text = tree.text(&format!("proc/{process}/task/{task}/schedstat"));
                if let Some((ns, turns)) = text.ok().and_then(|text| schedstat(&text)) {
                    tasks.insert(task, Ran { process, ns, turns });
                }
            }
        }
        Self(tasks)
    }

    /// The tasks that have run since `before` and were last on one of the CPUs, those that ran longest first.
    pub(super) fn since(&self, before: &Self, cpus: &CpuSet, tree: &Tree) -> Vec<Task> {
        let mut ran = vec![];
        for (&task, now) in &self.0 {
            let earlier = before.0.get(&task).filter(|earlier| earlier.process == now.process);
            let earlier = earlier.copied().unwrap_or_default();
            let turns = now.turns.saturating_sub(earlier.turns);
            if turns == 0 {
                continue;
            }
            let stat = tree.text(&format!("proc/{}/task/{task}/stat", now.process)).unwrap_or_default();
            if let Some((name, cpu)) = name_and_cpu(&stat).filter(|(_, cpu)| cpus.contains(*cpu)) {
                let ran_ms = now.ns.saturating_sub(earlier.ns) as f64 / 1e6;
                ran.push(Task { name, process: now.process, task, turns, ran_ms, cpu });
            }
        }
        ran.sort_by(|one, other| other.ran_ms.total_cmp(&one.ran_ms));
        ran
    }
}

fn numbers(tree: &Tree, folder: &str) -> Vec<u32> {
    let names = tree.names(folder).unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Nanoseconds on a CPU, and how often it got one; the kernel's scheduler/sched-stats.rst.
pub(super) fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace();
    Some((fields.next()?.parse().ok()?, fields.nth(1)?.parse().ok()?))
}

/// proc_pid_stat(5): the name, second, is in brackets and may hold any character; the CPU is the 39th.
pub(super) fn name_and_cpu(stat: &str) -> Option<(String, usize)> {
    let (start, rest) = stat.rsplit_once(')')?;
    let (_, name) = start.split_once('(')?;
    Some((name.into(), rest.split_whitespace().nth(36)?.parse().ok()?))
}
