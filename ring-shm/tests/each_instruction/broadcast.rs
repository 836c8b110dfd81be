//! A producer that never waits, and those who listen.

use ring_core::Role;
use ring_core::broadcast::{Consumer, Layout, PopError, Producer};
use ring_shm::Segment;

use crate::{Message, anyone, gone, killed_at_each_instruction, message, new_segment};

const DEPTH: u64 = 8;

/// Messages before the operation: around the ring.
const BEFORE: u64 = 11;

type Tx<'a> = Producer<Message, &'a Segment>;
type Rx<'a> = Consumer<Message, &'a Segment>;

fn used_ring(segment: &Segment) -> (Tx<'_>, Rx<'_>) {
    Layout::<Message>::new(DEPTH).unwrap().init_over(&segment, &anyone()).unwrap();
    let mut producer = Tx::attach(segment).unwrap();
    let mut consumer = Rx::join(segment).unwrap();
    for number in 0..BEFORE {
        producer.push(&message(number));
        if number < BEFORE - DEPTH / 2 {
            assert_eq!(consumer.try_pop(), Ok(message(number)));
        }
    }
    (producer, consumer)
}

/// The messages from `first` to the tail come, and as many later ones as are sent.
fn go_on(mut producer: Tx<'_>, mut consumer: Rx<'_>, first: u64) {
    for number in first..producer.tail() {
        assert_eq!(consumer.try_pop(), Ok(message(number)));
    }
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    let mut late = Rx::join(*producer.region()).unwrap();
    for number in producer.tail()..producer.tail() + 2 * DEPTH {
        producer.push(&message(number));
        assert_eq!(consumer.try_pop(), Ok(message(number)));
        assert_eq!(late.try_pop(), Ok(message(number)));
    }
}

fn producer_dies(operation: fn(&mut Tx<'_>)) {
    let segment = new_segment();
    killed_at_each_instruction(
        &segment,
        |segment| used_ring(segment).1,
        |segment, mark| {
            let mut producer = Tx::attach(segment).unwrap();
            mark();
            operation(&mut producer);
            mark();
        },
        |segment, mut consumer, is_through| {
            // A half-written message is not seen before a successor comes, either.
            let waiting = BEFORE - DEPTH / 2..BEFORE;
            for number in waiting {
                assert_eq!(consumer.try_pop(), Ok(message(number)));
            }
            let last = consumer.try_pop().map(|found| assert_eq!(found, message(BEFORE)));
            assert!(last.is_ok() || !is_through, "what was pushed is there");
            let producer = Tx::take_over(segment, &gone(Role::Producer)).unwrap();
            let next = BEFORE + u64::from(last.is_ok());
            assert_eq!(producer.tail(), next);
            go_on(producer, consumer, next);
        },
    );
}

#[test]
fn push_is_killed() {
    producer_dies(|producer| producer.push(&message(producer.tail())));
}

#[test]
fn commit_is_killed() {
    producer_dies(|producer| {
        let next = message(producer.tail());
        let mut grant = producer.reserve();
        grant.write(&next);
        grant.commit();
    });
}

#[test]
fn pop_is_killed() {
    let segment = new_segment();
    killed_at_each_instruction(
        &segment,
        used_ring,
        |segment, mark| {
            let mut consumer = Rx::join_oldest(segment).unwrap();
            mark();
            consumer.try_pop().unwrap();
            mark();
        },
        |_, (producer, consumer), _| go_on(producer, consumer, BEFORE - DEPTH / 2),
    );
}
