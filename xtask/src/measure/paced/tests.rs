use core::sync::atomic::AtomicU64;
use core::time::Duration;
use std::sync::Arc;
use std::thread;

use ring_core::HeapRegion;

use super::*;
use crate::Side;
use crate::usage::{COUNTS_BYTES, Counts};

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

/// Counts what is sent, and has room for all of it.
struct Sent(Arc<AtomicU64>);

impl Sender for Sent {
    fn try_send(&mut self, _: &Message) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Else the lead, which looks for the end of this slice, could see that of a later one.
#[test]
fn the_next_slice_begins_when_what_was_used_for_the_last_has_been_heard() {
    let region = Arc::new(HeapRegion::new(LINK_BYTES));
    let counts = Counts::new(Arc::new(HeapRegion::new(COUNTS_BYTES))).unwrap();
    let words = Words::new(Arc::clone(&region), WORDS).unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let meter = Meter::new(counts, Side::Peer);
    let mut giver = Giver::new(Sent(Arc::clone(&sent)), region, meter).unwrap();
    let giving = thread::spawn(move || (0..2).for_each(|_| giver.give(Pace::Every { ns: 0 }, 1, 2)));
    while words.at(TOLD).load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(20));
    assert_eq!(sent.load(Ordering::Relaxed), 3);
    words.at(TOLD).store(0, Ordering::Release);
    giving.join().unwrap();
    assert_eq!((sent.load(Ordering::Relaxed), words.at(TOLD).load(Ordering::Relaxed)), (6, 1));
}
