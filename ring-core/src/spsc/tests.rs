//! Models of the ring with two threads and more. The same bodies run under loom and natively.
//!
//! # Safety
//!
//! A role is taken over only after its owner was forgotten.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use crate::testing::{heap, model, scaled, thread};
use crate::{AssumeGone, Error, HeapRegion, Message, Role};

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
fn a_producer_goes_on_where_the_last_one_stopped() {
    model(|| {
        let (mut first, mut consumer) = ring(2, 0);
        let region = Arc::clone(first.region());
        let first = thread::spawn(move || push(&mut first, 1));
        let taken = match Producer::attach(region) {
            Ok(mut second) => {
                push(&mut second, 2);
                false
            }
            Err(error) => {
                assert_eq!(error, Error::Taken { role: Role::Producer });
                true
            }
        };
        first.join().unwrap();
        assert_eq!(consumer.try_pop(), Ok(1));
        assert_eq!(consumer.try_pop(), if taken { Err(PopError::Empty) } else { Ok(2) });
    });
}

#[test]
fn a_consumer_goes_on_where_the_last_one_stopped() {
    model(|| {
        let (mut producer, mut first) = ring(2, 0);
        let region = Arc::clone(producer.region());
        push(&mut producer, 1);
        push(&mut producer, 2);
        let first = thread::spawn(move || assert_eq!(pop(&mut first), 1));
        match Consumer::<u64, _>::attach(region) {
            Ok(mut second) => assert_eq!(second.try_pop(), Ok(2)),
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
    for depth in [1, 2] {
        model(move || {
            let (mut killed, mut consumer) = ring(depth, 0);
            let region = Arc::clone(killed.region());
            push(&mut killed, 1);
            core::mem::forget(killed);
            let receiver = thread::spawn(move || [pop(&mut consumer), pop(&mut consumer)]);
            let mut successor = Producer::take_over(region, &gone()).unwrap();
            assert_eq!(successor.tail(), 1);
            push(&mut successor, 2);
            assert_eq!(receiver.join().unwrap(), [1, 2]);
        });
    }
}

#[test]
fn a_successor_of_a_killed_consumer_goes_on_beside_the_producer() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, killed) = ring(depth, 0);
            let region = Arc::clone(producer.region());
            let mut killed = killed.delivery(Delivery::AtLeastOnce { batch: 1 });
            let sender = thread::spawn(move || {
                push(&mut producer, 1);
                push(&mut producer, 2);
            });
            assert_eq!(pop(&mut killed), 1);
            core::mem::forget(killed);
            let mut successor: Rx = Consumer::take_over(region, &gone()).unwrap();
            assert_eq!(pop(&mut successor), 1, "not credited yet, so delivered again");
            assert_eq!(pop(&mut successor), 2);
            sender.join().unwrap();
        });
    }
}

#[test]
fn a_role_has_one_owner() {
    model(|| {
        let (producer, _consumer) = ring::<u64>(1, 0);
        let region = Arc::clone(producer.region());
        drop(producer);
        let other = Arc::clone(&region);
        let claim = |region| {
            Producer::<u64, _>::attach(region).is_ok_and(|producer| {
                core::mem::forget(producer);
                true
            })
        };
        let rival = thread::spawn(move || claim(other));
        let mine = claim(region);
        assert!(mine != rival.join().unwrap(), "one and only one has it");
    });
}

#[test]
fn a_ring_is_seen_whole_or_not_at_all() {
    model(|| {
        let (mut producer, consumer) = ring::<u64>(2, 0);
        let region = Arc::clone(producer.region());
        producer.try_push(1).unwrap();
        drop((producer, consumer));

        // Made anew in another shape while somebody attaches: the old ring or the new one.
        let maker = Arc::clone(&region);
        let maker = thread::spawn(move || {
            if let Err(error) = Layout::<u64>::new(1).unwrap().start(100).init(&maker) {
                assert_eq!(error, Error::Taken { role: Role::Consumer });
            }
        });
        match Consumer::<u64, _>::attach(region) {
            Ok(mut consumer) => {
                let expected = if consumer.capacity() == 2 { Ok(1) } else { Err(PopError::Empty) };
                assert_eq!(consumer.try_pop(), expected);
            }
            Err(error) => assert!(matches!(error, Error::Taken { .. } | Error::NotReady), "{error}"),
        }
        maker.join().unwrap();
    });
}

#[test]
fn a_ring_that_is_made_anew_looks_like_no_other() {
    model(|| {
        // Depth of the one and slot size of the other would not fit the region.
        let wide = Layout::<u64>::new(1).unwrap().slot_bytes(192).unwrap();
        let narrow = Layout::<u64>::new(2).unwrap();
        let region = heap(wide.bytes().max(narrow.bytes()));
        narrow.init(&region).unwrap();
        let maker = Arc::clone(&region);
        let maker = thread::spawn(move || {
            if let Err(error) = wide.init(&maker) {
                assert_eq!(error, Error::Taken { role: Role::Consumer });
            }
        });
        if let Err(error) = Consumer::<u64, _>::attach(region) {
            assert!(matches!(error, Error::Taken { .. } | Error::NotReady), "{error}");
        }
        maker.join().unwrap();
    });
}

#[test]
fn a_refused_init_disturbs_nobody() {
    model(|| {
        let (mut producer, consumer) = ring::<u64>(1, 0);
        drop(consumer);
        let region = Arc::clone(producer.region());
        let other = Arc::clone(&region);
        let maker = thread::spawn(move || {
            let error = Layout::<u64>::new(1).unwrap().init(&other).unwrap_err();
            assert_eq!(error, Error::Taken { role: Role::Producer });
        });
        producer.try_push(1).unwrap();
        let mut consumer = Consumer::<u64, _>::attach(region).unwrap();
        assert_eq!(consumer.try_pop(), Ok(1));
        maker.join().unwrap();
    });
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
