use super::*;

fn timer() -> Timer {
    Timer { cost_ns: 20.0, ..Timer::new(Clock::monotonic()) }
}

#[test]
fn a_latency_is_without_the_clocks_own_part_and_never_negative() {
    let early = 0_u64.wrapping_sub(5);
    let samples = samples(Pace::Every { ns: 1_000 }, &[120, 10, early], timer());
    assert_eq!(samples.tails, [100.0, 0.0, 0.0]);
    assert_eq!((samples.centre, samples.messages), (samples.tails.clone(), 3));
}

#[test]
fn of_a_closed_loop_the_centre_comes_from_blocks() {
    let mut latencies = vec![120; 64];
    latencies.extend([220; 64]);
    let samples = samples(Pace::BackToBack, &latencies, timer());
    assert_eq!((samples.centre, samples.tails.len()), (vec![100.0, 200.0], 128));
}

#[test]
fn a_flood_has_no_latencies() {
    let samples = samples(Pace::Flood, &[120; 3], timer());
    assert_eq!((samples.centre, samples.tails, samples.messages), (vec![], vec![], 3));
}

#[test]
fn gaps_are_ticks_of_the_clock() {
    let clock = Clock::monotonic();
    assert_eq!(gap_ticks(Pace::Every { ns: 10_000_000 }, &clock), 10_000_000);
    assert_eq!((gap_ticks(Pace::BackToBack, &clock), gap_ticks(Pace::Flood, &clock)), (0, 0));
}
