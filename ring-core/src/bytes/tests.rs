//! Models of the ring with two threads and more. The same bodies run under loom and natively.
//!
//! # Safety
//!
//! A role is taken over only after its owner was forgotten.
#![allow(unsafe_code)]

#[cfg(not(loom))]
mod crash;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use crate::inspect::tests::watch;
use crate::testing::{heap, model, scaled, thread};
use crate::{AssumeGone, Error, HeapRegion, Role};

type Tx = Producer<Arc<HeapRegion>>;
type Rx = Consumer<Arc<HeapRegion>>;

/// The smallest ring: one message of 24 bytes, or three of 8.
const SMALL: usize = 64;

/// First positions: at the ring's start, before its end, and where only padding fits before 2^64.
const STARTS: [u64; 3] = [0, 40, u64::MAX];

fn ring(start: u64) -> (Tx, Rx) {
    let layout = Layout::new(SMALL).unwrap().start(start);
    create(heap(layout.bytes()), &layout).unwrap()
}

/// A ring at position 64 that a lap of messages of 8 bytes has gone through, so that old headers lie everywhere.
fn used_ring() -> (Tx, Rx) {
    let (mut producer, consumer) = ring(0);
    let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    for number in 0..4 {
        producer.try_push(&[number; 8]).unwrap();
        assert_eq!(pop(&mut consumer), [number; 8]);
    }
    assert_eq!(producer.tail(), SMALL as u64);
    (producer, consumer)
}

/// The message of a number: a long one, then short ones.
fn message(number: u64) -> Vec<u8> {
    let len = match number % 4 {
        1 => 24,
        2 => 1,
        3 => 9,
        _ => 16,
    };
    vec![u8::try_from(number % 251).unwrap(); len]
}

fn push(producer: &mut Tx, message: &[u8]) {
    while let Err(error) = producer.try_push(message) {
        assert_eq!(error, PushError::Full);
        thread::yield_now();
    }
}

fn try_pop(consumer: &mut Rx) -> Result<Vec<u8>, PopError> {
    let mut bytes = [0; 32];
    consumer.try_pop(&mut bytes).map(|len| bytes[..len].to_vec())
}

