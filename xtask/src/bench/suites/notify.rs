//! One way to a receiver that waits: how late a message is, and what waiting costs.

#[cfg(test)]
mod tests;

use super::{Comparison, costs, figure, figures};
use crate::bench::arms::{Channel, Spec, Way};
use crate::bench::plan::{Plan, Scale};
use crate::bench::rounds::Outcome;

/// The ways of waiting, in the order of the table.
pub(crate) const STRATEGIES: [(&str, Way); 7] = [
    ("doorbell", Way::Doorbell),
    ("futex", Way::Futex),
    ("eventfd", Way::Eventfd),
    ("adaptive", Way::Adaptive),
    ("bare-futex", Way::BareFutex),
    ("pipe", Way::Kernel(Channel::Pipe)),
    ("unix", Way::Kernel(Channel::Unix)),
];

/// From one message to the next, in nanoseconds.
pub(crate) const GAPS: [(&str, u64); 6] = [
    ("0us", 0),
    ("1us", 1_000),
    ("10us", 10_000),
    ("100us", 100_000),
    ("1ms", 1_000_000),
    ("10ms", 10_000_000),
];

/// Where a ring is busy: who learns should never sleep.
const BUSY: [&str; 3] = ["0us", "1us", "10us"];

/// Where it is idle: who learns should soon sleep.
const IDLE: [&str; 2] = ["1ms", "10ms"];

pub(super) fn plan(scale: Scale, pair: bool) -> Plan {
    let mut plan = Plan::new("notify", scale, pair);
    for (strategy, way) in STRATEGIES {
        for (gap, gap_ns) in GAPS {
            plan.paced(&format!("{strategy}/{gap}"), Spec::Notify(way), gap_ns);
        }
    }
    plan
}

/// What it costs to be woken, and whether learning is as good as knowing.
pub(super) fn comparisons(plan: &Plan, outcome: &Outcome) -> Vec<Comparison> {
    let of = |strategy: &str, gap: &str| figures(plan, outcome, &format!("{strategy}/{gap}")).to_vec();
    let cpu = |strategy: &str, gap: &str| costs(plan, outcome, &format!("{strategy}/{gap}"));
    let woken = ["futex", "eventfd"].into_iter().filter_map(|strategy| {
        let case = format!("{strategy}/1ms");
        let cases = [&case, "bare-futex/1ms"];
        Comparison::ratio(plan.suite, cases, "p50", &of(strategy, "1ms"), &of("bare-futex", "1ms"))
    });
    let learned = |gap: &str, what, values: &dyn Fn(&str, &str) -> Vec<f64>| {
        let better = smaller(&values("doorbell", gap), &values("futex", gap));
        let (case, with) =
            (format!("adaptive/{gap}"), format!("the better of doorbell/{gap} and futex/{gap}"));
        Comparison::ratio(plan.suite, [&case, &with], what, &values("adaptive", gap), &better)
    };
    let busy = BUSY.into_iter().filter_map(|gap| learned(gap, "p50", &of));
    let idle = IDLE.into_iter().filter_map(|gap| learned(gap, "CPU", &cpu));
    woken.chain(busy).chain(idle).collect()
}

/// The smaller of each two.
fn smaller(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one.min(*other)).collect()
}

/// Which cases could not keep up.
pub(super) fn reading(plan: &Plan, outcome: &Outcome) -> String {
    let mut text = String::new();
    for (gap, gap_ns) in GAPS.into_iter().filter(|&(_, gap_ns)| gap_ns > 0) {
        let is_late = |strategy: &&str| {
            figure(plan, outcome, &format!("{strategy}/{gap}")).is_some_and(|ns| ns > gap_ns as f64)
        };
        let late: Vec<&str> = STRATEGIES.into_iter().map(|(strategy, _)| strategy).filter(is_late).collect();
        if !late.is_empty() {
            text += &format!(
                "At gaps of {gap} these fall behind, and their latency is that of a queue: {}.\n",
                late.join(", ")
            );
        }
    }
    text
}
