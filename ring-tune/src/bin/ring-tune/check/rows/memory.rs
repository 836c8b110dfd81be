//! Memory.

use ring_tune::Unread;

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const ROWS: &[Row] = &[Row {
    id: "ksm",
    group: Group::Memory,
    what: "merging of equal pages",
    source: "/sys/kernel/mm/ksm/run",
    profiles: Profile::ALL,
    why: "a page that was merged is copied at the next write: a fault in the middle of a message",
    price: "virtual machines with equal pages take more memory",
    now: "write 0 to /sys/kernel/mm/ksm/run, or 2 to part the pages that are merged already",
    boot: "",
    judge: ksm,
}];

/// The kernel's admin-guide/mm/ksm.rst: 0 stops, 1 runs, 2 stops and parts what was merged.
fn ksm(host: &Host) -> Result<Judged, Unread> {
    const RUN: &str = "sys/kernel/mm/ksm/run";
    let run = host.tree.number(RUN)?;
    let wanted = "0 or 2";
    Ok(match run {
        0 | 2 => Judged::ok(run.to_string(), wanted),
        _ => Judged::fail(run.to_string(), wanted).change(RUN, "0"),
    })
}
