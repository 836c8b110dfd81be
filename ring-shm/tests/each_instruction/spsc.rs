//! One producer, one consumer.

use ring_core::Role;
use ring_core::spsc::{Consumer, Delivery, Layout, PopError, Producer};
use ring_shm::Segment;

use crate::{Message, anyone, gone, killed_at_each_instruction, message, new_segment};

const DEPTH: u64 = 8;
/// Messages before the operation: around the ring, and almost full.
const BEFORE: u64 = 11;
const WAITING: u64 = 5;

type Tx<'a> = Producer<Message, &'a Segment>;
type Rx<'a> = Consumer<Message, &'a Segment>;

fn push(producer: &mut Tx) {
    let next = message(producer.tail());
    producer.try_push(next).unwrap();
}

fn pop(consumer: &mut Rx) {
    let number = consumer.head();
    assert_eq!(consumer.try_pop(), Ok(message(number)));
}

/// A ring that was used, with some messages in it.
fn used_ring(segment: &Segment, delivery: Delivery) -> (Tx<'_>, Rx<'_>) {
    let layout = Layout::<Message>::new(DEPTH).unwrap();
    layout.init_over(segment, &anyone()).unwrap();
    let mut producer = Tx::attach(segment).unwrap();
    let mut consumer = Rx::attach(segment).unwrap().delivery(Delivery::AtMostOnce);
    for number in 0..BEFORE {
        push(&mut producer);
        if number + WAITING < BEFORE {
            pop(&mut consumer);
        }
    }
    (producer, consumer.delivery(delivery))
}

/// All messages come, whole and in order, up to the tail; a whole ring of them fits again.
fn go_on(mut producer: Tx, consumer: Rx) {
    let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    while consumer.head() < producer.tail() {
        pop(&mut consumer);
    }
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    (0..DEPTH).for_each(|_| push(&mut producer));
    (0..DEPTH).for_each(|_| pop(&mut consumer));
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
}

fn producer_dies(operation: fn(&mut Tx)) {
    let segment = new_segment();
    killed_at_each_instruction(
        &segment,
        |segment| {
            let (producer, consumer) = used_ring(segment, Delivery::AtLeastOnce { batch: 2 });
            drop(producer);
            consumer
        },
        |segment, mark: &dyn Fn()| {
            let mut producer = Tx::attach(segment).unwrap();
            mark();
            operation(&mut producer);
            mark();
        },
        |segment, mut consumer: Rx<'_>, is_through: bool| {
            (0..WAITING).for_each(|_| pop(&mut consumer));
            let last = consumer.try_pop().map(|found| assert_eq!(found, message(BEFORE)));
            let producer = Tx::take_over(segment, &gone(Role::Producer)).unwrap();
            assert_eq!(producer.tail(), BEFORE + u64::from(last.is_ok()));
            assert!(last.is_ok() || !is_through, "what was pushed is there");
            go_on(producer, consumer);
        },
    );
}

fn consumer_dies(delivery: Delivery, operation: fn(&mut Rx)) {
    let segment = new_segment();
    killed_at_each_instruction(
        &segment,
        |segment| used_ring(segment, delivery).0,
        |segment, mark: &dyn Fn()| {
            let mut consumer = Rx::attach(segment).unwrap().delivery(delivery);
            mark();
            operation(&mut consumer);
            mark();
        },
        |segment, mut producer: Tx<'_>, is_through: bool| {
            let consumer = Rx::take_over(segment, &gone(Role::Consumer)).unwrap();
            let popped = consumer.head() - (BEFORE - WAITING);
            match delivery {
                Delivery::AtMostOnce => assert!(popped <= 1 && (popped == 1 || !is_through)),
                Delivery::AtLeastOnce { .. } => assert_eq!(popped, 0, "it comes again"),
            }
            push(&mut producer);
            go_on(producer, consumer.delivery(Delivery::AtMostOnce));
        },
    );
}

#[test]
fn push_is_killed() {
    producer_dies(push);
}

#[test]
fn commit_is_killed() {
    producer_dies(|producer| {
        let next = message(producer.tail());
        let mut grant = producer.try_reserve().unwrap();
        grant.write(&next);
        grant.commit();
    });
}

#[test]
fn pop_is_killed() {
    consumer_dies(Delivery::AtMostOnce, pop);
    consumer_dies(Delivery::AtLeastOnce { batch: 2 }, pop);
}

#[test]
fn release_is_killed() {
    for delivery in [Delivery::AtMostOnce, Delivery::AtLeastOnce { batch: 2 }] {
        consumer_dies(delivery, |consumer| consumer.try_peek().unwrap().release());
    }
}
