use ring_tune::{Recorder, Unread};

use super::*;

/// Two ways with these one-way times in ns.
fn ways(there_ns: &[f64], back_ns: &[f64]) -> [OneWay; 2] {
    let way = |from, to, times_ns: &[f64]| {
        let mut recorder = Recorder::new();
        times_ns.iter().for_each(|&ns| recorder.record(ns));
        OneWay::of(from, to, &recorder)
    };
    [way(0, 1, there_ns), way(1, 0, back_ns)]
}

#[test]
fn one_stamp_that_came_before_it_was_sent_decides() -> Result<(), Unread> {
    let topology = Topology::read(&Tree::live())?;
    let monotonic = Clock::monotonic();
    let verdict = |clock: Clock, clocksource: Option<&str>, ways| {
        let report = Report::of(clock, clocksource.map(Into::into), Some(ways));
        (report.is_usable_one_way, text(&report, &topology))
    };
    let (is_usable, told) = verdict(monotonic, Some("tsc"), ways(&[50.0, 60.0], &[50.0, 0.0]));
    assert!(is_usable && told.contains("can be used for one-way times"), "{told}");
    for ways in [ways(&[90.0, -0.5], &[50.0]), ways(&[90.0], &[-50.0, -1.0]), ways(&[90.0], &[-50.0])] {
        let negative: u64 = ways.iter().map(|way| way.negative).sum();
        let (is_usable, told) = verdict(monotonic, Some("tsc"), ways);
        assert!(
            !is_usable && told.contains(&format!("{negative} stamps came before they were sent")),
            "{told}"
        );
    }
    let own = Clock::new();
    for clocksource in [None, Some("hpet"), Some("kvm-clock")] {
        let (is_usable, told) = verdict(own, clocksource, ways(&[50.0], &[50.0]));
        assert_eq!(is_usable, own.source() != Source::Tsc);
        assert!(is_usable || told.contains("does not read its own time from the TSC: "), "{told}");
    }
    Ok(())
}

#[test]
fn negative_stamps_are_counted_among_all_and_left_out_of_the_figures() {
    let [there, back] = ways(&[-3.0, 40.0, -7.0], &[-1.0]);
    assert_eq!((there.samples, there.negative), (3, 2));
    assert!(there.to_string().contains("2 of 3 negative; p50 40.0"), "{there}");
    assert!(back.to_string().contains("1 of 1 negative; p50 0.0"), "{back}");
}
