use std::println;
use std::string::ToString;

use proptest::prelude::*;

use super::*;

fn stages() -> Stages<3> {
    Stages::new(Clock::monotonic(), ["prepare", "post", "wait"])
}

/// Ticks of the monotonic clock are nanoseconds.
fn recorded() -> Stages<3> {
    let mut stages = stages();
    stages.pair_ns = 10.0;
    for number in 0..100 {
        let start = number * 10_000;
        stages.record(start, &[start + 110, start + 620, start + 1_630]);
    }
    stages
}

#[test]
fn parts_add_up_to_the_whole() {
    let breakdown = recorded().breakdown().unwrap();
    let means: Vec<f64> = breakdown.parts.iter().map(|part| part.summary.mean_ns).collect();
    assert_eq!(means, [100.0, 500.0, 1_000.0]);
    assert_eq!(breakdown.whole.mean_ns, 1_600.0);
    assert_eq!(breakdown.parts[1].share, 500.0 / 1_600.0);
    assert_eq!(breakdown.whole.count, 100);
}

/// Some are shorter than what is taken off.
#[test]
fn parts_add_up_to_the_whole_however_short_they_are() {
    let mut stages = stages();
    stages.pair_ns = 25.0;
    for number in 0..1_000 {
        stages.record(number, &[number + number % 50, number + 60, number + 60 + number % 30]);
    }
    let breakdown = stages.breakdown().unwrap();
    let sum: f64 = breakdown.parts.iter().map(|part| part.summary.mean_ns).sum();
    assert!((sum / breakdown.whole.mean_ns - 1.0).abs() < 1e-9, "{breakdown}");
    let share: f64 = breakdown.parts.iter().map(|part| part.share).sum();
    assert!((share - 1.0).abs() < 1e-9 && breakdown.parts.iter().all(|part| part.share > 0.0), "{breakdown}");
}

/// Between two stamps of an operation there is more than between a start and a stop of the clock.
#[test]
fn what_is_taken_off_is_what_an_empty_step_shows() {
    let run = |stages: &mut Stages<3>| {
        for _ in 0..10_001 {
            let mut operation = stages.begin();
            (0..3).for_each(|step| operation.passed(step));
        }
        let breakdown = stages.breakdown().unwrap();
        println!("{:.1?} taken off\n{breakdown}", stages.costs_ns());
        breakdown.parts.iter().map(|part| part.summary.p50_ns).collect::<Vec<_>>()
    };
    let mut stages = Stages::new(Clock::new(), ["first", "second", "third"]);
    assert!(run(&mut stages).iter().zip(stages.costs_ns()).all(|(own_ns, cost_ns)| own_ns < cost_ns));
    // Each has its own.
    stages = Stages {
        empty_ns: [0.0, 1e9, 0.0],
        pair_ns: 1e9,
        ..Stages::new(Clock::new(), ["first", "second", "third"])
    };
    let own_ns = run(&mut stages);
    assert!(own_ns[0] > 0.0 && own_ns[1] == 0.0 && own_ns[2] > 0.0, "{own_ns:?}");
}

#[test]
fn operations_that_go_wrong_are_counted_and_left_out() {
    let mut stages = stages();
    assert_eq!(stages.breakdown(), None);
    drop(stages.begin());
    let mut given_up = stages.begin();
    given_up.passed(0);
    drop(given_up);
    for order in [[1, 0, 2], [0, 0, 1], [0, 1, 7]] {
        let mut operation = stages.begin();
        order.iter().for_each(|&stage| operation.passed(stage));
    }
    let mut too_many = stages.begin();
    (0..4).for_each(|stage| too_many.passed(stage));
    drop(too_many);
    stages.record(50, &[60, 70, 65]);
    assert_eq!(
        (stages.count(), stages.abandoned(), stages.misordered()),
        (1, 2, 5),
        "the one with a step too many counts twice"
    );
}

