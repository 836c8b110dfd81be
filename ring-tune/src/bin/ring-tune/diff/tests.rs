use serde_json::{Value, json};

use super::compare::{Comparison, Outcome, judge};
use super::facts::{Fact, Figure};
use super::load::Loaded;
use super::runs;

fn loaded(report: &Value) -> Loaded {
    Loaded::parse("report", report.to_string().as_bytes()).unwrap()
}

fn names(pairs: &[super::compare::Pair]) -> Vec<&str> {
    pairs.iter().map(|pair| pair.what.as_str()).collect()
}

#[test]
fn figures_are_noise_until_both_spreads_and_the_share_are_left() {
    let figure = |value, low, high| Fact::Figure(Figure::spread(value, low, high, "ns", 0.05));
    let outcome = |before, after| judge(&before, &after);
    assert_eq!(outcome(figure(100.0, 99.0, 101.0), figure(104.0, 103.0, 105.0)), Outcome::Unchanged);
    assert_eq!(outcome(figure(100.0, 99.0, 101.0), figure(110.0, 109.0, 111.0)), Outcome::Worse);
    assert_eq!(outcome(figure(110.0, 109.0, 111.0), figure(100.0, 99.0, 101.0)), Outcome::Better);
    assert_eq!(outcome(figure(100.0, 50.0, 150.0), figure(110.0, 109.0, 111.0)), Outcome::Unchanged);
    assert_eq!(outcome(figure(100.0, 99.0, 101.0), figure(110.0, 60.0, 200.0)), Outcome::Unchanged);
    assert_eq!(outcome(figure(0.0, 0.0, 0.0), figure(1.0, 1.0, 1.0)), Outcome::Worse);
    let shown = |value| Fact::Figure(Figure::shown(value, "ns"));
    assert_eq!(outcome(shown(1.0), shown(9.0)), Outcome::NotJudged);
    assert_eq!(outcome(shown(1.0), shown(1.04)), Outcome::Unchanged);
    assert_eq!(outcome(shown(1.0), shown(1.0)), Outcome::Unchanged);
    assert_eq!(outcome(shown(f64::MIN), figure(f64::MAX, 0.0, f64::MAX)), Outcome::NotJudged);
}

#[test]
fn verdicts_are_ordered_where_they_can_be() {
    let fact = |verdict: &str| Fact::Verdict { verdict: verdict.into(), actual: "1".into() };
    for (before, after, expected) in [
        ("OK", "FAIL", Outcome::Worse),
        ("OK", "WARN", Outcome::Worse),
        ("WARN", "FAIL", Outcome::Worse),
        ("FAIL", "OK", Outcome::Better),
        ("FAIL", "INFO", Outcome::Better),
        ("OK", "INFO", Outcome::Changed),
        ("OK", "UNKNOWN", Outcome::Changed),
        ("SKIP", "FAIL", Outcome::Changed),
        ("SKIP", "SKIP", Outcome::Unchanged),
    ] {
        assert_eq!(judge(&fact(before), &fact(after)), expected, "{before} to {after}");
    }
}

#[test]
fn gaps_are_noise_within_what_the_tenths_of_the_time_had() {
    let report = |gaps: f64, lost_share: f64, spread: f64| {
        let cpu = json!({"cpu": 1, "seconds": 10.0, "gaps": gaps, "lost_share": lost_share, "max_ns": gaps,
            "lost_share_min": lost_share * (1.0 - spread), "lost_share_max": lost_share * (1.0 + spread),
            "gaps_per_second_min": gaps / 10.0 * (1.0 - spread),
            "gaps_per_second_max": gaps / 10.0 * (1.0 + spread)});
        loaded(&json!({"report": "ring-tune jitter", "cpus": [cpu]}))
    };
    let compare = |before, after| {
        let comparison = Comparison::of(&before, &after);
        (comparison.worse.len(), comparison.better.len(), comparison.not_judged.len())
    };
    assert_eq!(compare(report(1_000.0, 0.01, 0.0), report(1_080.0, 0.0105, 0.0)), (0, 0, 1), "the maximum");
    assert_eq!(compare(report(1_000.0, 0.01, 0.2), report(2_000.0, 0.02, 0.2)), (2, 0, 1));
    assert_eq!(compare(report(1_000.0, 0.01, 0.2), report(2_000.0, 0.02, 0.6)), (0, 0, 1));
    assert_eq!(compare(report(2_000.0, 0.02, 0.5), report(0.0, 0.0, 0.0)), (0, 2, 1));
    assert_eq!(compare(report(0.0, 0.0, 0.0), report(3.0, 0.01, 1.0)), (0, 0, 1), "three gaps tell nothing");
}

#[test]
fn a_measurement_too_short_for_a_spread_is_not_judged_by_it() {
    let cpu = |gaps: u64| json!({"cpu": 1, "seconds": 1.0, "gaps": gaps, "lost_share": 0.0});
    let report = |gaps| loaded(&json!({"report": "ring-tune jitter", "cpus": [cpu(gaps)]}));
    let comparison = Comparison::of(&report(1), &report(100_000));
    assert_eq!(names(&comparison.not_judged), ["gaps on CPU 1"]);
    assert!(comparison.worse.is_empty());
}

