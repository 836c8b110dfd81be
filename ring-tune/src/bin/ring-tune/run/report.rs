//! What was planned, and what could not be had.

use core::error::Error as _;
use core::fmt::Write as _;
use std::ffi::OsString;

use ring_tune::{Error, MemoryPolicy};
use serde::Serialize;

use super::plan::Plan;
use crate::check::Profile;
use crate::say::plain;

/// A plan and what has become of it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// What a reader of JSON knows it by.
    report: &'static str,
    profile: Profile,
    cpus: String,
    cpus_share: Option<String>,
    /// None where it is left as it is.
    memory: Option<&'static str>,
    node: Option<usize>,
    fifo: Option<u8>,
    latency_limit_us: u32,
    notes: Vec<String>,
    missing: Vec<Missing>,
    command: Vec<String>,
    starts: bool,
}

/// What could not be had.
#[derive(Debug, Serialize)]
struct Missing {
    what: &'static str,
    /// With what to do about it.
    error: String,
    /// What the kernel answered.
    source: Option<String>,
}

impl Report {
    pub(super) fn of(plan: &Plan, missing: &[Error], command: &[OsString], starts: bool) -> Self {
        let (memory, node) = match plan.policy {
            Some(MemoryPolicy::Bind { node }) => (Some("bind"), Some(node)),
            Some(MemoryPolicy::Preferred { node }) => (Some("preferred"), Some(node)),
            Some(_) => (Some("local"), None),
            None => (None, None),
        };
        Self {
            report: "ring-tune run",
            profile: plan.profile,
            cpus: plan.cpus.to_string(),
            cpus_share: plan.share.map(|share| share.to_string()),
            memory,
            node,
            fifo: plan.fifo,
            latency_limit_us: plan.latency_limit_us,
            notes: plan.notes.clone(),
            missing: missing
                .iter()
                .map(Missing::of)
                .chain(plan.unknown_node.as_deref().map(Missing::near))
                .collect(),
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            starts,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |head: &str, tail: &str| {
            let _ = writeln!(text, "{head:<10}{}", plain(tail));
        };
        let share = self.cpus_share.as_ref().map(|share| format!(" ({share})")).unwrap_or_default();
        line("CPUs", &format!("{}{share}", self.cpus));
        line("memory", &self.memory_text());
        line(
            "policy",
            &self.fifo.map_or("as it is".into(), |priority| format!("SCHED_FIFO, priority {priority}")),
        );
        let limit_us = self.latency_limit_us;
        line(
            "wake-up",
            &format!("within {limit_us} µs, while the command keeps the descriptor that it inherits"),
        );
        line("command", &self.command.join(" "));
        self.notes.iter().for_each(|note| line("note", note));
        self.missing.iter().for_each(|missing| line("missing", &missing.error));
        text
    }

    fn memory_text(&self) -> String {
        match (self.memory, self.node) {
            (Some("bind"), Some(node)) => format!("from node {node} alone"),
            (Some(_), Some(node)) => format!("from node {node}, and from others if it has none left"),
            (Some(_), None) => "from the node of the first touch".into(),
            (None, _) => "as it is".into(),
        }
    }
}

impl Missing {
    fn near(error: &str) -> Self {
        Self { what: "near", error: error.to_owned(), source: None }
    }

    fn of(error: &Error) -> Self {
        let what = match error {
            Error::LatencyLimit { .. } | Error::LatencyLimitAbsent { .. } => "latency_limit_us",
            Error::Fifo { .. } | Error::FifoNotInEffect { .. } | Error::ReadScheduling { .. } => "fifo",
            Error::MemoryPolicy { .. }
            | Error::MemoryPolicyNotInEffect { .. }
            | Error::ReadMemoryPolicy { .. }
            | Error::OtherMemoryPolicy { .. } => "memory",
            _ => "cpus",
        };
        Self { what, error: error.to_string(), source: error.source().map(ToString::to_string) }
    }
}
