use measure::usage::{Usage, Used};

use super::*;
use crate::bench::rounds::Tally;
use crate::bench::suites::{Form, Suite};

const SCALE: Scale = Scale { rounds: 3, quick: true, compare: false, at_most: None };

/// An outcome of three rounds: `of` says what a case shows in each, the latency and the CPU time of a message.
fn outcome(plan: &Plan, of: impl Fn(&str) -> [(f64, u64); 3]) -> Outcome {
    let tally = |name: &str| {
        let receiver = |cpu_ns| Usage { cpu_ns, ..Usage::default() };
        let rounds = of(name);
        let used = rounds.map(|(_, cpu_ns)| Used {
            messages: 10,
            receiver: receiver(10 * cpu_ns),
            ..Used::default()
        });
        Tally { figures: rounds.map(|(ns, _)| ns).into(), used: used.into(), ..Tally::default() }
    };
    let tallies = plan.cases.iter().map(|case| tally(&case.name)).collect();
    Outcome { tallies, rounds: 3, ..Outcome::default() }
}

fn find(found: &[Comparison], case: &str) -> Comparison {
    found.iter().find(|comparison| comparison.case == case).unwrap().clone()
}

#[test]
fn ratios_are_formed_in_each_round() {
    let plan = Suite::Notify.plan(SCALE, true);
    let outcome = outcome(&plan, |case| match case {
        "bare-futex/1ms" => [(10.0, 0), (20.0, 0), (40.0, 0)],
        "futex/1ms" => [(11.0, 300), (21.0, 400), (80.0, 500)],
        "eventfd/1ms" => [(5.0, 0), (40.0, 0), (40.0, 0)],
        // In one round the one is better, in the others the other.
        "doorbell/10us" => [(100.0, 0), (400.0, 0), (100.0, 0)],
        "futex/10us" => [(200.0, 0), (200.0, 0), (200.0, 0)],
        "adaptive/10us" => [(110.0, 0), (210.0, 0), (150.0, 0)],
        "doorbell/1ms" => [(0.0, 1_000), (0.0, 1_000), (0.0, 100)],
        "adaptive/1ms" => [(0.0, 150), (0.0, 400), (0.0, 110)],
        _ => [(1.0, 1), (1.0, 1), (1.0, 1)],
    });
    let found = comparisons(&plan, &outcome);
    let futex = find(&found, "futex/1ms");
    assert_eq!((futex.with.as_str(), futex.of, futex.form), ("bare-futex/1ms", "p50", Form::Ratio));
    assert_eq!((futex.median, futex.min, futex.max), (1.1, 1.05, 2.0));
    let eventfd = find(&found, "eventfd/1ms");
    assert_eq!((eventfd.median, eventfd.min, eventfd.max), (1.0, 0.5, 2.0));
    let busy = find(&found, "adaptive/10us");
    assert_eq!((busy.of, busy.median, busy.min, busy.max), ("p50", 1.1, 1.05, 1.5));
    let idle = find(&found, "adaptive/1ms");
    assert_eq!((idle.of, idle.median, idle.min, idle.max), ("CPU", 1.0, 0.5, 1.1));
    let cases: Vec<&str> = found.iter().map(|comparison| comparison.case.as_str()).collect();
    assert_eq!(
        cases,
        [
            "futex/1ms",
            "eventfd/1ms",
            "adaptive/0us",
            "adaptive/1us",
            "adaptive/10us",
            "adaptive/1ms",
            "adaptive/10ms"
        ]
    );
    assert_eq!(futex.to_string(), "futex/1ms over bare-futex/1ms, p50: 1.10 [1.05–2.00]\n");
    let json = serde_json::to_value(&futex).unwrap();
    assert_eq!((json["form"].as_str(), json["median"].as_f64()), (Some("ratio"), Some(1.1)));
}

#[test]
fn those_who_fall_behind_are_named() {
    let plan = Suite::Notify.plan(SCALE, true);
    let outcome = outcome(&plan, |case| match case {
        "pipe/1us" | "unix/1us" => [(1_001.0, 1); 3],
        "pipe/10us" => [(10_000.0, 1); 3],
        _ => [(1.0, 1); 3],
    });
    assert_eq!(
        reading(&plan, &outcome),
        "At gaps of 1us these fall behind, and their latency is that of a queue: pipe, unix.\n"
    );
}

#[test]
fn without_rounds_there_is_nothing_to_compare() {
    let plan = Suite::Notify.plan(SCALE, true);
    let outcome = Outcome { tallies: vec![Tally::default(); plan.cases.len()], ..Outcome::default() };
    assert_eq!(comparisons(&plan, &outcome), []);
    assert_eq!(reading(&plan, &outcome), "");
}
