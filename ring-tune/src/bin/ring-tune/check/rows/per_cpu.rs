//! What rows about single CPUs share.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ring_tune::{CpuSet, Unread};

use super::present;
use crate::check::Host;

/// Where the kernel describes CPUs.
pub(super) const CPU: &str = "sys/devices/system/cpu";

/// What a file says on each of the pinned CPUs, those left out that do not have it.
///
/// # Errors
///
/// [`Unread`], and [`Unread::Absent`] where none of them has it.
pub(super) fn texts(host: &Host, file: &str) -> Result<Vec<(usize, String)>, Unread> {
    let mut texts = vec![];
    let mut absent = None;
    for cpu in host.cpus.iter() {
        match host.tree.text(&path(cpu, file)) {
            Ok(text) => texts.push((cpu, text)),
            Err(error) if error.is_absent() => absent = absent.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match absent {
        Some(error) if texts.is_empty() => Err(error),
        _ => Ok(texts),
    }
}

/// Like [`texts`]; nothing where no CPU has it.
pub(super) fn texts_if_any(host: &Host, file: &str) -> Result<Vec<(usize, String)>, Unread> {
    Ok(present(texts(host, file))?.unwrap_or_default())
}

/// The CPUs that may do what the pinned ones are kept free of: not the isolated ones, as long as there are others.
pub(super) fn elsewhere(host: &Host) -> CpuSet {
    let others = host.housekeeping();
    let shared = others.difference(host.topology.isolated());
    if shared.is_empty() { others } else { shared }
}

/// Where a file of a CPU is.
pub(super) fn path(cpu: usize, file: &str) -> String {
    format!("{CPU}/cpu{cpu}/{file}")
}

/// The CPUs by what they have: `powersave on 0-7,9; performance on 8`.
pub(super) fn grouped<'a>(values: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let mut groups: BTreeMap<&str, CpuSet> = BTreeMap::new();
    for (cpu, value) in values {
        // No CPU that is online has a number that is too large for a set.
        let _ = groups.entry(value).or_default().insert(cpu);
    }
    let groups = groups.iter().map(|(value, cpus)| format!("{value} on {cpus}"));
    groups.collect::<Vec<_>>().join("; ")
}

/// A list as the kernel's command line has it; none for what is no list. Besides numbers and ranges it understands
/// `all`, `N` for the last CPU, and `0-31:2/8` for the first two of each eight; the kernel's
/// admin-guide/kernel-parameters.rst. CPUs that are not online are left out.
pub(super) fn kernel_list(list: &str, online: &CpuSet) -> Option<CpuSet> {
    let last = online.iter().last()?.to_string();
    let mut cpus = CpuSet::new();
    for part in list.split(',') {
        let (range, pattern) = part.split_once(':').unwrap_or((part, "1/1"));
        let (used, group) = pattern.split_once('/')?;
        let (used, group) = (used.parse::<usize>().ok()?, group.parse::<usize>().ok()?);
        if used == 0 || used > group {
            return None;
        }
        let range: CpuSet = range.replace("all", "0-N").replace('N', &last).parse().ok()?;
        let first = range.iter().next().unwrap_or(0);
        cpus = cpus.union(&range.iter().filter(|cpu| (cpu - first) % group < used).collect());
    }
    Some(cpus.intersection(online))
}

/// The CPUs as the kernel reads masks: hexadecimal, 32 bits between commas, the highest first.
pub(super) fn mask(cpus: &CpuSet) -> String {
    let last = cpus.iter().last().unwrap_or(0);
    let word = |place: usize| -> u32 {
        (0..32).filter(|bit| cpus.contains(place * 32 + bit)).fold(0, |word, bit| word | 1 << bit)
    };
    let highest = last / 32;
    let rest = (0..highest).rev().map(|place| format!(",{:08x}", word(place)));
    format!("{:x}{}", word(highest), rest.collect::<String>())
}
