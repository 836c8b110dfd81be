//! What the kernel counted while the loops ran.

use core::array;

use ring_tune::{CpuSet, Tree};
use serde::Serialize;

use super::tasks::{Task, Tasks};
use crate::counters::{Source, TICK_MS, by_cpu, pressure_us, since, steal_ticks};

/// The counters at one moment; what the kernel does not tell is none, or empty.
#[derive(Debug)]
pub(super) struct Sample {
    interrupts: Option<Vec<Source>>,
    softirqs: Option<Vec<Source>>,
    stat: String,
    pressure: [Option<u64>; 3],
    tasks: Tasks,
}

/// Times in which some task waited for it, of the whole machine, in µs; none where the kernel does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Pressure {
    pub(super) cpu: Option<u64>,
    pub(super) memory: Option<u64>,
    pub(super) io: Option<u64>,
}

/// What was counted on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Seen {
    /// The most frequent first; none where the kernel does not tell.
    pub(super) interrupts: Option<Vec<Counted>>,
    pub(super) softirqs: Option<Vec<Counted>>,
    /// Time that the hypervisor gave to somebody else; none where the kernel does not tell.
    pub(super) steal_ms: Option<u64>,
    /// Those that ran longest first.
    pub(super) tasks: Vec<Task>,
}

/// How often something happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Counted {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) count: u64,
}

/// As many as a person looks at; on a busy CPU there are hundreds.
const TASKS: usize = 10;

impl Sample {
    pub(super) fn take(tree: &Tree) -> Self {
        let counts = |path| tree.text(path).ok().and_then(|text| by_cpu(&text));
        let pressure = ["cpu", "memory", "io"]
            .map(|what| tree.text(&format!("proc/pressure/{what}")).ok().and_then(|text| pressure_us(&text)));
        Self {
            // The tasks take longest: what is read after them is nearer to the loops.
            tasks: Tasks::read(tree),
            pressure,
            stat: tree.text("proc/stat").unwrap_or_default(),
            softirqs: counts("proc/softirqs"),
            interrupts: counts("proc/interrupts"),
        }
    }

    pub(super) fn pressure_since(&self, before: &Self) -> Pressure {
        let [cpu, memory, io] =
            array::from_fn(|place| Some(self.pressure[place]?.saturating_sub(before.pressure[place]?)));
        Pressure { cpu, memory, io }
    }

    /// The tasks that ran on one of the CPUs since `before`.
    pub(super) fn tasks_since(&self, before: &Self, cpus: &CpuSet, tree: &Tree) -> Vec<Task> {
        self.tasks.since(&before.tasks, cpus, tree)
    }

    /// What was counted on a CPU since `before`; `tasks` are those of all CPUs, and `own` is the task that spun.
    pub(super) fn since(&self, before: &Self, cpu: usize, tasks: &[Task], own: u32) -> Seen {
        let ticks = |sample: &Self| steal_ticks(&sample.stat, cpu);
        let steal = ticks(before).zip(ticks(self));
        Seen {
            interrupts: counted(before.interrupts.as_deref(), self.interrupts.as_deref(), cpu),
            softirqs: counted(before.softirqs.as_deref(), self.softirqs.as_deref(), cpu),
            steal_ms: steal.map(|(before, now)| now.saturating_sub(before).saturating_mul(TICK_MS)),
            tasks: tasks
                .iter()
                .filter(|task| task.cpu == cpu && task.task != own)
                .take(TASKS)
                .cloned()
                .collect(),
        }
    }
}

fn counted(before: Option<&[Source]>, after: Option<&[Source]>, cpu: usize) -> Option<Vec<Counted>> {
    let (before, after) = before.zip(after)?;
    let is_told = |sources: &[Source]| sources.iter().any(|source| source.count(cpu).is_some());
    if !is_told(before) || !is_told(after) {
        return None;
    }
    let counted = since(before, after, |number| number == cpu).into_iter();
    let mut counted: Vec<Counted> = counted
        .map(|(source, count)| Counted { name: source.name.clone(), what: source.what.clone(), count })
        .collect();
    counted.sort_by_key(|counted| core::cmp::Reverse(counted.count));
    Some(counted)
}
