//! What two reports of one kind differ in.

use std::collections::BTreeMap;

use serde::Serialize;

use super::facts::{Fact, Figure, Item};
use super::kinds::BETWEEN_RUNS;
use super::load::{Kind, Loaded};

/// The items of two reports, each in one of the lists.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    /// What a reader of JSON knows it by.
    report: &'static str,
    pub(super) kind: Kind,
    pub(super) before: String,
    pub(super) after: String,
    /// In which conditions they differ.
    pub(super) conditions: Vec<Condition>,
    pub(super) worse: Vec<Pair>,
    pub(super) better: Vec<Pair>,
    /// Neither better nor worse.
    pub(super) changed: Vec<Pair>,
    /// Figures that differ and are not judged.
    pub(super) not_judged: Vec<Pair>,
    pub(super) appeared: Vec<Single>,
    pub(super) went: Vec<Single>,
    /// Figures that are judged, and the same but for noise.
    pub(super) same: Vec<Pair>,
    /// How many are the same, figures but for noise.
    pub(super) unchanged: usize,
}

/// A condition that differs; none where one of the two does not tell.
#[derive(Debug, Serialize)]
pub(super) struct Condition {
    pub(super) what: &'static str,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// What both tell about.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub(super) what: String,
    pub(super) before: Fact,
    pub(super) after: Fact,
    /// Of a figure, from before to after; none from 0.
    pub(super) change_percent: Option<f64>,
}

/// What one of them tells about.
#[derive(Debug, Serialize)]
pub(super) struct Single {
    pub(super) what: String,
    pub(super) fact: Fact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Worse,
    Better,
    Changed,
    NotJudged,
    Unchanged,
}

impl Comparison {
    pub(super) fn of(before: &Loaded, after: &Loaded) -> Self {
        let mut comparison = Self {
            report: "ring-tune diff",
            kind: after.kind,
            before: before.name.clone(),
            after: after.name.clone(),
            conditions: conditions(before, after),
            worse: vec![],
            better: vec![],
            changed: vec![],
            not_judged: vec![],
            appeared: vec![],
            went: vec![],
            same: vec![],
            unchanged: 0,
        };
        let mut later: BTreeMap<&str, &Fact> =
            after.items.iter().map(|item| (item.what.as_str(), &item.fact)).collect();
        for item in &before.items {
            match later.remove(item.what.as_str()) {
                Some(fact) => comparison.add(item, fact),
                None => comparison.went.push(Single::of(item)),
            }
        }
        let is_new = |item: &&Item| later.contains_key(item.what.as_str());
        comparison.appeared = after.items.iter().filter(is_new).map(Single::of).collect();
        comparison
    }

    fn add(&mut self, before: &Item, after: &Fact) {
        let outcome = judge(&before.fact, after);
        self.unchanged += usize::from(outcome == Outcome::Unchanged);
        let list = match outcome {
            Outcome::Worse => &mut self.worse,
            Outcome::Better => &mut self.better,
            Outcome::Changed => &mut self.changed,
            Outcome::NotJudged => &mut self.not_judged,
            Outcome::Unchanged if before.fact.is_judged() => &mut self.same,
            Outcome::Unchanged => return,
        };
        list.push(Pair {
            what: before.what.clone(),
            before: before.fact.clone(),
            after: after.clone(),
            change_percent: change_percent(&before.fact, after),
        });
    }
}

impl Single {
    fn of(item: &Item) -> Self {
        Self { what: item.what.clone(), fact: item.fact.clone() }
    }
}

fn conditions(before: &Loaded, after: &Loaded) -> Vec<Condition> {
    let told = |loaded: &Loaded, what| {
        loaded.conditions.iter().find(|(name, _)| *name == what).map(|(_, text)| text.clone())
    };
    let mut names: Vec<_> =
        before.conditions.iter().chain(&after.conditions).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let both = names.into_iter().map(|what| (what, told(before, what), told(after, what)));
    both.filter(|(_, before, after)| before != after)
        .map(|(what, before, after)| Condition { what, before, after })
        .collect()
}

pub(super) fn judge(before: &Fact, after: &Fact) -> Outcome {
    match (before, after) {
        (Fact::Figure(before), Fact::Figure(after)) => judge_figures(before, after),
        (Fact::Verdict { verdict: old, .. }, Fact::Verdict { verdict: new, .. }) if old != new => {
            match (badness(old), badness(new)) {
                (Some(old), Some(new)) if new > old => Outcome::Worse,
                (Some(old), Some(new)) if new < old => Outcome::Better,
                _ => Outcome::Changed,
            }
        }
        _ if before == after => Outcome::Unchanged,
        _ => Outcome::Changed,
    }
}

/// None where the row could not tell.
fn badness(verdict: &str) -> Option<u8> {
    match verdict {
        "FAIL" => Some(2),
        "WARN" => Some(1),
        "OK" | "INFO" => Some(0),
        _ => None,
    }
}

fn judge_figures(before: &Figure, after: &Figure) -> Outcome {
    let noise = before.noise.zip(after.noise).map(|(one, other)| one.max(other));
    let largest = before.value.abs().max(after.value.abs());
    let is_large = (after.value - before.value).abs() > noise.unwrap_or(BETWEEN_RUNS) * largest;
    if noise.is_none() {
        return if is_large { Outcome::NotJudged } else { Outcome::Unchanged };
    }
    if !is_large || !before.excludes(after.value) || !after.excludes(before.value) {
        Outcome::Unchanged
    } else if after.value > before.value {
        Outcome::Worse
    } else {
        Outcome::Better
    }
}

fn change_percent(before: &Fact, after: &Fact) -> Option<f64> {
    match (before, after) {
        (Fact::Figure(before), Fact::Figure(after)) if before.value != 0.0 => {
            Some((after.value - before.value) / before.value.abs() * 100.0)
                .filter(|change| change.is_finite())
        }
        _ => None,
    }
}
