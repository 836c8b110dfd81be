//! One-way time of a message in a closed loop.

use measure::threads::{Queue, Threads};

use super::{RIVALS, compared, figure, ratio, through_shm};
use crate::bench::arms::{Change, Channel, Ring, Spec};
use crate::bench::memory::Kind;
use crate::bench::plan::{FLOOR_LINES, Plan, Scale};
use crate::bench::rounds::{Outcome, Spread};

/// Depths of our ring beside the 16 that goes without saying.
const DEPTHS: [usize; 3] = [8, 32, 1024];

/// Rings through ring-shm, each with its own segment: of 2 MiB pages these take four of the pool.
const SHM: [(&str, u64); 2] = [("shm-spsc", 16), ("shm-spsc/1024", 1024)];

pub(super) fn plan(scale: Scale, pair: bool) -> Plan {
    let mut plan = Plan::new("pingpong", scale, pair);
    let ring = |depth: usize| Spec::Spsc { kind: Kind::Usual, depth: depth as u64, change: Change::None };
    plan.floor_case("floor", Kind::Usual, FLOOR_LINES);
    for lines in DEPTHS {
        plan.floor_case(&format!("floor/{lines}"), Kind::Usual, lines);
    }
    plan.round_trips("same-line", Spec::SameLine { kind: Kind::Usual });
    plan.round_trips("spsc", ring(FLOOR_LINES));
    for depth in DEPTHS {
        plan.round_trips(&format!("spsc/{depth}"), ring(depth));
    }
    for (name, depth) in SHM {
        plan.round_trips(name, Spec::Shm { depth });
    }
    for (name, other) in [("bytes", Ring::Bytes), ("mpmc", Ring::Mpmc), ("broadcast", Ring::Broadcast)] {
        plan.round_trips(name, Spec::Other { ring: other, depth: FLOOR_LINES as u64 });
    }
    for (name, channel) in [("pipe", Channel::Pipe), ("unix", Channel::Unix), ("eventfd", Channel::Eventfd)] {
        plan.round_trips(name, Spec::Kernel(channel));
    }
    if scale.compare {
        for (name, queue) in core::iter::once(("spsc-threads", Queue::Spsc)).chain(RIVALS) {
            plan.round_trips(name, Spec::Threads(Threads::Pair { queue, depth: FLOOR_LINES }));
        }
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
    text += &through_shm(plan, outcome, ["spsc", "spsc/1024"]);
    text += &compared(plan, outcome, "spsc-threads", RIVALS.map(|(name, _)| name));
    for (case, what) in [("pipe", "pipe"), ("unix", "Unix socket"), ("eventfd", "ring that an eventfd wakes")]
    {
        if let (Some(over), Some(ns)) = (ratio(plan, outcome, case, "spsc"), of(case)) {
            text += &format!("A {what} takes {ns:.0} ns, {:.0} times as long as the ring.\n", over.median);
        }
    }
    text
}

/// What the floors are made of.
fn floors(plan: &Plan, outcome: &Outcome) -> String {
    let mut rotating = Vec::new();
    for (series, figures) in plan.series.iter().zip(&outcome.series) {
        if let (Spec::Rotating { lines, .. }, Some(spread)) = (plan.specs[series.arm], Spread::of(figures)) {
            rotating.push((lines, format!("{lines}: {:.1}", spread.median)));
        }
    }
    if rotating.is_empty() {
        return String::new();
    }
    rotating.sort_by_key(|&(lines, _)| lines);
    let times: Vec<String> = rotating.into_iter().map(|(_, time)| time).collect();
    format!(
        "A bare word over so many lines each way in turn takes, in ns: {}.\n\
         The faster of one line and as many as a ring has slots is the floor of that ring.\n",
        times.join(", ")
    )
}
