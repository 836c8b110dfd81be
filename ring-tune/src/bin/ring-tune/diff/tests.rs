use serde_json::{Value, json};

use super::compare::{Comparison, Outcome, judge};
use super::facts::{Fact, Figure};
use super::load::Loaded;

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
    assert_eq!(compare(report(1_000.0, 0.01, 0.0), report(1_080.0, 0.0105, 0.0)), (0, 0, 1));
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
fn names_that_come_twice_are_compared_in_their_order() {
    let report = |values: [f64; 2]| {
        let rows = values.map(|p50| json!({"suite": "s", "case": "c", "p50": p50, "ratio_to_floor": null}));
        loaded(&json!({"host": {}, "rows": rows}))
    };
    let comparison = Comparison::of(&report([1.0, 2.0]), &report([1.0, 4.0]));
    assert_eq!(names(&comparison.worse), ["s/c, p50 (number 2)"]);
    assert_eq!(comparison.unchanged, 1);
}
