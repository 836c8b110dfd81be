//! Models of the ring with two threads and more. The same bodies run under loom and natively.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use crate::inspect::tests::watch;
use crate::testing::{heap, model, scaled, thread};
use crate::{HeapRegion, Message};

mod restart;

type Tx<T = u64> = Producer<T, Arc<HeapRegion>>;
type Rx<T = u64> = Consumer<T, Arc<HeapRegion>>;

fn ring<T: Message>(depth: u64, start: u64) -> (Tx<T>, Rx<T>) {
    let layout = Layout::new(depth).unwrap().start(start);
    create(heap(layout.bytes()), &layout).unwrap()
}

fn push(producer: &mut Tx, value: u64) {
    while producer.try_push(value).is_err() {
        thread::yield_now();
    }
}

fn pop(consumer: &mut Rx) -> u64 {
    loop {
        match consumer.try_pop() {
            Ok(value) => return value,
            Err(PopError::Empty) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Sends the numbers from 1 up through rings of the small depths, with the given ways to push and to pop, and
/// checks that each arrives once and in order.
fn transfers(
    depths: &[u64],
    start: u64,
    delivery: Delivery,
    send: impl Fn(&mut Tx, u64) + Copy + Send + Sync + 'static,
    receive: impl Fn(&mut Rx, &mut Vec<u64>) + Copy + Send + Sync + 'static,
) {
    for &depth in depths {
        model(move || {
            let messages = scaled(depth + 1, 300);
            let (mut producer, consumer) = ring(depth, start);
            let mut consumer = consumer.delivery(delivery);
            let sender = thread::spawn(move || send(&mut producer, messages));
            let mut seen = Vec::new();
            while (seen.len() as u64) < messages {
                receive(&mut consumer, &mut seen);
                thread::yield_now();
            }
            sender.join().unwrap();
            assert!(seen.into_iter().eq(1..=messages));
        });
    }
}

fn send_each(producer: &mut Tx, messages: u64) {
    for value in 1..=messages {
        push(producer, value);
    }
}

fn receive_each(consumer: &mut Rx, seen: &mut Vec<u64>) {
    seen.extend(consumer.try_pop());
}

const LAZY: Delivery = Delivery::AtLeastOnce { batch: 2 };

#[test]
fn push_and_pop_lose_nothing() {
    transfers(&[1, 2], 0, LAZY, send_each, receive_each);
}

#[test]
fn credit_inside_each_pop_loses_nothing() {
    transfers(&[1, 2], 0, Delivery::AtMostOnce, send_each, receive_each);
}

#[test]
fn positions_wrap_at_2_to_the_64() {
    transfers(&[1, 2], u64::MAX, LAZY, send_each, receive_each);
}

#[test]
fn batches_lose_nothing() {
    let send = |producer: &mut Tx, messages: u64| {
        let all: Vec<u64> = (1..=messages).collect();
        let mut sent = 0;
        while sent < all.len() {
            sent += producer.push_slice(&all[sent..]).unwrap_or(0);
            thread::yield_now();
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<u64>| {
        let mut batch = [0; 2];
        match consumer.pop_slice(&mut batch) {
            Ok(popped) => seen.extend(&batch[..popped]),
            Err(error) => assert_eq!(error, PopError::Empty),
        }
    };
    transfers(&[1, 2], 0, LAZY, send, receive);
}

#[test]
fn iterators_lose_nothing() {
    let send = |producer: &mut Tx, messages: u64| {
        let mut all = 1..=messages;
        while !all.is_empty() {
            let _ = producer.push_iter(&mut all);
            thread::yield_now();
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<u64>| seen.extend(consumer.drain(2));
    transfers(&[2], 0, LAZY, send, receive);
}

#[test]
fn grants_lose_nothing() {
    let send = |producer: &mut Tx, messages: u64| {
        for value in 1..=messages {
            let mut grant = loop {
                match producer.try_reserve() {
                    // Dropped: nothing of it may arrive.
                    Ok(mut grant) => *grant = u64::MAX,
                    Err(error) => assert_eq!(error, PushError::Full(())),
                }
                if let Ok(grant) = producer.try_reserve() {
                    break grant;
                }
                thread::yield_now();
            };
            *grant = value;
            grant.commit();
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<u64>| {
        if let Ok(grant) = consumer.try_peek() {
            seen.push(*grant);
            grant.release();
        }
    };
    transfers(&[1, 2], 0, LAZY, send, receive);
}

#[test]
fn copying_grants_lose_nothing() {
    let send = |producer: &mut Tx, messages: u64| {
        for value in 1..=messages {
            let mut grant = loop {
                match producer.try_reserve() {
                    Ok(grant) => break grant,
                    Err(_) => thread::yield_now(),
                }
            };
            grant.write(&value);
            grant.commit();
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<u64>| {
        if let Ok(grant) = consumer.try_peek() {
            seen.push(grant.read());
            grant.release();
        }
    };
    transfers(&[1, 2], 0, Delivery::AtMostOnce, send, receive);
}

#[test]
fn messages_of_several_lines_arrive_whole() {
    model(|| {
        let (mut producer, mut consumer) = ring::<[u64; 9]>(1, 0);
        let messages = scaled(2, 300);
        let sender = thread::spawn(move || {
            for value in 1..=messages {
                while producer.try_push([value; 9]).is_err() {
                    thread::yield_now();
                }
            }
        });
        for value in 1..=messages {
            let message = loop {
                match consumer.try_pop() {
                    Ok(message) => break message,
                    Err(_) => thread::yield_now(),
                }
            };
            assert_eq!(message, [value; 9]);
        }
        sender.join().unwrap();
    });
}

#[test]
fn all_that_was_pushed_before_the_close_arrives() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth, 0);
            let sender = thread::spawn(move || {
                for value in 1..=depth {
                    producer.try_push(value).unwrap();
                }
                producer.close();
            });
            let mut next = 1;
            loop {
                match consumer.try_pop() {
                    Ok(value) => {
                        assert_eq!(value, next);
                        next += 1;
                    }
                    Err(PopError::Empty) => thread::yield_now(),
                    Err(PopError::Closed) => break,
                    Err(PopError::Corrupted) => panic!("corrupted"),
                }
            }
            assert_eq!(next, depth + 1);
            sender.join().unwrap();
        });
    }
}

#[test]
fn what_is_counted_can_be_popped() {
    model(|| {
        let (mut producer, mut consumer) = ring(2, 0);
        let sender = thread::spawn(move || {
            push(&mut producer, 1);
            push(&mut producer, 2);
        });
        let counted = consumer.len().unwrap();
        for expected in 1..=counted {
            assert_eq!(consumer.try_pop(), Ok(expected));
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_ring_is_seen_going_on() {
    for depth in [1, 2] {
        model(move || {
            let layout = Layout::<u64>::new(depth).unwrap();
            let region = heap(layout.bytes());
            let (mut producer, consumer) = create(Arc::clone(&region), &layout).unwrap();
            let mut consumer = consumer.delivery(Delivery::AtMostOnce);
            let messages = scaled(depth + 1, 10_000);
            watch(&region, depth, messages, move || {
                for value in 0..messages {
                    producer.try_push(value).unwrap();
                    assert_eq!(consumer.try_pop(), Ok(value));
                }
                producer.close();
            });
        });
    }
}