fn pop(consumer: &mut Rx) -> Vec<u8> {
    loop {
        match try_pop(consumer) {
            Ok(message) => return message,
            Err(PopError::Empty) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Sends messages through the smallest ring, with the given ways to push and to pop, and checks that each arrives
/// once and in order.
fn transfers(
    delivery: Delivery,
    send: impl Fn(&mut Tx, u64) + Copy + Send + Sync + 'static,
    receive: impl Fn(&mut Rx, &mut Vec<Vec<u8>>) + Copy + Send + Sync + 'static,
) {
    for start in STARTS {
        model(move || {
            let messages = scaled(3, 300);
            let (mut producer, consumer) = ring(start);
            let mut consumer = consumer.delivery(delivery);
            let sender = thread::spawn(move || send(&mut producer, messages));
            let mut seen = Vec::new();
            while (seen.len() as u64) < messages {
                receive(&mut consumer, &mut seen);
                thread::yield_now();
            }
            sender.join().unwrap();
            assert!(seen.into_iter().eq((1..=messages).map(message)));
        });
    }
}

fn send_each(producer: &mut Tx, messages: u64) {
    for number in 1..=messages {
        push(producer, &message(number));
    }
}

fn receive_each(consumer: &mut Rx, seen: &mut Vec<Vec<u8>>) {
    match try_pop(consumer) {
        Ok(message) => seen.push(message),
        Err(error) => assert_eq!(error, PopError::Empty),
    }
}

const LAZY: Delivery = Delivery::AtLeastOnce { batch: 16 };

#[test]
fn push_and_pop_lose_nothing() {
    transfers(LAZY, send_each, receive_each);
}

#[test]
fn credit_inside_each_pop_loses_nothing() {
    transfers(Delivery::AtMostOnce, send_each, receive_each);
}

#[test]
fn batches_lose_nothing() {
    let send = |producer: &mut Tx, messages: u64| {
        let all: Vec<Vec<u8>> = (1..=messages).map(message).collect();
        let mut sent = 0;
        while sent < all.len() {
            sent += producer.push_slices(&all[sent..]).unwrap_or(0);
            thread::yield_now();
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<Vec<u8>>| {
        consumer.pop_each(2, |grant| seen.push(grant.to_vec()));
    };
    transfers(LAZY, send, receive);
}

#[test]
fn grants_lose_nothing() {
    let send = |producer: &mut Tx, messages: u64| {
        for message in (1..=messages).map(message) {
            loop {
                // Dropped: nothing of it may arrive.
                if let Ok(mut grant) = producer.try_reserve(message.len()) {
                    grant.fill(0xff);
                }
                // Longer than needed where that fits, and shortened.
                match producer.try_reserve(24) {
                    Ok(mut grant) => {
                        grant[..message.len()].copy_from_slice(&message);
                        break grant.commit_shortened(message.len());
                    }
                    Err(error) => assert_eq!(error, PushError::Full),
                }
                thread::yield_now();
            }
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<Vec<u8>>| {
        if let Ok(grant) = consumer.try_peek() {
            seen.push(grant.to_vec());
            grant.release();
        }
    };
    transfers(LAZY, send, receive);
}

#[test]
fn copying_grants_lose_nothing() {
    let send = |producer: &mut Tx, messages: u64| {
        for message in (1..=messages).map(message) {
            let mut grant = loop {
                match producer.try_reserve(message.len()) {
                    Ok(grant) => break grant,
                    Err(_) => thread::yield_now(),
                }
            };
            let (front, back) = message.split_at(message.len() / 2);
            grant.write_at(front.len(), back);
            grant.write_at(0, front);
            grant.commit();
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<Vec<u8>>| {
        if let Ok(grant) = consumer.try_peek() {
            let mut message = vec![0; grant.len()];
            assert_eq!(grant.read(&mut message), message.len());
            grant.release();
            seen.push(message);
        }
    };
    transfers(Delivery::AtMostOnce, send, receive);
}

#[test]
fn old_headers_are_never_taken_for_new_ones() {
    model(|| {
        let (mut producer, mut consumer) = used_ring();
        let sender = thread::spawn(move || {
            push(&mut producer, &[11; 8]);
            push(&mut producer, &[12; 8]);
        });
        assert_eq!(pop(&mut consumer), [11; 8]);
        assert_eq!(pop(&mut consumer), [12; 8]);
        assert_eq!(try_pop(&mut consumer), Err(PopError::Empty));
        sender.join().unwrap();
    });
}

#[test]
fn what_is_counted_can_be_popped() {
    model(|| {
        let (mut producer, mut consumer) = used_ring();
        let sender = thread::spawn(move || {
            push(&mut producer, &[11; 8]);
            push(&mut producer, &[12; 8]);
        });
        let counted = consumer.len().unwrap();
        for number in (11..).take(usize::try_from(counted / 16).unwrap()) {
            assert_eq!(try_pop(&mut consumer), Ok(vec![number; 8]));
        }
        sender.join().unwrap();
        assert_eq!(consumer.len(), Ok(32 - counted));
    });
}

#[test]
fn all_that_was_pushed_before_the_close_arrives() {
    for start in STARTS {
        model(move || {
            let (mut producer, mut consumer) = ring(start);
            let sender = thread::spawn(move || {
                producer.try_push(&[1]).unwrap();
                producer.try_push(&[2]).unwrap();
                producer.close();
            });
            let mut seen = Vec::new();
            loop {
                match try_pop(&mut consumer) {
                    Ok(message) => seen.extend(message),
                    Err(PopError::Empty) => thread::yield_now(),
                    Err(PopError::Closed) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(seen, [1, 2]);
            sender.join().unwrap();
        });
    }
}

#[test]
fn a_producer_goes_on_where_the_last_one_stopped() {
    model(|| {
        let (mut first, mut consumer) = used_ring();
        let region = Arc::clone(first.region());
        let first = thread::spawn(move || push(&mut first, &[1; 8]));
        let taken = match Producer::attach(region) {
            Ok(mut second) => {
                push(&mut second, &[2; 8]);
                false
            }
            Err(error) => {
                assert_eq!(error, Error::Taken { role: Role::Producer });
                true
            }
        };
        first.join().unwrap();
        assert_eq!(try_pop(&mut consumer), Ok(vec![1; 8]));
        assert_eq!(try_pop(&mut consumer), if taken { Err(PopError::Empty) } else { Ok(vec![2; 8]) });
    });
}

#[test]
fn a_consumer_goes_on_where_the_last_one_stopped() {
    model(|| {
        let (mut producer, mut first) = used_ring();
        let region = Arc::clone(producer.region());
        push(&mut producer, &[1; 8]);
        push(&mut producer, &[2; 8]);
        let first = thread::spawn(move || assert_eq!(pop(&mut first), [1; 8]));
        match Consumer::attach(region) {
            Ok(mut second) => assert_eq!(try_pop(&mut second), Ok(vec![2; 8])),
            Err(error) => assert_eq!(error, Error::Taken { role: Role::Consumer }),
        }
        first.join().unwrap();
    });
}

/// The promise that every former owner is gone, which the models keep by forgetting it first.
fn gone() -> AssumeGone {
    // SAFETY: see above.
    unsafe { AssumeGone::all() }
}

#[test]
fn a_successor_of_a_killed_producer_goes_on_beside_the_consumer() {
    model(|| {
        let (mut killed, consumer) = ring(0);
        let mut consumer = consumer.delivery(Delivery::AtMostOnce);
        let region = Arc::clone(killed.region());
        push(&mut killed, &[1; 24]);
        core::mem::forget(killed);
        let receiver = thread::spawn(move || [(); 3].map(|()| pop(&mut consumer).len()));
        let mut successor = Producer::take_over(region, &gone()).unwrap();
        assert_eq!(successor.tail(), 32);
        // To the ring's end, and over the message that the killed producer has pushed.
        push(&mut successor, &[2; 24]);
        push(&mut successor, &[3; 8]);
        assert_eq!(receiver.join().unwrap(), [24, 24, 8]);
    });
}

#[test]
fn a_successor_of_a_killed_consumer_goes_on_beside_the_producer() {
    model(|| {
        let (mut producer, killed) = ring(0);
        let region = Arc::clone(producer.region());
        let mut killed = killed.delivery(Delivery::AtLeastOnce { batch: 1 });
        let sender = thread::spawn(move || {
            push(&mut producer, &[1; 24]);
            push(&mut producer, &[2; 16]);
        });
        assert_eq!(pop(&mut killed), [1; 24]);
        core::mem::forget(killed);
        let mut successor: Rx = Consumer::take_over(region, &gone()).unwrap();
        assert_eq!(pop(&mut successor), [1; 24], "not credited yet, so delivered again");
        assert_eq!(pop(&mut successor), [2; 16]);
        sender.join().unwrap();
    });
}

#[test]
fn a_ring_is_seen_whole_or_not_at_all() {
    model(|| {
        let (mut producer, consumer) = ring(0);
        let region = Arc::clone(producer.region());
        producer.try_push(&[1]).unwrap();
        drop((producer, consumer));

        // Made anew at another position while somebody attaches: the old ring or the new one.
        let maker = Arc::clone(&region);
        let maker = thread::spawn(move || {
            if let Err(error) = Layout::new(SMALL).unwrap().start(48).init(&maker) {
                assert_eq!(error, Error::Taken { role: Role::Consumer });
            }
        });
        match Consumer::attach(region) {
            Ok(mut consumer) => {
                let expected = if consumer.head() == 0 { Ok(vec![1]) } else { Err(PopError::Empty) };
                assert_eq!(try_pop(&mut consumer), expected);
            }
            Err(error) => assert!(matches!(error, Error::Taken { .. } | Error::NotReady), "{error}"),
        }
        maker.join().unwrap();
    });
}

#[test]
fn a_ring_is_seen_going_on() {
    model(|| {
        let layout = Layout::new(64).unwrap();
        let region = heap(layout.bytes());
        let (mut producer, consumer) = create(Arc::clone(&region), &layout).unwrap();
        let mut consumer = consumer.delivery(Delivery::AtMostOnce);
        let messages = scaled(3, 10_000);
        watch(&region, 56, 16 * messages, move || {
            for _ in 1..messages {
                producer.try_push(&[7; 8]).unwrap();
                assert_eq!(consumer.try_pop(&mut [0; 8]), Ok(8));
            }
            // No credit tells of the last one.
            producer.try_push(&[7; 8]).unwrap();
            producer.close();
        });
    });
}

#[test]
fn a_ring_that_comes_round_is_seen_going_on() {
    model(|| {
        let layout = Layout::new(64).unwrap();
        let region = heap(layout.bytes());
        let (mut producer, consumer) = create(Arc::clone(&region), &layout).unwrap();
        let mut consumer = consumer.delivery(Delivery::AtMostOnce);
        // Two fill the ring: a header of the lap before stands where the credit then says that the next one will.
        let messages = scaled(2, 10_000);
        watch(&region, 56, 32 * messages, move || {
            for _ in 0..messages {
                producer.try_push(&[7; 24]).unwrap();
                assert_eq!(consumer.try_pop(&mut [0; 24]), Ok(24));
            }
        });
    });
}
