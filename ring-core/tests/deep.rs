//! What only rings of 32 KiB and more do, to bring lines near and to keep a distance, loses and reorders nothing.

use ring_core::{HeapRegion, bytes, mpmc, spsc};

type Message = [u64; 7];

const DEPTH: u64 = 1024;

/// Near the positions' wrap, so that what is brought near lies beyond it.
const START: u64 = u64::MAX - 100;

/// Fills the ring, empties it, and finds it empty after a run as long as a lap, lap after lap.
fn laps(mut push: impl FnMut(u64) -> bool, mut pop: impl FnMut() -> Option<u64>, room: u64) {
    for lap in 0..5 {
        for number in 0..room {
            assert!(push(lap * room + number), "room for message {number}");
        }
        assert!(!push(0), "a full ring");
        for number in 0..room {
            assert_eq!(pop(), Some(lap * room + number));
        }
        assert_eq!(pop(), None);
        assert_eq!(pop(), None);
    }
}

#[test]
fn spsc_with_and_without_prefetching() {
    for on in [true, false] {
        let layout = spsc::Layout::<Message>::new(DEPTH).unwrap().start(START);
        let region = HeapRegion::new(layout.bytes());
        let (producer, consumer) = spsc::create(&region, &layout).unwrap();
        let (mut producer, mut consumer) = (producer.prefetch(on), consumer.prefetch(on).gather(on));
        laps(|n| producer.try_push([n; 7]).is_ok(), || consumer.try_pop().ok().map(|m| m[6]), DEPTH);
    }
}

#[test]
fn bytes_with_and_without_gathering() {
    for on in [true, false] {
        let layout = bytes::Layout::new(32 * 1024).unwrap();
        let region = HeapRegion::new(layout.bytes());
        let (mut producer, consumer) = bytes::create(&region, &layout).unwrap();
        let mut consumer = consumer.gather(on);
        let pop = || {
            let mut message = [0; 8];
            consumer.try_pop(&mut message).ok().map(|_| u64::from_ne_bytes(message))
        };
        // Frames of 16 bytes, and a word for the frontier.
        laps(|n| producer.try_push(&n.to_ne_bytes()).is_ok(), pop, 32 * 1024 / 16 - 1);
    }
}

#[test]
fn mpmc() {
    let layout = mpmc::Layout::<Message>::new(DEPTH).unwrap().start(START);
    let region = HeapRegion::new(layout.bytes());
    layout.init(&region).unwrap();
    let mut producer = mpmc::Producer::<Message, _>::attach(&region).unwrap();
    let mut consumer = mpmc::Consumer::<Message, _>::attach(&region).unwrap();
    laps(|n| producer.try_push([n; 7]).is_ok(), || consumer.try_pop().ok().map(|m| m[6]), DEPTH);
}
