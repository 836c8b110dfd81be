use std::string::ToString;

use proptest::prelude::*;

use super::*;

fn stages() -> Stages<3> {
    Stages::new(Clock::monotonic(), ["prepare", "post", "wait"])
}

/// Ticks of the monotonic clock are nanoseconds.
fn recorded() -> Stages<3> {
    let mut stages = stages();
    stages.cost_ns = 10.0;
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
    let (planted, cost) = (breakdown.parts[1].summary.p50_ns, stages.cost_ns());
    std::println!(
        "planted {planted:.1} ns; stamps within it {within:.1}, around it {around:.1}; a stamp costs {cost:.1}"
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
    let mut renamed = Stages::new(Clock::monotonic(), ["prepare", "post", "poll"]);
    assert_eq!(renamed.merge_bytes(&other.to_bytes()), Err(Error::OtherStages));
    assert_eq!(renamed.count(), 0);
    let bytes = other.to_bytes();
    for end in 0..bytes.len() {
        assert!(one.merge_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert_eq!(one.count(), 200, "nothing is added where it fails");
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
