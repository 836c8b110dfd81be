//! A report, from a file.

use core::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use serde_json::Value;

use super::facts::Item;
use super::kinds;
use crate::say::plain;

/// No report is longer; its values take some twenty times as much memory.
const LONGEST_BYTES: u64 = 16 << 20;

/// Names of what describes the host, or the question that it was asked: figures of different ones do not compare.
const CONDITIONS: &[&str] = &[
    "cpu",
    "kernel",
    "virtual",
    "profile",
    "threshold_ns",
    "share",
    "grade",
    "source",
    "clocksource",
    "page_bytes",
    "locked",
];

/// A report that was understood.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The file, as people may see it.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) conditions: Vec<(&'static str, String)>,
    pub(super) items: Vec<Item>,
}

/// What kind of report it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Check,
    Jitter,
    Topology,
    Clock,
    Bench,
}

impl Kind {
    fn of(report: &Value) -> anyhow::Result<Self> {
        match report.get("report").and_then(Value::as_str) {
            Some("ring-tune check") => Ok(Self::Check),
            Some("ring-tune jitter") => Ok(Self::Jitter),
            Some("ring-tune topology") => Ok(Self::Topology),
            Some("ring-tune clock") => Ok(Self::Clock),
            Some(other) => bail!("reports of {} are not compared", plain(other)),
            None if report.get("host").is_some() && report.get("rows").is_some() => Ok(Self::Bench),
            None => bail!("this is no report: save one with --json"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Check => "check",
            Self::Jitter => "jitter",
            Self::Topology => "topology",
            Self::Clock => "clock",
            Self::Bench => "bench",
        })
    }
}

impl serde::Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Loaded {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = plain(&path.display().to_string());
        let text = bytes(path).with_context(|| format!("cannot read {name}"))?;
        Self::parse(&name, &text).with_context(|| format!("cannot understand {name}"))
    }

    pub(super) fn parse(name: &str, text: &[u8]) -> anyhow::Result<Self> {
        let report: Value = serde_json::from_slice(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Eof if text.is_empty() => anyhow!("it is empty"),
            _ => anyhow!(error).context("it is no JSON of one report"),
        })?;
        let kind = Kind::of(&report)?;
        let items = match kind {
            Kind::Check => kinds::check(&report),
            Kind::Jitter => kinds::jitter(&report),
            Kind::Topology => kinds::topology(&report),
            Kind::Clock => kinds::clock(&report),
            Kind::Bench => kinds::bench(&report),
        }?;
        Ok(Self { name: name.into(), kind, conditions: conditions(&report), items: distinct(items) })
    }
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![];
    File::open(path)?.take(LONGEST_BYTES + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= LONGEST_BYTES, "it is longer than 16 MiB: no report is");
    Ok(bytes)
}

fn conditions(report: &Value) -> Vec<(&'static str, String)> {
    let told = |name: &&'static str| {
        let value = report.get(*name).or_else(|| report.get("host")?.get(*name))?;
        let text = value.as_str().map_or_else(|| value.to_string(), Into::into);
        Some((*name, text))
    };
    CONDITIONS.iter().filter_map(told).collect()
}

/// Names that come twice are told apart by their order.
fn distinct(items: Vec<Item>) -> Vec<Item> {
    let mut seen = std::collections::BTreeMap::new();
    let mut distinct = vec![];
    for mut item in items {
        let times: &mut u32 = seen.entry(item.what.clone()).or_default();
        *times = times.saturating_add(1);
        if *times > 1 {
            item.what = format!("{} (number {times})", item.what);
        }
        distinct.push(item);
    }
    distinct
}
