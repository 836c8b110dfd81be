//! What the kernel counts, read from its text.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// `USER_HZ` is 100 on all architectures that the kernel tells `/proc/stat` for, so a tick is this long; time(7).
pub(crate) const TICK_MS: u64 = 10;

/// A line of `/proc/interrupts` or `/proc/softirqs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The number or the short name: `24`, `LOC`.
    pub(crate) name: String,
    /// Controller, trigger and devices, or words for a short name; may be empty.
    pub(crate) what: String,
    /// How often, with the CPU, in ascending order.
    pub(crate) counts: Vec<(usize, u64)>,
}

impl Source {
    /// None for a CPU that was not online.
    pub(crate) fn count(&self, cpu: usize) -> Option<u64> {
        let place = self.counts.binary_search_by_key(&cpu, |(number, _)| *number).ok()?;
        Some(self.counts[place].1)
    }
}

/// The lines of `/proc/interrupts` or `/proc/softirqs` that count by CPU; none where the first line names no CPUs.
pub(crate) fn by_cpu(text: &str) -> Option<Vec<Source>> {
    let mut lines = text.lines();
    let cpus: Option<Vec<usize>> =
        lines.next()?.split_whitespace().map(|name| name.strip_prefix("CPU")?.parse().ok()).collect();
    let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
    let sources = lines.filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let mut counts = vec![];
        let mut rest = rest.trim_start();
        for &cpu in &cpus {
            let (field, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            counts.push((cpu, field.parse().ok()?));
            rest = behind.trim_start();
        }
        let what = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Source { name: name.trim().into(), what, counts })
    });
    Some(sources.collect())
}

/// How much each source of `after` counted since `before` on the CPUs that are meant, those that counted nothing left
/// out. One that is new counts from nothing, and a CPU that was not online counts nothing.
pub(crate) fn since<'a>(
    before: &[Source],
    after: &'a [Source],
    is_meant: impl Fn(usize) -> bool,
) -> Vec<(&'a Source, u64)> {
    // The first of those with one name; on a large machine there are thousands, and each is asked for.
    let earlier: BTreeMap<&str, &Source> =
        before.iter().rev().map(|source| (source.name.as_str(), source)).collect();
    let counted = after.iter().filter_map(|source| {
        let earlier = earlier.get(source.name.as_str());
        let here = source.counts.iter().filter(|(cpu, _)| is_meant(*cpu));
        let since = here.filter_map(|(cpu, count)| {
            let earlier = earlier.map_or(Some(0), |earlier| earlier.count(*cpu))?;
            Some(count.saturating_sub(earlier))
        });
        let count = since.fold(0, u64::saturating_add);
        (count > 0).then_some((source, count))
    });
    counted.collect()
}

/// Ticks that the hypervisor gave a CPU to somebody else; proc_stat(5), the eighth number of its line.
pub(crate) fn steal_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

/// The value of a line `NAME: VALUE` or `NAME VALUE`, as in `/proc/PID/status`, `/proc/cpuinfo` or `/proc/vmstat`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = rest.trim_start().strip_prefix(':').or_else(|| rest.strip_prefix(' '))?;
        Some(value.trim())
    })
}

/// Microseconds in which some task waited, from a file of `/proc/pressure`.
pub(crate) fn pressure_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}
