//! Network.

mod counters;
mod link;
mod moderation;
mod node;
#[cfg(test)]
mod tests;

use ring_tune::Unread;

use crate::check::Host;
use crate::check::finding::{Judged, Verdict};
use crate::check::nic::{self, Nic};
use crate::check::row::Row;

pub(super) const ROWS: &[Row] = &[
    node::NODE,
    link::SPEED,
    link::PAYLOAD,
    link::ASPM,
    moderation::MODERATION,
    counters::RDMA,
    counters::NIC,
];

/// What a row finds of each NIC in use.
fn each(host: &Host, judge: impl Fn(&Nic) -> Result<Judged, Unread>) -> Result<Vec<Judged>, Unread> {
    let nics = nic::in_use(&host.tree)?;
    if nics.is_empty() {
        return Ok(vec![Judged::skip("no NIC is up")]);
    }
    nics.iter().map(judge).collect()
}

/// The verdict of the worst of one or more, and what those of them found that have it.
fn worst(mut parts: Vec<Judged>) -> Judged {
    let worst = parts.iter().map(|part| part.verdict).min().unwrap_or(Verdict::Skip);
    parts.retain(|part| part.verdict == worst);
    let Some(mut all) = parts.pop() else { return Judged::skip("nothing to look at") };
    while let Some(part) = parts.pop() {
        if part.actual != all.actual {
            all.actual = format!("{}; {}", part.actual, all.actual);
        }
        if part.note != all.note {
            all.note = format!("{} {}", part.note, all.note).trim().to_owned();
        }
        for change in part.changes {
            if !all.changes.contains(&change) {
                all.changes.push(change);
            }
        }
        for command in part.commands {
            if !all.commands.contains(&command) {
                all.commands.push(command);
            }
        }
        for parameter in part.boot {
            if !all.boot.contains(&parameter) {
                all.boot.push(parameter);
            }
        }
    }
    all
}
