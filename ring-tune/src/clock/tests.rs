use core::cell::Cell;
use std::thread;

use super::*;

fn clocks() -> [Clock; 2] {
    [Clock::new(), Clock::monotonic()]
}

#[test]
fn stamps_never_go_back() {
    for clock in clocks() {
        let mut last = clock.start();
        for _ in 0..100_000 {
            let start = clock.start();
            let stop = clock.stop();
            assert!(last <= start && start <= stop, "{clock:?}: {last} {start} {stop}");
            last = stop;
        }
    }
}

#[test]
fn fifty_milliseconds_are_as_long_as_the_kernel_says() {
    const TOLERANCE: f64 = 2e-3;
    for clock in clocks() {
        // An interrupt between the two clocks' readings lengthens one of them: the best of three counts.
        let worst_case = (0..3).map(|_| {
            let (kernel_start, start) = (monotonic_ns(), clock.start());
            while monotonic_ns() - kernel_start < 50_000_000 {}
            let (stop, kernel_stop) = (clock.stop(), monotonic_ns());
            let kernel_ns = (kernel_stop - kernel_start) as f64;
            (clock.ticks_to_ns(stop - start) / kernel_ns - 1.0).abs()
        });
        let error = worst_case.fold(f64::INFINITY, f64::min);
        assert!(error < TOLERANCE, "{clock:?} is off by {error}");
    }
}

/// Counters as faulty virtual machines have them.
#[test]
fn a_counter_that_does_not_run_on_is_no_clock() {
    assert_eq!(calibrated_hz(|| 7), None, "it stands still");
    let count = Cell::new(u64::MAX);
    assert_eq!(calibrated_hz(|| count.replace(count.get() - 1)), None, "it runs backwards");
    count.set(0);
    let back_at_times = || {
        let number = count.replace(count.get() + 1);
        (1 << 40) + 100 * number - 1_000 * u64::from(number % 4 == 1)
    };
    assert!(calibrated_hz(back_at_times).unwrap() > 0.0, "what went back is left out");
    let slowly = || monotonic_raw_ns() / 1_000;
    let hz = calibrated_hz(slowly).unwrap();
    assert!((hz / 1e6 - 1.0).abs() < 1e-2, "{hz}");
}

#[test]
fn two_calibrations_agree() {
    let (one, other) = (Clock::new(), Clock::new());
    assert_eq!(one.source(), other.source());
    assert!((one.hz() / other.hz() - 1.0).abs() < 1e-3, "{} {}", one.hz(), other.hz());
}

#[test]
fn the_fall_back_asks_the_kernel() {
    let clock = Clock::monotonic();
    assert_eq!(clock.source(), Source::Monotonic);
    assert_eq!(clock.hz(), 1e9);
    let before = monotonic_ns();
    let (start, stop) = (clock.start(), clock.stop());
    let after = monotonic_ns();
    assert!((before..=after).contains(&start) && (before..=after).contains(&stop));
}

#[test]
fn ticks_become_nanoseconds() {
    let clock = Clock::with_rate(Source::Monotonic, 2.5e9);
    assert_eq!(clock.ticks_to_ns(5), 2.0);
    assert_eq!(clock.between_ns(u64::MAX, 4), 2.0, "the counter may wrap around");
    assert_eq!(clock.between_ns(5, 0), -2.0);
}

#[test]
fn the_cost_is_that_of_a_clock() {
    for clock in clocks() {
        let cost_ns = clock.measure_cost_ns();
        assert!((0.0..1e9).contains(&cost_ns), "{clock:?} costs {cost_ns} ns");
    }
}

/// Each stamp is taken after the other thread's was seen, so a counter that differs between cores goes back.
#[test]
fn stamps_that_travel_between_threads_never_go_back() {
    let clock = Clock::new();
    let (to_peer, from_us) = std::sync::mpsc::channel();
    let (to_us, from_peer) = std::sync::mpsc::channel();
    let peer = thread::spawn(move || {
        for stamp in from_us {
            let here = clock.stop();
            assert!(here >= stamp, "{here} came after {stamp}");
            to_us.send(clock.start()).unwrap();
        }
    });
    for _ in 0..1_000 {
        to_peer.send(clock.start()).unwrap();
        let stamp = from_peer.recv().unwrap();
        let here = clock.stop();
        assert!(here >= stamp, "{here} came after {stamp}");
    }
    drop(to_peer);
    peer.join().unwrap();
}
