//! Several reports of one side as one.

use std::collections::BTreeMap;

use super::facts::{Fact, Figure, Item};
use super::kinds::BETWEEN_RUNS;
use super::load::Loaded;

/// What runs under the same conditions tell together; one is told as it is.
pub(super) fn together(mut runs: Vec<Loaded>) -> Option<Loaded> {
    let mut first = if runs.len() < 2 { return runs.pop() } else { runs.remove(0) };
    let mut others: BTreeMap<String, Vec<Fact>> = BTreeMap::new();
    let count = runs.len();
    for run in runs {
        first.name = format!("{}, {}", first.name, run.name);
        for (what, text) in &mut first.conditions {
            let told = run.conditions.iter().find(|(name, _)| name == what);
            if told.is_none_or(|(_, other)| other != text) {
                *text = "not the same in each run".into();
            }
        }
        for Item { what, fact } in run.items {
            others.entry(what).or_default().push(fact);
        }
    }
    // What one of them lacks cannot be compared with the other side, which has all of its own.
    first.items.retain(|item| others.get(&item.what).is_some_and(|facts| facts.len() == count));
    for item in &mut first.items {
        let facts = others.remove(&item.what).unwrap_or_default();
        item.fact = one_of(&item.fact, &facts);
    }
    Some(first)
}

/// The median of figures, with all that any run calls its noise and all medians in its own; a verdict if all have it.
fn one_of(first: &Fact, others: &[Fact]) -> Fact {
    let all = || core::iter::once(first).chain(others);
    let figures: Vec<Figure> =
        all().filter_map(|fact| if let Fact::Figure(figure) = fact { Some(*figure) } else { None }).collect();
    if let (Fact::Figure(figure), true) = (first, figures.len() == others.len() + 1) {
        return Fact::Figure(median(*figure, &figures));
    }
    let verdicts: Vec<&str> = all().filter_map(Fact::verdict).collect();
    if others.iter().all(|other| other == first) || (verdicts.len() > others.len() && is_one(&verdicts)) {
        return first.clone();
    }
    let told: Vec<String> = all().map(Fact::short).collect();
    Fact::Text { text: told.join(", ") }
}

fn is_one(verdicts: &[&str]) -> bool {
    verdicts.windows(2).all(|pair| pair[0] == pair[1])
}

fn median(first: Figure, all: &[Figure]) -> Figure {
    let mut values: Vec<f64> = all.iter().map(|figure| figure.value).collect();
    values.sort_by(f64::total_cmp);
    // Of an even number the one below the middle: it was measured.
    let value = values.get((values.len() - 1) / 2).copied().unwrap_or(first.value);
    let are_judged = all.iter().all(|figure| figure.noise.is_some());
    Figure {
        value,
        low: all.iter().map(|figure| figure.low).fold(value, f64::min),
        high: all.iter().map(|figure| figure.high).fold(value, f64::max),
        noise: first.noise.filter(|_| are_judged).map(|noise| noise.min(BETWEEN_RUNS)),
        ..first
    }
}