#[test]
fn few_rounds_tell_nothing() {
    let bench = |ratio: f64, rounds: &Value| {
        let row = json!({"suite": "s", "case": "c", "p50": 1.0, "ratio_to_floor": ratio, "ratio_min": ratio,
            "ratio_max": ratio, "rounds": rounds});
        loaded(&json!({"host": {}, "rows": [row]}))
    };
    let topology = |p50: f64, rounds: &Value| {
        let pair = json!({"from": 0, "to": 1, "one_way_ns": {"p50": p50, "min": p50, "max": p50}});
        loaded(&json!({"report": "ring-tune topology", "rounds": rounds, "pairs": [pair]}))
    };
    for (rounds, is_judged) in [(json!(1), false), (json!(4), false), (json!(null), false), (json!(5), true)]
    {
        let five = json!(5);
        for (before, after) in [(&five, &rounds), (&rounds, &five)] {
            let comparisons = [
                Comparison::of(&bench(1.0, before), &bench(9.0, after)),
                Comparison::of(&topology(1.0, before), &topology(9.0, after)),
            ];
            for comparison in comparisons {
                let counts = (comparison.worse.len(), comparison.not_judged.len());
                assert_eq!(counts, if is_judged { (1, 0) } else { (0, 1) }, "{before} and {after} rounds");
            }
        }
    }
}

#[test]
fn a_thread_that_was_moved_says_nothing_of_its_cpu() {
    let report = |gaps: u64, has_stayed: bool| {
        let cpu = json!({"cpu": 1, "seconds": 1.0, "gaps": gaps, "lost_share": 0.0, "has_stayed": has_stayed,
            "lost_share_min": 0.0, "lost_share_max": 0.0, "gaps_per_second_min": gaps, "gaps_per_second_max": gaps});
        loaded(&json!({"report": "ring-tune jitter", "cpus": [cpu]}))
    };
    assert_eq!(names(&Comparison::of(&report(1, true), &report(9, true)).worse), ["gaps on CPU 1"]);
    assert_eq!(names(&Comparison::of(&report(1, true), &report(9, false)).not_judged), ["gaps on CPU 1"]);
}

#[test]
fn names_that_come_twice_are_compared_in_their_order() {
    let report = |values: [f64; 2]| {
        let rows =
            values.map(|ratio| json!({"suite": "s", "case": "c", "ratio_to_floor": ratio, "rounds": 7}));
        loaded(&json!({"host": {}, "rows": rows}))
    };
    let comparison = Comparison::of(&report([1.0, 2.0]), &report([1.0, 4.0]));
    assert_eq!(names(&comparison.worse), ["s/c (number 2)"]);
    assert_eq!(comparison.unchanged, 1);
}

/// A loop that takes half of the CPU keeps the thread from half of the gaps.
#[test]
fn a_thread_that_runs_less_is_not_better_for_its_fewer_gaps() {
    let report = |rate: f64, lost: f64| {
        let cpu = json!({"cpu": 1, "seconds": 10.0, "gaps": rate * 10.0, "lost_share": lost,
            "lost_share_min": lost * 0.95, "lost_share_max": lost * 1.05,
            "gaps_per_second_min": rate * 0.95, "gaps_per_second_max": rate * 1.05});
        loaded(&json!({"report": "ring-tune jitter", "cpus": [cpu]}))
    };
    let comparison = Comparison::of(&report(909.0, 0.35), &report(540.0, 0.65));
    assert_eq!(names(&comparison.worse), ["time lost on CPU 1"]);
    assert!(comparison.better.is_empty(), "{comparison:?}");
    assert_eq!(names(&comparison.same), ["gaps on CPU 1"]);
}

#[test]
fn what_several_runs_differ_by_is_noise() {
    let report = |ns: f64| loaded(&json!({"report": "ring-tune clock", "stamp_cost_ns": ns}));
    let compare = |before: &[f64], after: &[f64]| {
        let [before, after] =
            [before, after].map(|side| runs::together(side.iter().map(|&ns| report(ns)).collect()).unwrap());
        let comparison = Comparison::of(&before, &after);
        (comparison.worse.len(), comparison.better.len(), comparison.same.len())
    };
    assert_eq!(compare(&[20.0], &[24.0]), (0, 0, 1), "one run each cannot tell");
    assert_eq!(compare(&[20.0], &[30.0]), (1, 0, 0));
    assert_eq!(compare(&[20.0, 20.4, 20.2], &[22.0, 22.4, 22.2]), (1, 0, 0));
    assert_eq!(compare(&[20.0, 23.0, 20.2], &[22.0, 22.4, 22.2]), (0, 0, 1), "one run before was as slow");
    assert_eq!(compare(&[22.0, 22.4, 22.2], &[20.0, 20.4, 20.2]), (0, 1, 0));
}

#[test]
fn runs_that_disagree_in_a_verdict_or_a_condition_say_so() {
    let report = |kernel: &str, verdict: &str, actual: &str| {
        let finding = json!({"id": "swap", "verdict": verdict, "actual": actual});
        loaded(&json!({"report": "ring-tune check", "kernel": kernel, "findings": [finding]}))
    };
    let one = |runs| runs::together(runs).unwrap();
    let after = report("6.1", "FAIL", "60");
    let agreed = one(vec![report("6.1", "OK", "0"), report("6.1", "OK", "1")]);
    assert_eq!(names(&Comparison::of(&agreed, &after).worse), ["swap"]);
    let varies = one(vec![report("6.1", "OK", "0"), report("6.2", "WARN", "1")]);
    let comparison = Comparison::of(&varies, &after);
    assert_eq!(names(&comparison.changed), ["swap"]);
    assert_eq!(comparison.conditions.len(), 1);
    let empty = loaded(&json!({"report": "ring-tune check", "findings": []}));
    let comparison = Comparison::of(&one(vec![report("6.1", "OK", "0"), empty]), &after);
    assert_eq!((comparison.appeared.len(), comparison.went.len()), (1, 0));
}
