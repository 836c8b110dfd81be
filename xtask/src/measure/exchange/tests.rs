use ring_tune::Clock;

use super::*;

/// Takes a time that grows with the number of the message.
#[derive(Debug, Default)]
struct Fake {
    pings: Vec<u64>,
    pongs: Vec<u64>,
}

impl Exchange for Fake {
    fn ping(&mut self, number: u64) {
        self.pings.push(number);
        let clock = Clock::monotonic();
        let start = clock.start();
        while clock.stop() - start < 1_000 {}
    }

    fn pong(&mut self, number: u64) {
        self.pongs.push(number);
    }
}

#[test]
fn a_block_of_64_round_trips_is_one_sample_of_one_way() {
    let mut timer = Timer::new(Clock::monotonic());
    timer.cost_ns = 0.0;
    let mut fake = Fake::default();
    let mut next = 1;
    let slice = Slice::RoundTrips { warm_up: 5, blocks: 2, singles: 3 };
    let samples = lead(&mut fake, &mut next, slice, timer);
    // Half of the 1,000 ns that an exchange takes at least.
    assert_eq!(samples.centre.len(), 2);
    assert!(samples.centre.iter().chain(&samples.tails).all(|&ns| ns >= 500.0), "{samples:?}");
    assert_eq!((samples.tails.len(), samples.messages), (3, 3));
    assert_eq!(fake.pings, (1..=5 + 2 * 64 + 3).collect::<Vec<_>>());
    assert_eq!(next, 5 + 2 * 64 + 3 + 1);
}

#[test]
fn both_sides_count_alike() {
    let mut fake = Fake::default();
    let mut next = 7;
    follow(&mut fake, &mut next, Slice::RoundTrips { warm_up: 1, blocks: 1, singles: 2 });
    assert_eq!(fake.pongs, (7..7 + 1 + 64 + 2).collect::<Vec<_>>());
    assert_eq!(next, 7 + 1 + 64 + 2);
}

#[test]
fn the_cost_of_the_clock_is_taken_off_once_an_interval() {
    let mut timer = Timer::new(Clock::monotonic());
    timer.cost_ns = 20.0;
    assert_eq!(one_way_ns(timer.net_ns(12_820), 64), 100.0);
    assert_eq!(one_way_ns(timer.net_ns(120), 1), 50.0);
    assert_eq!(timer.net_ns(15), 0.0, "no interval is negative");
}

#[test]
fn a_message_out_of_order_is_noticed() {
    check(4, 4);
    assert!(std::panic::catch_unwind(|| check(5, 4)).is_err());
}

#[test]
fn the_sum_wraps() {
    assert_eq!(sum(&[u64::MAX, 1, 2, 0, 0, 0, 0]), 2);
}
