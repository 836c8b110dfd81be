//! Network interfaces and RDMA devices.

use ring_tune::Tree;

use super::counts::Counts;
use crate::check::ethtool;

const NETWORK: &str = "sys/class/net";
const RDMA: &str = "sys/class/infiniband";

/// What every driver counts of what went wrong.
const STATISTICS: &[&str] = &[
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_over_errors",
    "rx_crc_errors",
];

pub(super) fn exists(tree: &Tree, name: &str) -> bool {
    !name.contains('/') && [NETWORK, RDMA].iter().any(|class| tree.exists(&format!("{class}/{name}")))
}

/// Adds the counters of those that are named, or of all; what cannot be read is left out.
pub(super) fn add(tree: &Tree, named: &[String], counts: &mut Counts) {
    let meant = |name: &String| named.is_empty() || named.contains(name);
    for name in tree.names(NETWORK).unwrap_or_default().into_iter().filter(meant) {
        for statistic in STATISTICS {
            add_file(
                tree,
                &format!("{NETWORK}/{name}/statistics/{statistic}"),
                &format!("{name} {statistic}"),
                counts,
            );
        }
        for line in ethtool::statistics(&name).unwrap_or_default().lines() {
            let Some((what, count)) = line.split_once(':') else { continue };
            let is_news =
                ["drop", "pause", "discard", "error", "out_of_buffer"].iter().any(|word| what.contains(word));
            if let (true, Ok(count)) = (is_news, count.trim().parse()) {
                counts.add(format!("{name} {}", what.trim()), count);
            }
        }
    }
    for name in tree.names(RDMA).unwrap_or_default().into_iter().filter(meant) {
        for folder in ["counters", "hw_counters"] {
            for path in tree.find(&format!("{RDMA}/{name}/ports/*/{folder}/*")).unwrap_or_default() {
                let mut parts = path.rsplit('/');
                let (what, port) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
                add_file(tree, &path, &format!("{name} port {port} {what}"), counts);
            }
        }
    }
}

fn add_file(tree: &Tree, path: &str, name: &str, counts: &mut Counts) {
    if let Ok(Ok(count)) = tree.text(path).map(|text| text.parse()) {
        counts.add(name, count);
    }
}
