//! Where the interrupts of devices go.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use ring_tune::{CpuSet, Unread};

use super::NOWHERE_ELSE;
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::rows::per_cpu::elsewhere;
use crate::check::rows::present;
use crate::counters::{Source, by_cpu, since};

/// So many are named; the rest is counted.
const MOST_NAMED: usize = 6;

/// An interrupt that goes to a pinned CPU.
struct Placed {
    number: String,
    device: String,
    /// Whether it ever came, on whichever CPU.
    has_fired: bool,
    /// Whether the kernel places it, and lets nobody else.
    is_managed: bool,
}

/// The kernel's core-api/irq/irq-affinity.rst.
pub(super) fn affinity(host: &Host) -> Result<Judged, Unread> {
    let numbers = host.tree.names("proc/irq")?;
    let counts = host.tree.text("proc/interrupts").ok().and_then(|text| by_cpu(&text)).unwrap_or_default();
    // The first of those with one name; a large machine has thousands.
    let counts: BTreeMap<&str, &Source> =
        counts.iter().rev().map(|source| (source.name.as_str(), source)).collect();
    let mut placed = vec![];
    for number in numbers.into_iter().filter(|name| name.parse::<u32>().is_ok()) {
        if !goes_to(host, &number)?.intersection(&host.cpus).is_empty() {
            placed.push(Placed::of(host, number, &counts));
        }
    }
    let (active, silent): (Vec<Placed>, Vec<Placed>) = placed.into_iter().partition(|irq| irq.has_fired);
    let mut notes = fired(host)?;
    if !silent.is_empty() {
        notes.push(format!("{} more never came and do not count", silent.len()));
    }
    if active.is_empty() {
        return Ok(Judged::ok("none", "none").note(notes.join("; ")));
    }
    let others = elsewhere(host);
    if others.is_empty() {
        notes.push(NOWHERE_ELSE.into());
    }
    let managed = active.iter().filter(|irq| irq.is_managed).count();
    if managed > 0 {
        notes.push(format!("the kernel places {managed} of them and lets nobody move them"));
    }
    let mut judged = Judged::fail(named(&active), "none");
    for irq in active.iter().filter(|irq| !irq.is_managed && !others.is_empty()) {
        judged = judged.change(affinity_of(&irq.number), others.to_string());
    }
    if managed < active.len() && !others.is_empty() {
        judged = judged.boot(format!("irqaffinity={others}"));
    }
    Ok(judged.note(notes.join("; ")))
}

fn affinity_of(number: &str) -> String {
    format!("proc/irq/{number}/smp_affinity_list")
}

impl Placed {
    fn of(host: &Host, number: String, counts: &BTreeMap<&str, &Source>) -> Self {
        let source = counts.get(number.as_str()).copied();
        Self {
            // What is not counted could have come.
            has_fired: source.is_none_or(|source| source.counts.iter().any(|(_, count)| *count > 0)),
            device: source.map_or("", device).to_owned(),
            // Linux 6.12 and later take the permission to write away.
            is_managed: fs::metadata(host.tree.path(&affinity_of(&number)))
                .is_ok_and(|file| file.permissions().mode() & 0o222 == 0),
            number,
        }
    }
}

/// The CPUs that both lists hold: until the next interrupt the effective one keeps those that were before, and it is
/// empty for an interrupt that nobody asked for. Where only one is there, it decides.
fn goes_to(host: &Host, number: &str) -> Result<CpuSet, Unread> {
    let read = |file: &str| present(host.tree.cpus(&format!("proc/irq/{number}/{file}")));
    let asked = read("smp_affinity_list")?;
    let effective = read("effective_affinity_list")?;
    Ok(match (asked, effective) {
        (Some(asked), Some(effective)) => asked.intersection(&effective),
        (one, other) => one.or(other).unwrap_or_default(),
    })
}

/// The end of a line of /proc/interrupts; devices that share an interrupt stand between commas.
fn device(source: &Source) -> &str {
    let what = source.what.as_str();
    let upto_first = what.split_once(", ").map_or(what, |(start, _)| start);
    let start = upto_first.rfind(' ').map_or(0, |space| space + 1);
    what.get(start..).unwrap_or_default()
}

fn named(irqs: &[Placed]) -> String {
    let shown = irqs.iter().take(MOST_NAMED).map(|irq| match irq.device.is_empty() {
        true => irq.number.clone(),
        false => format!("{} {}", irq.number, irq.device),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if irqs.len() > MOST_NAMED {
        text.push_str(&format!(" and {} more", irqs.len() - MOST_NAMED));
    }
    text
}

/// The devices whose interrupts came to the pinned CPUs between the samples; timers and processors are no devices.
fn fired(host: &Host) -> Result<Vec<String>, Unread> {
    let Some((before, after)) = present(host.samples("proc/interrupts"))?.flatten() else {
        return Ok(vec![]);
    };
    let (Some(before), Some(after)) = (by_cpu(before), by_cpu(&after)) else { return Ok(vec![]) };
    let mut counts = since(&before, &after, |cpu| host.cpus.contains(cpu));
    counts.retain(|(source, _)| source.name.parse::<u32>().is_ok());
    counts.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
    let shown: Vec<String> = counts
        .iter()
        .take(MOST_NAMED)
        .map(|(source, count)| format!("{count} of {}", device(source)))
        .collect();
    let time_ms = host.sampled().unwrap_or_default().as_millis();
    Ok(match shown.is_empty() {
        true => vec![format!("none came in {time_ms} ms")],
        false => vec![format!("in {time_ms} ms came {}", shown.join(", "))],
    })
}
