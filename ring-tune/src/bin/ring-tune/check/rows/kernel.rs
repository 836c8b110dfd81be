//! What the kernel does now and then on each CPU: each time it costs microseconds, so that these rows warn.

mod periodic;
mod safety;
#[cfg(test)]
mod tests;
mod throttling;
mod watchdog;

use ring_tune::{CpuSet, Tree, Unread};

use super::present;
use crate::check::Host;
use crate::check::row::Row;
pub(crate) use throttling::RealTimeLimit;

pub(super) const ROWS: &[Row] = &[
    periodic::STAT_INTERVAL,
    watchdog::WATCHDOG,
    throttling::RT_THROTTLING,
    periodic::SKEW_TICK,
    periodic::TIMER_MIGRATION,
    periodic::MCE_POLL,
    safety::MITIGATIONS,
    safety::AUDIT,
];

/// Whether the kernel is at least of that version; not where it does not tell.
fn is_at_least(tree: &Tree, version: (u32, u32)) -> Result<bool, Unread> {
    const RELEASE: &str = "proc/sys/kernel/osrelease";
    let Some(release) = present(tree.text(RELEASE))? else { return Ok(false) };
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor) >= version),
        _ => Err(Unread::strange(RELEASE, "does not begin with a version")),
    }
}

/// The CPUs that have no tick while one thread runs on them; older kernels write `(null)` for none.
fn tickless(host: &Host) -> Result<CpuSet, Unread> {
    const NOHZ_FULL: &str = "sys/devices/system/cpu/nohz_full";
    match present(host.tree.text(NOHZ_FULL))?.as_deref() {
        None | Some("(null)") => Ok(CpuSet::new()),
        Some(_) => host.tree.cpus(NOHZ_FULL),
    }
}

/// Whether the kernel keeps its own work away from all of the CPUs.
fn is_left_alone(host: &Host) -> Result<bool, Unread> {
    Ok(host.cpus.is_subset(&host.topology.isolated().union(&tickless(host)?)))
}
