#![allow(clippy::cast_possible_truncation, reason = "ranks in short vectors")]

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn recorded(samples: &[f64]) -> Recorder {
    let mut recorder = Recorder::new();
    samples.iter().for_each(|&ns| recorder.record(ns));
    recorder
}

/// The nearest rank in the sorted samples.
fn oracle(sorted: &[f64], quantile: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= expected * 0.000_5 + 0.000_5, "{actual} instead of {expected}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn percentiles_are_those_of_the_sorted_samples(
        mut samples in prop::collection::vec(
            prop_oneof![0.0..100.0, 0.0..1e6, 0.0..Recorder::LARGEST_NS],
            1..2_000,
        ),
    ) {
        let summary = recorded(&samples).summary().unwrap();
        let sum: f64 = samples.iter().sum();
        samples.sort_by(f64::total_cmp);

        assert_eq!(summary.count, samples.len() as u64);
        assert_eq!(summary.max_ns, *samples.last().unwrap());
        assert_close(summary.mean_ns, sum / samples.len() as f64);
        assert_close(summary.p50_ns, oracle(&samples, 0.5));
        assert_close(summary.p90_ns, oracle(&samples, 0.9));
        assert_close(summary.p99_ns, oracle(&samples, 0.99));
        assert_close(summary.p999_ns, oracle(&samples, 0.999));
        assert_eq!(summary.p9999_ns, None);
    }
}

#[test]
fn the_last_percentile_needs_a_million_samples() {
    let mut recorder = Recorder::new();
    for sample in 0..SAMPLES_FOR_P9999 - 1 {
        recorder.record(if sample < 150 { 900.0 } else { 40.0 });
    }
    assert_eq!(recorder.summary().unwrap().p9999_ns, None);
    recorder.record(40.0);
    let summary = recorder.summary().unwrap();
    assert_close(summary.p999_ns, 40.0);
    assert_close(summary.p9999_ns.unwrap(), 900.0);
}

#[test]
fn nothing_out_of_range_is_lost_in_silence() {
    let recorder = recorded(&[5.0, -0.001, f64::NAN, f64::NEG_INFINITY, 1e30, f64::INFINITY]);
    assert_eq!((recorder.count(), recorder.rejected()), (3, 3));
    assert_eq!(recorder.summary().unwrap().max_ns, f64::INFINITY);
    assert_close(recorder.quantile_ns(1.0).unwrap(), Recorder::LARGEST_NS);
    assert_close(recorder.quantile_ns(0.3).unwrap(), 5.0);
}

#[test]
fn fractions_and_zero_are_kept() {
    let recorder = recorded(&[0.0, 0.0, 39.25, 39.25, 39.25]);
    assert_eq!(recorder.quantile_ns(0.2), Some(0.0));
    assert_close(recorder.quantile_ns(0.9).unwrap(), 39.25);
    assert_eq!(recorded(&[]).quantile_ns(0.5), None);
    assert_eq!(recorded(&[]).summary(), None);
}

#[test]
fn memory_is_fixed_when_it_is_made() {
    let mut recorder = Recorder::new();
    let buckets = recorder.histogram.distinct_values();
    let values: Vec<f64> = (0..60).map(|power| 2_f64.powi(power)).collect();
    values.iter().for_each(|&ns| recorder.record(ns));
    assert_eq!(recorder.histogram.distinct_values(), buckets);
}
