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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_merged_by_bytes_is_as_if_recorded_here(
        one in prop::collection::vec(0.0..1e12, 0..200),
        other in prop::collection::vec(0.0..1e12, 0..200),
    ) {
        let mut merged = recorded(&one);
        merged.merge(&Recorder::from_bytes(&recorded(&other).to_bytes()).unwrap());
        let both: Vec<f64> = one.into_iter().chain(other).collect();
        let expected = recorded(&both);
        prop_assert_eq!(merged.count(), expected.count());
        for quantile in [0.0, 0.5, 0.9, 0.99, 1.0] {
            prop_assert_eq!(merged.quantile_ns(quantile), expected.quantile_ns(quantile));
        }
        if let (Some(merged), Some(expected)) = (merged.summary(), expected.summary()) {
            assert_close(merged.mean_ns, expected.mean_ns);
            prop_assert_eq!(merged.max_ns, expected.max_ns);
        }
    }

    #[test]
    fn any_bytes_are_a_recorder_or_an_error(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        place in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        if whole {
            let noise = bytes;
            bytes = recorded(&[1.0, 2.0, 70.0]).to_bytes();
            let at = place.index(bytes.len());
            bytes[at] ^= noise.first().copied().unwrap_or(1);
        }
        if let Ok(mut recorder) = Recorder::from_bytes(&bytes) {
            let _ = recorder.summary();
            recorder.merge(&recorder.clone());
            recorder.record(-1.0);
            let _ = recorder.summary();
            prop_assert!(Recorder::from_bytes(&recorder.to_bytes()).is_ok());
        }
    }
}

/// As many samples as a recorder may hold, from as many peers as like to send them.
#[test]
fn counts_end_where_percentiles_are_still_right() {
    let mut many = recorded(&[10.0]);
    many.histogram.record_n(10_000, MOST_SAMPLES - 1).unwrap();
    let bytes = many.to_bytes();
    let mut merged = recorded(&[5.0, 70.0]);
    for _ in 0..3 {
        merged.merge(&Recorder::from_bytes(&bytes).unwrap());
        assert_close(merged.quantile_ns(1.0).unwrap(), 70.0);
    }
    assert_eq!((merged.count(), merged.rejected()), (2, 3 * MOST_SAMPLES));
    let mut none = Recorder::new();
    none.merge(&many);
    assert_close(none.quantile_ns(1.0).unwrap(), 10.0);
    none.merge(&none.clone());
    none.rejected = u64::MAX;
    none.record(-1.0);
    none.merge(&none.clone());
    assert_eq!((none.count(), none.rejected()), (MOST_SAMPLES, u64::MAX));
    many.record(3.0);
    assert_eq!(Recorder::from_bytes(&many.to_bytes()).unwrap_err(), crate::Error::RecorderBytes);
}

#[test]
fn bytes_that_hold_no_recorder_are_refused() {
    let good = recorded(&[1.0, 2.0]).to_bytes();
    assert!(Recorder::from_bytes(&good).is_ok());
    for bad in [&good[..good.len() - 1], &good[..31], &good[1..], b""] {
        assert_eq!(Recorder::from_bytes(bad).unwrap_err(), crate::Error::RecorderBytes);
    }
    let with = |at: usize, bytes: [u8; 8]| {
        let mut changed = good.clone();
        changed[at..at + 8].copy_from_slice(&bytes);
        Recorder::from_bytes(&changed)
    };
    assert!(with(16, f64::NAN.to_le_bytes()).is_err());
    assert!(with(24, (-1.0_f64).to_le_bytes()).is_err());
    assert!(with(32, u64::MAX.to_le_bytes()).is_err(), "beyond the range");
    assert!(with(40, 0_u64.to_le_bytes()).is_err(), "counts nothing");
    assert!(with(40, u64::MAX.to_le_bytes()).is_err(), "more than can be counted");
    assert!(with(48, 1_u64.to_le_bytes()).is_err(), "not in order");
}