/// A step of 500 ns by the same clock. It is no shorter than what was seen between two stamps within it and no longer than
/// what was seen between two stamps around it, but for the one stamp that is taken off.
#[test]
fn a_planted_step_is_reported_as_long_as_it_is() {
    let clock = Clock::new();
    let mut stages = Stages::new(clock, ["before", "planted", "after"]);
    let (mut within, mut around) = (Recorder::new(), Recorder::new());
    let planted_ticks = 500.0 / clock.between_ns(0, 1_000_000) * 1e6;
    for _ in 0..20_000 {
        let mut operation = stages.begin();
        let before = clock.start();
        operation.passed(0);
        let start = clock.start();
        let mut now = start;
        while (now.saturating_sub(start) as f64) < planted_ticks {
            now = clock.stop();
        }
        operation.passed(1);
        around.record(clock.between_ns(before, clock.stop()));
        within.record(clock.between_ns(start, now));
        operation.passed(2);
    }
    let breakdown = stages.breakdown().unwrap();
    let [within, around] = [within, around].map(|recorder| recorder.summary().unwrap().p50_ns);
    let (planted, cost) = (breakdown.parts[1].summary.p50_ns, stages.costs_ns()[1]);
    println!(
        "planted {planted:.1} ns; stamps within it {within:.1}, around it {around:.1}; {cost:.1} taken off"
    );
    // Percentiles are within 0.05 %.
    assert!(
        (within * 0.999 - cost..=around * 1.001).contains(&planted),
        "{within} {planted} {around} {cost}"
    );
    let sum: f64 = breakdown.parts.iter().map(|part| part.summary.mean_ns).sum();
    assert!((sum / breakdown.whole.mean_ns - 1.0).abs() < 0.02, "{sum} {}", breakdown.whole.mean_ns);
    let share: f64 = breakdown.parts.iter().map(|part| part.share).sum();
    assert!((share - 1.0).abs() < 0.02, "{share}");
}

#[test]
fn what_another_process_recorded_is_merged() {
    let (mut one, other) = (recorded(), recorded());
    one.merge_bytes(&other.to_bytes()).unwrap();
    let breakdown = one.breakdown().unwrap();
    assert_eq!((breakdown.whole.count, breakdown.whole.mean_ns), (200, 1_600.0));
    fn is_other<const N: usize>(names: [&'static str; N], bytes: &[u8]) {
        let mut stages = Stages::new(Clock::monotonic(), names);
        assert_eq!(stages.merge_bytes(bytes), Err(Error::OtherStages), "{names:?}");
        assert_eq!(stages.count(), 0);
    }
    is_other(["prepare", "post", "poll"], &other.to_bytes());
    is_other(["prepare", "wait", "post"], &other.to_bytes());
    is_other(["prepare", "post"], &other.to_bytes());
    is_other(["prepare", "post", "wait", "reap"], &other.to_bytes());
    let bytes = other.to_bytes();
    for end in 0..bytes.len() {
        assert!(one.merge_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert_eq!(one.count(), 200, "nothing is added where it fails");
}

/// Counts at the end of their range, steps that were recorded unequally often, times without end.
#[test]
fn no_bytes_of_a_peer_spoil_more_than_figures() {
    let largest = u64::MAX.to_le_bytes();
    let mut counts = recorded().to_bytes();
    counts[FORMAT.len() + 8..][..16].copy_from_slice(&[largest, largest].concat());
    let mut here = stages();
    here.merge_bytes(&counts).unwrap();
    here.merge_bytes(&counts).unwrap();
    drop(here.begin());
    here.record(50, &[60, 70, 65]);
    let mut out_of_turn = here.begin();
    out_of_turn.passed(1);
    drop(out_of_turn);
    assert_eq!((here.abandoned(), here.misordered(), here.count()), (u64::MAX, u64::MAX, 200));

    let mut unequal = recorded();
    unequal.parts[1].record(1.0);
    assert_eq!(stages().merge_bytes(&unequal.to_bytes()), Err(Error::RecorderBytes));
    unequal = stages();
    unequal.whole.record(1.0);
    assert_eq!(stages().merge_bytes(&unequal.to_bytes()), Err(Error::RecorderBytes));

    let mut endless = stages();
    endless.parts.iter_mut().for_each(|part| part.record(f64::INFINITY));
    endless.whole.record(f64::INFINITY);
    here.merge_bytes(&endless.to_bytes()).unwrap();
    let shares = here.breakdown().unwrap().parts.into_iter().map(|part| part.share);
    assert!(shares.into_iter().all(|share| (0.0..=1.0).contains(&share)));
}

#[test]
fn the_table_has_a_line_for_each_step() {
    let mut stages = recorded();
    drop(stages.begin());
    let text = stages.breakdown().unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(
        lines[2].starts_with("post") && lines[2].contains("500.0") && lines[2].ends_with("31.2%"),
        "{text}"
    );
    assert!(lines[4].starts_with("whole") && lines[4].ends_with("100.0%"), "{text}");
    assert_eq!(lines[5], "100 operations, 1 more were given up");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_merged_or_an_error(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = recorded().to_bytes();
        for (place, value) in places {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        let mut stages = stages();
        if stages.merge_bytes(&bytes).is_err() {
            prop_assert_eq!(stages.count(), 0);
        }
        let _ = stages.breakdown();
    }
}
