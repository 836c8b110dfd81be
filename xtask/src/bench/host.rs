//! The host that the figures come from, and how far they can be trusted.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use ring_shm::{Locked, Report};
use ring_tune::{Clock, CpuSet, Topology, Tree};
use serde::Serialize;

/// What stands above the tables, and in the JSON.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Host {
    pub(crate) cpu: String,
    /// Lead and peer; twice the same where there is only one.
    pub(crate) cpus: [usize; 2],
    /// What the two have in common.
    pub(crate) share: String,
    #[serde(rename = "virtual")]
    pub(crate) is_virtual: bool,
    pub(crate) tsc_hz: Option<f64>,
    pub(crate) clocksource: Option<String>,
    /// Of the segment that the rings lie in.
    pub(crate) page_bytes: u64,
    pub(crate) locked: bool,
    pub(crate) grade: Grade,
    pub(crate) kernel: Option<String>,
    /// Why the segment is not locked, for the reader.
    #[serde(skip)]
    locked_text: String,
    /// Whether both CPUs are kept free of other tasks.
    #[serde(skip)]
    is_isolated: bool,
}

/// How far the figures can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Grade {
    /// Bare metal, isolated CPUs, nobody was pre-empted.
    A,
    /// Pinned.
    B,
    /// A virtual machine, or one whose CPUs were taken away.
    C,
}

impl Grade {
    fn meaning(self) -> &'static str {
        match self {
            Self::A => "bare metal, isolated, not pre-empted",
            Self::B => "pinned",
            Self::C => "indicative; do not quote the tails",
        }
    }
}

/// What kept the two processes from running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Disturbance {
    /// Times that a process had to make room for another.
    pub(crate) pre_emptions: u64,
    /// Ticks of the kernel's clock that the hypervisor gave the CPUs to somebody else.
    pub(crate) steal_ticks: u64,
}

impl Host {
    /// Looks at the machine. `report` is about a segment like those of the suites.
    pub(crate) fn look(cpus: [usize; 2], clock: &Clock, report: &Report) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let is_virtual =
            field(&cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let topology = Topology::read(&Tree::live()).ok();
        let unknown = || "no topology in sysfs".to_owned();
        let mut host = Self {
            cpu: field(&cpuinfo, "model name").unwrap_or(std::env::consts::ARCH).into(),
            cpus,
            share: topology
                .as_ref()
                .map_or_else(unknown, |topology| topology.share(cpus[0], cpus[1]).to_string()),
            is_virtual,
            tsc_hz: (clock.source() == ring_tune::Source::Tsc).then(|| clock.hz()),
            clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            page_bytes: report.page_bytes,
            locked: report.locked == Locked::Yes,
            grade: Grade::B,
            kernel: read("/proc/sys/kernel/osrelease"),
            locked_text: report.locked.to_string(),
            is_isolated: topology
                .is_some_and(|topology| cpus.iter().all(|&cpu| topology.isolated().contains(cpu))),
        };
        host.judge(Disturbance::default());
        host
    }

    /// Grades the host, by what it is and by what happened during the run.
    pub(crate) fn judge(&mut self, seen: Disturbance) {
        self.grade = if self.is_virtual || seen.steal_ticks > 0 {
            Grade::C
        } else if self.is_isolated && seen.pre_emptions == 0 {
            Grade::A
        } else {
            Grade::B
        };
    }
}

impl core::fmt::Display for Host {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let unknown = || "unknown".to_owned();
        let [lead, peer] = self.cpus;
        let machine = if self.is_virtual { "virtual machine" } else { "bare metal" };
        match lead == peer {
            true => writeln!(formatter, "{}, CPU {lead} alone; {machine}", self.cpu)?,
            false => writeln!(formatter, "{}, CPUs {lead} and {peer}: {}; {machine}", self.cpu, self.share)?,
        }
        writeln!(
            formatter,
            "TSC {}, clock source {}, pages of {} KiB, locked: {}, kernel {}",
            self.tsc_hz.map_or_else(unknown, |hz| format!("{:.1} MHz", hz / 1e6)),
            self.clocksource.clone().unwrap_or_else(unknown),
            self.page_bytes / 1024,
            self.locked_text,
            self.kernel.clone().unwrap_or_else(unknown),
        )?;
        write!(formatter, "grade {:?}: {}", self.grade, self.grade.meaning())
    }
}

impl Disturbance {
    /// What has happened to these processes and CPUs since the machine started.
    pub(crate) fn read(processes: [u32; 2], cpus: [usize; 2]) -> Self {
        let stat = read("/proc/stat").unwrap_or_default();
        Self {
            pre_emptions: processes.iter().map(|&process| pre_emptions(process)).sum(),
            steal_ticks: cpus.iter().map(|&cpu| steal_ticks(&stat, cpu)).sum(),
        }
    }

    /// What has happened since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            pre_emptions: self.pre_emptions.saturating_sub(before.pre_emptions),
            steal_ticks: self.steal_ticks.saturating_sub(before.steal_ticks),
        }
    }

    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            pre_emptions: self.pre_emptions + other.pre_emptions,
            steal_ticks: self.steal_ticks + other.steal_ticks,
        }
    }
}

/// The best pair of the allowed CPUs; one CPU twice where there is only one.
pub(crate) fn choose(allowed: &CpuSet) -> [usize; 2] {
    let topology = Topology::read(&Tree::live()).ok();
    let only = allowed.iter().next().unwrap_or(0);
    topology.and_then(|topology| topology.best_pair(allowed, None)).unwrap_or([only; 2])
}

/// The CPUs that the user names, lead and peer.
pub(crate) fn parse(text: &str, allowed: &CpuSet) -> Result<[usize; 2]> {
    let cpus: Option<Vec<usize>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    let cpus = cpus.and_then(|cpus| <[usize; 2]>::try_from(cpus).ok());
    let cpus =
        cpus.ok_or_else(|| anyhow::anyhow!("--cpus {text}: name two CPUs by number, as in --cpus 0,1"))?;
    for cpu in cpus {
        ensure!(allowed.contains(cpu), "--cpus {text}: this process may not use CPU {cpu}, only {allowed}");
    }
    Ok(cpus)
}

fn pre_emptions(process: u32) -> u64 {
    let status = read(format!("/proc/{process}/status")).unwrap_or_default();
    field(&status, "nonvoluntary_ctxt_switches").and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn steal_ticks(stat: &str, cpu: usize) -> u64 {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name));
    line.and_then(|line| line.split_whitespace().nth(8)?.parse().ok()).unwrap_or(0)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().into())
}
