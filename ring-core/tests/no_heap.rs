//! A ring in a static, with nothing but core.

use ring_core::spsc::{Layout, create};
use ring_core::{Error, Role, StaticRegion, broadcast, bytes, mpmc};

const LAYOUT: Layout<u64> = match Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};
static REGION: StaticRegion<{ LAYOUT.bytes() }> = StaticRegion::new();

#[test]
fn a_static_holds_one_ring_at_a_time() {
    let (mut producer, mut consumer) = create(&REGION, &LAYOUT).unwrap();
    assert_eq!(create(&REGION, &LAYOUT).unwrap_err(), Error::Taken { role: Role::Producer });
    let sender = std::thread::spawn(move || {
        for value in 0..100 {
            while producer.try_push(value).is_err() {
                std::thread::yield_now();
            }
        }
    });
    for value in 0..100 {
        loop {
            match consumer.try_pop() {
                Ok(popped) => break assert_eq!(popped, value),
                Err(_) => std::thread::yield_now(),
            }
        }
    }
    sender.join().unwrap();
    drop(consumer);
    create(&REGION, &LAYOUT).unwrap();
}

const BROADCAST: broadcast::Layout<u64> = match broadcast::Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};
static BROADCAST_REGION: StaticRegion<{ BROADCAST.bytes() }> = StaticRegion::new();

#[test]
fn a_static_holds_a_broadcast_ring() {
    let (mut producer, mut consumer) = broadcast::create(&BROADCAST_REGION, &BROADCAST).unwrap();
    producer.push_slice(&[1, 2, 3, 4, 5]);
    producer.close();
    assert_eq!(consumer.try_pop(), Err(broadcast::PopError::Lost { messages: 1 }));
    assert!(consumer.drain(usize::MAX).eq(2..6));
    assert_eq!(consumer.try_pop(), Err(broadcast::PopError::Closed));
}

const BYTES: bytes::Layout = match bytes::Layout::new(256) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};
static BYTES_REGION: StaticRegion<{ BYTES.bytes() }> = StaticRegion::new();

#[test]
fn a_static_holds_a_byte_ring() {
    let (mut producer, mut consumer) = bytes::create(&BYTES_REGION, &BYTES).unwrap();
    let sender = std::thread::spawn(move || {
        for len in 1..=120 {
            while producer.try_push(&[7; 120][..len]).is_err() {
                std::thread::yield_now();
            }
        }
    });
    for len in 1..=120 {
        loop {
            match consumer.try_pop(&mut [0; 120]) {
                Ok(popped) => break assert_eq!(popped, len),
                Err(_) => std::thread::yield_now(),
            }
        }
    }
    sender.join().unwrap();
}

const MPMC: mpmc::Layout<u64> = match mpmc::Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};
static MPMC_REGION: StaticRegion<{ MPMC.bytes() }> = StaticRegion::new();

#[test]
fn a_static_holds_a_ring_of_many() {
    let (mut producer, mut consumer) = mpmc::create(&MPMC_REGION, &MPMC).unwrap();
    let mut second = mpmc::Producer::<u64, _>::attach(&MPMC_REGION).unwrap();
    assert_eq!(MPMC.init(&&MPMC_REGION).unwrap_err(), Error::Taken { role: Role::Participant(1) });
    let push = |producer: &mut mpmc::Producer<u64, _>| {
        for value in 1..=100 {
            while producer.try_push(value).is_err() {
                std::thread::yield_now();
            }
        }
    };
    let mut sum = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| push(&mut producer));
        scope.spawn(|| push(&mut second));
        for _ in 0..200 {
            sum += loop {
                match consumer.try_pop() {
                    Ok(popped) => break popped,
                    Err(_) => std::thread::yield_now(),
                }
            };
        }
    });
    assert_eq!(sum, 2 * (1..=100).sum::<u64>());
    assert!(consumer.try_pop().is_err());
}
