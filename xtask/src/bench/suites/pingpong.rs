//! One-way time of a message in a closed loop.

use super::{figure, ratio};
use crate::bench::arms::{Change, Channel, Spec};
use crate::bench::memory::Kind;
use crate::bench::plan::{FLOOR_LINES, Plan, Scale};
use crate::bench::rounds::{Outcome, Spread};

/// Depths of our ring beside the 16 that goes without saying.
const DEPTHS: [usize; 3] = [8, 32, 1024];

pub(super) fn plan(scale: Scale, pair: bool) -> Plan {
    let mut plan = Plan::new("pingpong", scale, pair);
    let ring = |depth: usize| Spec::Spsc { kind: Kind::Usual, depth: depth as u64, change: Change::None };
    plan.floor_case("floor", Kind::Usual, FLOOR_LINES);
    for lines in DEPTHS {
        plan.floor_case(&format!("floor/{lines}"), Kind::Usual, lines);
    }
    plan.round_trips("spsc", ring(FLOOR_LINES), Kind::Usual, FLOOR_LINES);
    for depth in DEPTHS {
        plan.round_trips(&format!("spsc/{depth}"), ring(depth), Kind::Usual, depth);
    }
    for (name, channel) in [("pipe", Channel::Pipe), ("unix", Channel::Unix), ("eventfd", Channel::Eventfd)] {
        plan.round_trips(name, Spec::Kernel(channel), Kind::Usual, FLOOR_LINES);
    }
    plan
}

pub(super) fn reading(plan: &Plan, outcome: &Outcome) -> String {
    let of = |case| figure(plan, outcome, case);
    let mut text = floors(plan, outcome);
    if let (Some(spsc), Some(floor), Some(over)) =
        (of("spsc"), of("floor"), ratio(plan, outcome, "spsc", "floor"))
    {
        text += &format!(
            "A message through the ring takes {spsc:.1} ns one way, {over} times the {floor:.1} ns that a bare word\n\
             takes between these cores: what is above 1 is the protocol, the rest is the hardware.\n"
        );
    }
    for (case, what) in [("pipe", "pipe"), ("unix", "Unix socket"), ("eventfd", "ring that an eventfd wakes")]
    {
        if let (Some(over), Some(ns)) = (ratio(plan, outcome, case, "spsc"), of(case)) {
            text += &format!("A {what} takes {ns:.0} ns, {:.0} times as long as the ring.\n", over.median);
        }
    }
    text
}

/// What the floors are made of: each is the faster of the same line and its own number of lines.
fn floors(plan: &Plan, outcome: &Outcome) -> String {
    let mut same = None;
    let mut rotating = Vec::new();
    for (series, figures) in plan.series.iter().zip(&outcome.series) {
        let Some(spread) = Spread::of(figures) else { continue };
        match plan.specs[series.arm] {
            Spec::SameLine { .. } => same = Some(spread.median),
            Spec::Rotating { lines, .. } => rotating.push((lines, spread.median)),
            _ => {}
        }
    }
    let Some(same) = same else { return String::new() };
    rotating.sort_by_key(|&(lines, _)| lines);
    let (lines, times): (Vec<String>, Vec<String>) =
        rotating.iter().map(|(lines, ns)| (lines.to_string(), format!("{ns:.1}"))).unzip();
    format!(
        "A bare word takes {same:.1} ns over one line for both ways; over {} lines each way in turn {} ns.\n\
         The faster of the two is the floor of a ring with as many slots.\n",
        lines.join(", "),
        times.join(", ")
    )
}
