//! The facts in each kind of report.

use anyhow::Context;
use serde_json::Value;

use super::facts::{Fact, Figure, Item};

/// Two runs of one program on one machine differ by so much though each agrees with itself: its pages lie elsewhere,
/// and its clock was calibrated anew.
pub(super) const BETWEEN_RUNS: f64 = 0.05;

/// Of a figure that comes without a spread, all that a single run can differ by from the next on a shared machine.
const WITHOUT_SPREAD: f64 = 0.25;

/// Of two runs that differ by chance alone, one figure in twenty lies outside of what five rounds had, and one in five
/// outside of what three had.
const LEAST_ROUNDS: f64 = 5.0;

/// Gaps come in bursts, whose number differs more than the gaps within them tell.
const BETWEEN_WINDOWS: f64 = 0.10;

/// The verdicts of all rows.
pub(super) fn check(report: &Value) -> anyhow::Result<Vec<Item>> {
    let item = |finding: &Value| {
        let text = |name| Some(finding.get(name)?.as_str()?.to_owned());
        let fact = Fact::Verdict { verdict: text("verdict")?, actual: text("actual")? };
        Some(Item { what: text("id")?, fact })
    };
    let findings = list(report, "findings")?.iter();
    findings.map(|finding| item(finding).context("a finding lacks id, verdict or actual")).collect()
}

/// The gaps of each CPU.
pub(super) fn jitter(report: &Value) -> anyhow::Result<Vec<Item>> {
    let cpus = list(report, "cpus")?.iter();
    let items = cpus
        .map(|cpu| gaps(cpu).context("a CPU lacks cpu, seconds, gaps or lost_share"))
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(items.into_iter().flatten().collect())
}

fn gaps(cpu: &Value) -> Option<Vec<Item>> {
    let figure = |name| number(cpu, name);
    let name = cpu.get("cpu")?.as_u64()?;
    let seconds = figure("seconds").filter(|&seconds| seconds > 0.0)?;
    let gaps = figure("gaps")?;
    let lost_share = figure("lost_share")?;
    let end = |name: &str, end| number(cpu, &format!("{name}_{end}"));
    // The tenths of the time wander more than the whole, so their spread leaves room for what is chance.
    let has_stayed = cpu.get("has_stayed") != Some(&Value::Bool(false));
    let spread = |value, low: Option<f64>, high: Option<f64>, unit| match (low, high) {
        (Some(low), Some(high)) => {
            Figure::spread(value, low, high, unit, BETWEEN_WINDOWS).judged_if(has_stayed)
        }
        // It ended too early to have any.
        _ => Figure::shown(value, unit),
    };
    // A thread that runs less meets fewer gaps, which is nothing good: they are counted by the time that it ran.
    let ran = |lost: f64| (1.0 - lost).clamp(0.01, 1.0);
    let by_time_run = |limit| Some(end("gaps_per_second", limit)? / ran(end("lost_share", limit)?));
    let rate = gaps / seconds / ran(lost_share);
    let rate = spread(rate, by_time_run("min"), by_time_run("max"), "a second of running");
    let percent = |limit| Some(end("lost_share", limit)? * 100.0);
    let lost = spread(lost_share * 100.0, percent("min"), percent("max"), "%");
    let mut items =
        vec![rate.named(format!("gaps on CPU {name}")), lost.named(format!("time lost on CPU {name}"))];
    for (field, what) in [("p50_ns", "p50"), ("p99_ns", "p99"), ("p999_ns", "p99.9"), ("max_ns", "max")] {
        let shown = figure(field).map(|ns| Figure::shown(ns, "ns"));
        items.extend(shown.map(|shown| shown.named(format!("{what} of gaps on CPU {name}"))));
    }
    Some(items)
}

/// The way between each pair of CPUs.
pub(super) fn topology(report: &Value) -> anyhow::Result<Vec<Item>> {
    let are_enough = are_enough_rounds(report);
    let item = |pair: &Value| {
        let way = pair.get("one_way_ns")?;
        let p50 = number(way, "p50")?;
        let [low, high] = ["min", "max"].map(|name| number(way, name).unwrap_or(p50));
        let ends = (pair.get("from")?.as_u64()?, pair.get("to")?.as_u64()?);
        let figure = Figure::spread(p50, low, high, "ns", BETWEEN_RUNS).judged_if(are_enough);
        Some(figure.named(format!("CPU {} to CPU {}", ends.0, ends.1)))
    };
    let pairs = list(report, "pairs")?.iter();
    pairs.map(|pair| item(pair).context("a pair lacks from, to or one_way_ns.p50")).collect()
}

/// Each case: the ratio to the floor, since the floor moves with the machine; where there is none, the median.
pub(super) fn bench(report: &Value) -> anyhow::Result<Vec<Item>> {
    let items = |row: &Value| {
        let name = format!("{}/{}", row.get("suite")?.as_str()?, row.get("case")?.as_str()?);
        let are_enough = are_enough_rounds(row);
        let ratio = number(row, "ratio_to_floor").map(|ratio| {
            let [low, high] = ["ratio_min", "ratio_max"].map(|name| number(row, name).unwrap_or(ratio));
            Figure::spread(ratio, low, high, "of the floor", BETWEEN_RUNS).judged_if(are_enough)
        });
        let median = number(row, "p50").map(|p50| match ratio {
            Some(_) => Figure::shown(p50, "ns"),
            None => Figure::bare(p50, "ns", WITHOUT_SPREAD).judged_if(are_enough),
        });
        let mut items = vec![];
        items.extend(ratio.map(|ratio| ratio.named(&name)));
        items.extend(median.map(|median| median.named(format!("{name}, p50"))));
        Some(items)
    };
    let rows = list(report, "rows")?.iter();
    let rows = rows.map(|row| items(row).context("a row lacks suite or case"));
    Ok(rows.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Whatever a clock's report tells, by the names of its fields.
pub(super) fn clock(report: &Value) -> Vec<Item> {
    let mut items = vec![];
    collect("", report, &mut items);
    items
}

/// The parser has bounded the depth.
fn collect(path: &str, value: &Value, items: &mut Vec<Item>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if path.is_empty() && name == "report" {
                    continue;
                }
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(&path, value, items);
            }
        }
        Value::Array(values) => {
            for (place, value) in values.iter().enumerate() {
                collect(&format!("{path}.{place}"), value, items);
            }
        }
        Value::Number(number) => items.extend(number.as_f64().map(|value| of_clock(path, value))),
        Value::Bool(_) | Value::String(_) => {
            let text = value.as_str().map_or_else(|| value.to_string(), Into::into);
            items.push(Item { what: path.into(), fact: Fact::Text { text } });
        }
        Value::Null => {}
    }
}

fn of_clock(path: &str, value: f64) -> Item {
    let unit = if path.contains("_ns") { "ns" } else { "" };
    let figure = if path.contains("negative") {
        Figure::bare(value, unit, 0.0)
    } else if !unit.is_empty() && (path.contains("cost") || path.contains("p50")) {
        Figure::bare(value, unit, WITHOUT_SPREAD)
    } else {
        Figure::shown(value, unit)
    };
    figure.named(path)
}

fn are_enough_rounds(told: &Value) -> bool {
    number(told, "rounds").is_some_and(|rounds| rounds >= LEAST_ROUNDS)
}

fn list<'a>(report: &'a Value, name: &str) -> anyhow::Result<&'a Vec<Value>> {
    report.get(name).and_then(Value::as_array).with_context(|| format!("it has no list of {name}"))
}

fn number(value: &Value, name: &str) -> Option<f64> {
    value.get(name)?.as_f64()
}
