//! Which crate may depend on which, and what stays out of the lock file.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;

/// What a library crate may depend on, development dependencies apart.
struct Rule {
    name: &'static str,
    ring_crates: &'static [&'static str],
    /// The whole list, where there is one.
    exactly: Option<&'static [&'static str]>,
}

/// Arrows point one way: core ← shm, notify, verbs; tune stands alone.
const RULES: [Rule; 5] = [
    Rule {
        name: "ring-core",
        ring_crates: &[],
        exactly: Some(&["memoffset", "static_assertions", "thiserror", "zerocopy"]),
    },
    Rule { name: "ring-shm", ring_crates: &["ring-core"], exactly: None },
    Rule { name: "ring-notify", ring_crates: &["ring-core"], exactly: None },
    Rule { name: "ring-verbs", ring_crates: &["ring-core"], exactly: None },
    Rule { name: "ring-tune", ring_crates: &[], exactly: None },
];

/// Crates that do what ours do; they are measured against in a workspace of their own. A name covers those that
/// begin with it.
const RIVALS: [&str; 7] =
    ["rtrb", "crossbeam-queue", "ringbuf", "iceoryx2", "disruptor", "rusteron", "heapless"];

/// Objections to what `cargo metadata` says.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    let local = packages().filter(|package| package["source"].is_null());
    let mut objections: Vec<String> = local.flat_map(check_package).collect();
    for name in packages().filter_map(|package| package["name"].as_str()) {
        if RIVALS.iter().any(|rival| name.starts_with(rival)) {
            objections.push(format!("{name} is in the lock file: rivals belong into the workspace compare/"));
        }
    }
    objections
}

fn check_package(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if name == "xtask" {
        return Vec::new();
    }
    let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
        return vec![format!(
            "{name} has no rule: say in xtask/src/lint/dependencies.rs what it may depend on"
        )];
    };

    let mut objections = Vec::new();
    let mut everywhere = BTreeSet::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        if dependency["kind"] == "dev" {
            continue;
        }
        let other = dependency["name"].as_str().unwrap_or_default();
        if other.starts_with("ring-") && !rule.ring_crates.contains(&other) {
            objections.push(format!("{name} must not depend on {other}"));
        }
        if other == "loom" {
            if dependency["target"] != "cfg(loom)" {
                objections.push(format!("{name} depends on loom outside of cfg(loom)"));
            }
        } else {
            everywhere.insert(other);
        }
    }
    if let Some(exactly) = rule.exactly {
        let expected: BTreeSet<_> = exactly.iter().copied().collect();
        if everywhere != expected {
            objections.push(format!("{name} depends on {everywhere:?} instead of {expected:?}"));
        }
    }
    objections
}
