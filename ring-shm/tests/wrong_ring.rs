//! Whoever takes a side of a ring that is another one is told what it is, at once, whoever has its roles.

mod common;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use common::{TestName, unlocked};
use ring_core::{broadcast, bytes, mpmc, spsc};
use ring_shm::{Claim, Error, Segment, Side};

const LONG: Duration = Duration::from_secs(20);

/// What one who would take this side of the ring is told.
fn told<S: Side>(name: &str) -> ring_core::Error {
    let start = Instant::now();
    let result = unlocked().attach_ring::<S>(name, LONG);
    assert!(start.elapsed() < LONG / 2, "it waited for a role");
    match result {
        Err(Error::Ring(error)) => error,
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("it got a side"),
    }
}

fn assert_other_kinds_are_told(name: &str, found: u64) {
    let told = [
        (1, told::<spsc::Producer<u64, Claim>>(name)),
        (1, told::<spsc::Consumer<u64, Claim>>(name)),
        (2, told::<bytes::Producer<Claim>>(name)),
        (2, told::<bytes::Consumer<Claim>>(name)),
        (3, told::<mpmc::Producer<u64, Claim>>(name)),
        (3, told::<mpmc::Consumer<u64, Claim>>(name)),
        (4, told::<broadcast::Producer<u64, Claim>>(name)),
        (4, told::<broadcast::Consumer<u64, Arc<Segment>>>(name)),
    ];
    for (expected, error) in told {
        if expected == found {
            let wrong_size = ring_core::Error::WrongElementSize { found: 4, expected: 8 };
            assert_eq!(error, wrong_size, "of kind {expected}");
        } else {
            assert_eq!(error, ring_core::Error::WrongKind { found, expected });
        }
    }
}

#[test]
fn of_another_kind_or_size() {
    let name = TestName::new("wrong-ring");
    let options = unlocked();
    // Each with all its roles taken, of messages of 4 bytes.
    let layout = spsc::Layout::<u32>::new(8).unwrap();
    let producer: spsc::Producer<u32, Claim> = options.create_ring(&name, &layout).unwrap();
    let consumer: spsc::Consumer<u32, Claim> = options.attach_ring(&name, LONG).unwrap();
    assert_other_kinds_are_told(&name, 1);
    producer.region().unlink().unwrap();
    drop((producer, consumer));

    let layout = mpmc::Layout::<u32>::new(8).unwrap().participants(1).unwrap();
    let only: mpmc::Producer<u32, Claim> = options.create_ring(&name, &layout).unwrap();
    assert_other_kinds_are_told(&name, 3);
    only.region().unlink().unwrap();
    drop(only);

    let layout = broadcast::Layout::<u32>::new(8).unwrap();
    let producer: broadcast::Producer<u32, Claim> = options.create_ring(&name, &layout).unwrap();
    assert_other_kinds_are_told(&name, 4);
    drop(producer);
}
