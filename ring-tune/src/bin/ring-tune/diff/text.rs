//! The comparison for people: what got worse first.

use core::fmt::Write as _;

use super::compare::{Comparison, Pair, Single};
use super::facts::{Fact, Figure};
use crate::say::plain;

const A_SCREEN: usize = 20;

pub(super) fn of(comparison: &Comparison) -> String {
    let mut text = format!("{}: {}, then {}\n", comparison.kind, comparison.before, comparison.after);
    if !comparison.conditions.is_empty() {
        text.push_str("\nWARNING: not measured under the same conditions; a change may come from them\n");
    }
    for condition in &comparison.conditions {
        let told = |side: &Option<String>| side.as_deref().map_or_else(|| "not told".into(), plain);
        let _ = writeln!(
            text,
            "  {}: {}, then {}",
            condition.what,
            told(&condition.before),
            told(&condition.after)
        );
    }
    pairs(&mut text, "worse", &comparison.worse);
    pairs(&mut text, "better", &comparison.better);
    pairs(&mut text, "changed, neither better nor worse", &comparison.changed);
    // A large machine has thousands of pairs of CPUs.
    if comparison.same.len() <= A_SCREEN {
        pairs(&mut text, "the same, but for noise", &comparison.same);
    }
    pairs(&mut text, "differs, not judged: --help says why", &comparison.not_judged);
    singles(&mut text, "appeared", &comparison.appeared);
    singles(&mut text, "went", &comparison.went);
    let _ = writeln!(
        text,
        "\n{} worse, {} better, {} unchanged, {} not judged",
        comparison.worse.len(),
        comparison.better.len(),
        comparison.unchanged,
        comparison.not_judged.len()
    );
    text
}

fn pairs(text: &mut String, heading: &str, pairs: &[Pair]) {
    if !pairs.is_empty() {
        let _ = writeln!(text, "\n{heading}");
    }
    for pair in pairs {
        let _ = write!(text, "  {}: {}, then {}", plain(&pair.what), told(&pair.before), told(&pair.after));
        if let Some(change) = pair.change_percent {
            let _ = write!(text, ", {change:+.1} %");
        }
        text.push('\n');
    }
}

fn singles(text: &mut String, heading: &str, singles: &[Single]) {
    if !singles.is_empty() {
        let _ = writeln!(text, "\n{heading}");
    }
    for single in singles {
        let _ = writeln!(text, "  {}: {}", plain(&single.what), told(&single.fact));
    }
}

fn told(fact: &Fact) -> String {
    match fact {
        Fact::Figure(figure) => figure_text(figure),
        Fact::Verdict { verdict, actual } => format!("{} ({})", plain(verdict), plain(actual)),
        Fact::Text { text } => plain(text),
    }
}

fn figure_text(figure: &Figure) -> String {
    let Figure { value, low, high, unit, .. } = *figure;
    let mut text = number(value);
    if low < high {
        // What is noise below zero is none that can be.
        let _ = write!(text, " ({} to {})", number(low.max(0.0).min(value)), number(high));
    }
    if !unit.is_empty() {
        let _ = write!(text, " {unit}");
    }
    text
}

/// Four digits that count.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        1e15.. => return format!("{value:.3e}"),
        1e3.. => 0,
        1e2.. => 1,
        1e1.. => 2,
        1.0.. => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}
