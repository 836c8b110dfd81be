//! Network interfaces and RDMA devices.

use ring_tune::Tree;

use super::counts::{Counts, Whose};
use crate::check::{ethtool, nic};

const NETWORK: &str = "sys/class/net";

/// What is worth seeing beside trouble: congestion that was announced, and work requests.
const MORE_NAMES: &[&str] = &["ecn", "cnp", "wqe"];

pub(super) fn exists(tree: &Tree, name: &str) -> bool {
    let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    is_name && [NETWORK, nic::RDMA].iter().any(|class| tree.exists(&format!("{class}/{name}")))
}

/// Adds the counters of those that are named, or of all; what cannot be read is left out.
pub(super) fn add(tree: &Tree, named: &[String], counts: &mut Counts) {
    let is_meant = |name: &String| named.is_empty() || named.contains(name);
    for name in tree.names(NETWORK).unwrap_or_default().into_iter().filter(is_meant) {
        add_network(tree, &name, counts);
    }
    for name in tree.names(nic::RDMA).unwrap_or_default().into_iter().filter(is_meant) {
        add_rdma(tree, &name, counts);
    }
}

fn add_network(tree: &Tree, device: &str, counts: &mut Counts) {
    let is_news = |name: &str| nic::is_trouble(name) || MORE_NAMES.iter().any(|part| name.contains(part));
    let group = counts.of(Whose::Device(device.into()));
    let folder = format!("{NETWORK}/{device}/statistics");
    for name in tree.names(&folder).unwrap_or_default().iter().filter(|name| is_news(name)) {
        group.add(name.as_str(), number(tree, &format!("{folder}/{name}")));
    }
    let lines = ethtool::statistics(device).unwrap_or_default();
    for (name, count) in lines.lines().filter_map(|line| line.rsplit_once(": ")) {
        if is_news(name) {
            group.add_kind("ethtool", name.trim(), count.parse().ok());
        }
    }
}

fn add_rdma(tree: &Tree, device: &str, counts: &mut Counts) {
    let group = counts.of(Whose::Device(device.into()));
    let ports = format!("{}/{device}/ports", nic::RDMA);
    for port in tree.names(&ports).unwrap_or_default() {
        for folder in ["counters", "hw_counters"].map(|folder| format!("{ports}/{port}/{folder}")) {
            for name in tree.names(&folder).unwrap_or_default() {
                group.add_kind("port", format!("{port} {name}"), number(tree, &format!("{folder}/{name}")));
            }
        }
    }
}

/// None for what is no count, such as `N/A (no PMA)`.
fn number(tree: &Tree, path: &str) -> Option<u64> {
    tree.text(path).ok()?.parse().ok()
}
