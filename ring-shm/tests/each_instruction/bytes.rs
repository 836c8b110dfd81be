//! Messages of many lengths.

use ring_core::Role;
use ring_core::bytes::{Consumer, Delivery, Layout, PopError, Producer};
use ring_shm::Segment;

use crate::common::is_long;
use crate::{anyone, gone, killed_at_each_instruction, new_segment};

const RING_BYTES: usize = 512;

/// Messages that wait when the operation begins.
const WAITING: u64 = 3;

type Tx<'a> = Producer<&'a Segment>;
type Rx<'a> = Consumer<&'a Segment>;

/// A message that looks like headers where it is not looked at as a message; never as long as 128 bytes.
fn message(number: u64) -> ([u8; 128], usize) {
    let len = [56, 17, 100, 9, 64][usize::try_from(number % 5).unwrap()];
    let mut bytes = [0; 128];
    for (index, word) in bytes.chunks_mut(8).enumerate() {
        word.copy_from_slice(&(8 + (number + index as u64) % 64).to_ne_bytes());
    }
    (bytes, len)
}

fn push(producer: &mut Tx<'_>, number: u64) {
    let (bytes, len) = message(number);
    producer.try_push(&bytes[..len]).unwrap();
}

fn try_pop(consumer: &mut Rx<'_>, number: u64) -> Result<(), PopError> {
    let mut bytes = [0; 128];
    let found = consumer.try_pop(&mut bytes)?;
    let (expected, len) = message(number);
    assert_eq!(found, len);
    assert_eq!(bytes[..len], expected[..len]);
    Ok(())
}

/// A ring that was used, in which the messages from `next` less [`WAITING`] on wait.
fn used_ring(segment: &Segment, next: u64) -> (Tx<'_>, Rx<'_>) {
    Layout::new(RING_BYTES).unwrap().init_over(&segment, &anyone()).unwrap();
    let mut producer = Tx::attach(segment).unwrap();
    let mut consumer = Rx::attach(segment).unwrap().delivery(Delivery::AtMostOnce);
    for number in 0..next {
        push(&mut producer, number);
        if number >= WAITING {
            try_pop(&mut consumer, number - WAITING).unwrap();
        }
    }
    (producer, consumer)
}

/// The messages from `first` to `next` come, and so do later ones, around the ring.
fn go_on(mut producer: Tx<'_>, consumer: Rx<'_>, first: u64, next: u64) {
    let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    for number in first..next {
        try_pop(&mut consumer, number).unwrap();
    }
    assert_eq!(try_pop(&mut consumer, next), Err(PopError::Empty));
    assert_eq!(consumer.head(), producer.tail());
    for number in next..next + 20 {
        push(&mut producer, number);
        try_pop(&mut consumer, number).unwrap();
    }
}

/// The message is short, long, or (17) behind padding. A short run takes one of these.
fn producer_dies(operation: fn(&mut Tx<'_>, &[u8])) {
    let all = 13..18;
    let one = all.start + u64::from(std::process::id()) % 5;
    for next in if is_long() { all } else { one..one + 1 } {
        let segment = new_segment();
        killed_at_each_instruction(
            &segment,
            |segment| used_ring(segment, next).1,
            |segment, mark| {
                let mut producer = Tx::attach(segment).unwrap();
                let (bytes, len) = message(next);
                mark();
                operation(&mut producer, &bytes[..len]);
                mark();
            },
            |segment, mut consumer, is_through| {
                for number in next - WAITING..next {
                    try_pop(&mut consumer, number).unwrap();
                }
                let is_there = try_pop(&mut consumer, next).is_ok();
                assert!(is_there || !is_through, "what was pushed is there");
                let producer = Tx::take_over(segment, &gone(Role::Producer)).unwrap();
                let next = next + u64::from(is_there);
                go_on(producer, consumer, next, next);
            },
        );
    }
}

fn consumer_dies(delivery: Delivery, operation: fn(&mut Rx<'_>)) {
    const NEXT: u64 = 12;
    let segment = new_segment();
    killed_at_each_instruction(
        &segment,
        |segment| used_ring(segment, NEXT).0,
        |segment, mark| {
            let mut consumer = Rx::attach(segment).unwrap().delivery(delivery);
            mark();
            operation(&mut consumer);
            mark();
        },
        |segment, mut producer, is_through| {
            let first = NEXT - WAITING;
            let mut consumer = Rx::take_over(segment, &gone(Role::Consumer)).unwrap();
            let comes_again = try_pop_either(&mut consumer, first);
            match delivery {
                Delivery::AtMostOnce => assert!(!(comes_again && is_through), "twice"),
                Delivery::AtLeastOnce { .. } => assert!(comes_again, "it comes again"),
            }
            push(&mut producer, NEXT);
            go_on(producer, consumer, first + 1 + u64::from(!comes_again), NEXT + 1);
        },
    );
}

/// Pops a message or the next, and says whether it was the first.
fn try_pop_either(consumer: &mut Rx<'_>, first: u64) -> bool {
    let len = consumer.try_peek().unwrap().len();
    let is_first = len == message(first).1;
    try_pop(consumer, first + u64::from(!is_first)).unwrap();
    is_first
}

#[test]
fn push_is_killed() {
    producer_dies(|producer, message| producer.try_push(message).unwrap());
}

#[test]
fn commit_is_killed() {
    producer_dies(|producer, message| {
        let mut grant = producer.try_reserve(100).unwrap();
        grant.write_at(40, &[0xff; 60]);
        grant.write_at(0, message);
        grant.commit_shortened(message.len());
    });
}

const LATE: Delivery = Delivery::AtLeastOnce { batch: 100 };

#[test]
fn pop_is_killed() {
    for delivery in [Delivery::AtMostOnce, LATE] {
        consumer_dies(delivery, |consumer| assert!(consumer.try_pop(&mut [0; 128]).is_ok()));
    }
}

#[test]
fn release_is_killed() {
    for delivery in [Delivery::AtMostOnce, LATE] {
        consumer_dies(delivery, |consumer| consumer.try_peek().unwrap().release());
    }
}
