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

/// What the floors are made of: each is the faster of two.
fn floors(plan: &Plan, outcome: &Outcome) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (series, figures) in plan.series.iter().zip(&outcome.series) {
        let name = match plan.specs[series.arm] {
            Spec::SameLine { .. } => "over the same line".into(),
            Spec::Rotating { lines, .. } => format!("over {lines} lines in turn"),
            _ => continue,
        };
        parts.extend(Spread::of(figures).map(|spread| format!("{:.1} {name}", spread.median)));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(
        "A bare word takes, in ns: {}.\nA floor is the faster of the same line and its own number of lines.\n",
        parts.join(", ")
    )
}
