//! Models of the ring with two threads and more. The same bodies run under loom and natively.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;

use super::{Consumer, Layout, PopError, Producer, PushError, UnfinishedPops, create};
use crate::testing::{heap, model, scaled, thread};
use crate::{Error, HeapRegion, Role};

mod kills;

type Tx = Producer<u64, Arc<HeapRegion>>;
type Rx = Consumer<u64, Arc<HeapRegion>>;

fn ring_with(depth: u64, unfinished: UnfinishedPops) -> (Tx, Rx) {
    let layout = Layout::new(depth).unwrap().participants(4).unwrap().unfinished_pops(unfinished);
    create(heap(layout.bytes()), &layout).unwrap()
}

fn ring(depth: u64) -> (Tx, Rx) {
    ring_with(depth, UnfinishedPops::Redeliver)
}

fn more_tx(other: &Tx) -> Tx {
    Producer::attach(Arc::clone(other.region())).unwrap()
}

fn more_rx(other: &Rx) -> Rx {
    Consumer::attach(Arc::clone(other.region())).unwrap()
}

fn push(producer: &mut Tx, value: u64) {
    while let Err(error) = producer.try_push(value) {
        assert!(matches!(error, PushError::Full(_) | PushError::Busy(_)), "{error}");
        thread::yield_now();
    }
}

fn pop(consumer: &mut Rx) -> u64 {
    loop {
        match consumer.try_pop() {
            Ok(value) => return value,
            Err(PopError::Empty | PopError::Busy) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Messages of a producer: its number in the upper half, and a count from 1 up in the lower.
fn numbered(producer: u64, count: u64) -> u64 {
    producer << 32 | count
}

/// Of each producer's messages, a consumer sees a later one after an earlier one.
fn assert_ordered(seen: &[u64]) {
    let mut last = [0; 4];
    for value in seen {
        let (producer, count) = ((value >> 32) as usize, value & 0xffff_ffff);
        assert!(count > last[producer], "out of order: {seen:x?}");
        last[producer] = count;
    }
}

/// Every message of `producers` arrived once.
fn assert_complete(mut seen: Vec<u64>, producers: u64, each: u64) {
    seen.sort_unstable();
    let all = (1..=producers).flat_map(|producer| (1..=each).map(move |count| numbered(producer, count)));
    assert!(seen.iter().copied().eq(all), "lost or repeated: {seen:x?}");
}

/// Sends from each of `producers` threads and receives in `consumers`, one of which is this one.
fn transfers(
    depths: &[u64],
    (producers, consumers): (u64, u64),
    each: u64,
    send: impl Fn(&mut Tx, u64, u64) + Copy + Send + Sync + 'static,
    receive: impl Fn(&mut Rx, &mut Vec<u64>) -> Result<(), PopError> + Copy + Send + Sync + 'static,
) {
    for &depth in depths {
        model(move || {
            let (first_tx, mut first_rx) = ring(depth);
            let mut senders: Vec<Tx> = (1..producers).map(|_| more_tx(&first_tx)).collect();
            senders.push(first_tx);
            let others: Vec<Rx> = (1..consumers).map(|_| more_rx(&first_rx)).collect();
            let total = producers * each;
            let arrived = Arc::new(Mutex::new(Vec::new()));
            let until_all = move |consumer: &mut Rx, arrived: &Mutex<Vec<u64>>| {
                let mut seen = Vec::new();
                loop {
                    let before = seen.len();
                    let result = receive(consumer, &mut seen);
                    let mut arrived = arrived.lock().unwrap();
                    arrived.extend(&seen[before..]);
                    if arrived.len() as u64 >= total {
                        break;
                    }
                    drop(arrived);
                    match result {
                        Ok(()) => {}
                        Err(PopError::Empty | PopError::Busy) => thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
                assert_ordered(&seen);
            };
            let mut threads = Vec::new();
            for (number, mut producer) in senders.into_iter().enumerate() {
                threads.push(thread::spawn(move || send(&mut producer, number as u64 + 1, each)));
            }
            for mut consumer in others {
                let arrived = Arc::clone(&arrived);
                threads.push(thread::spawn(move || until_all(&mut consumer, &arrived)));
            }
            until_all(&mut first_rx, &arrived);
            for thread in threads {
                thread.join().unwrap();
            }
            let seen = core::mem::take(&mut *arrived.lock().unwrap());
            assert_complete(seen, producers, each);
        });
    }
}

fn send_each(producer: &mut Tx, number: u64, each: u64) {
    for count in 1..=each {
        push(producer, numbered(number, count));
    }
}

fn receive_one(consumer: &mut Rx, seen: &mut Vec<u64>) -> Result<(), PopError> {
    seen.push(consumer.try_pop()?);
    Ok(())
}

#[test]
fn one_to_one_loses_nothing() {
    transfers(&[1, 2], (1, 1), scaled(3, 2000), send_each, receive_one);
}

#[test]
fn two_producers_lose_nothing() {
    transfers(&[1, 2], (2, 1), scaled(1, 1000), send_each, receive_one);
}

#[test]
fn two_producers_keep_their_order() {
    transfers(&[2], (2, 1), scaled(2, 1000), send_each, receive_one);
}

#[test]
fn two_consumers_lose_nothing() {
    transfers(&[1, 2], (1, 2), scaled(2, 1000), send_each, receive_one);
}

#[cfg(not(loom))]
#[test]
fn two_to_two_loses_nothing() {
    transfers(&[1, 2, 16, 1024], (2, 2), 5000, send_each, receive_one);
}

#[test]
fn batches_lose_nothing() {
    let send = |producer: &mut Tx, number, each| {
        let all: Vec<u64> = (1..=each).map(|count| numbered(number, count)).collect();
        let mut sent = 0;
        while sent < all.len() {
            let many = (all.len() - sent).min(3);
            sent += producer.push_slice(&all[sent..sent + many]).unwrap_or(0);
            thread::yield_now();
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<u64>| {
        let mut batch = [0; 2];
        let popped = consumer.pop_slice(&mut batch)?;
        seen.extend(&batch[..popped]);
        seen.extend(consumer.drain(2));
        Ok(())
    };
    transfers(&[2], (2, 1), scaled(1, 1000), send, receive);
    transfers(&[2], (1, 2), scaled(2, 1000), send, receive);
}

#[test]
fn grants_lose_nothing() {
    let send = |producer: &mut Tx, number, each| {
        for count in 1..=each {
            let is_first = count % 3 == 1;
            loop {
                match producer.try_reserve() {
                    Ok(mut grant) => {
                        *grant = numbered(number, count);
                        grant.commit();
                        break;
                    }
                    Err(error) => assert!(matches!(error, PushError::Full(()) | PushError::Busy(()))),
                }
                thread::yield_now();
            }
            if is_first && let Ok(mut grant) = producer.try_reserve() {
                // Dropped: nothing of it may arrive.
                *grant = u64::MAX;
            }
        }
    };
    let receive = |consumer: &mut Rx, seen: &mut Vec<u64>| {
        let grant = consumer.try_peek()?;
        seen.push(*grant);
        grant.release();
        Ok(())
    };
    transfers(&[1, 2], (1, 1), scaled(2, 1000), send, receive);
    transfers(&[2], (2, 1), scaled(1, 1000), send, receive);
}

#[test]
fn a_message_that_was_put_back_reaches_the_other_consumer() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth);
            let mut other = more_rx(&consumer);
            push(&mut producer, 1);
            let other = thread::spawn(move || {
                let seen = other.try_peek().map(|grant| assert_eq!(*grant, 1)).is_ok();
                // Its place is kept, so that nobody sweeps.
                core::mem::forget(other);
                seen
            });
            assert_eq!(pop(&mut consumer), 1);
            other.join().unwrap();
            assert_eq!(consumer.try_pop(), Err(PopError::Empty));
        });
    }
}

#[test]
fn the_readers_of_a_put_back_message_are_done_before_it_is_overwritten() {
    model(|| {
        let (mut producer, mut consumer) = ring(1);
        let mut other = more_rx(&consumer);
        push(&mut producer, 1);
        let other = thread::spawn(move || drop(other.try_peek().map(|grant| grant.read())));
        let popper = thread::spawn(move || pop(&mut consumer));
        while producer.try_push(2).is_err() {
            thread::yield_now();
        }
        other.join().unwrap();
        assert!([1, 2].contains(&popper.join().unwrap()));
    });
}

/// Pops until the ring ends.
fn pop_all(consumer: &mut Rx) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match consumer.try_pop() {
            Ok(value) => seen.push(value),
            Err(PopError::Empty | PopError::Busy) => thread::yield_now(),
            Err(PopError::Closed) => return seen,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
    }
}

#[test]
fn all_that_was_pushed_before_the_close_arrives() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth);
            let sender = thread::spawn(move || {
                for value in 1..=depth {
                    producer.try_push(value).unwrap();
                }
                producer.close();
                assert_eq!(producer.try_push(9), Err(PushError::Closed(9)));
            });
            assert!(pop_all(&mut consumer).into_iter().eq(1..=depth));
            sender.join().unwrap();
        });
    }
}

#[test]
fn a_push_beside_the_close_is_refused_or_arrives() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth);
            let sender = thread::spawn(move || match producer.try_push(1) {
                Ok(()) => 1,
                Err(error) => {
                    assert_eq!(error, PushError::Closed(1));
                    0
                }
            });
            consumer.close();
            let seen = pop_all(&mut consumer);
            assert_eq!(seen.len(), sender.join().unwrap());
        });
    }
}

#[test]
fn both_consumers_see_the_end() {
    model(|| {
        let (mut producer, mut consumer) = ring(2);
        let mut other = more_rx(&consumer);
        push(&mut producer, 1);
        producer.close();
        let other = thread::spawn(move || pop_all(&mut other));
        let mut seen = pop_all(&mut consumer);
        seen.extend(other.join().unwrap());
        assert_eq!(seen, [1]);
        assert!(matches!(Producer::<u64, _>::attach(Arc::clone(consumer.region())), Err(Error::Closed)));
    });
}

#[test]
fn a_place_has_one_owner() {
    model(|| {
        let layout = Layout::<u64>::new(1).unwrap().participants(3).unwrap();
        let (producer, _consumer) = create(heap(layout.bytes()), &layout).unwrap();
        let region = Arc::clone(producer.region());
        let other = Arc::clone(&region);
        let claim = |region| {
            Producer::<u64, _>::attach(region).inspect_err(|&error| {
                assert_eq!(error, Error::TooManyParticipants { participants: 3 });
            })
        };
        let rival = thread::spawn(move || {
            claim(other).map(|producer| (producer.id(), core::mem::forget(producer)).0)
        });
        let mine = claim(region);
        assert!(mine.is_ok() != rival.join().unwrap().is_ok(), "one and only one has the last place");
    });
}

#[test]
fn a_ring_is_seen_whole_or_not_at_all() {
    model(|| {
        let layout = |depth| Layout::<u64>::new(depth).unwrap().participants(2).unwrap();
        let region = heap(layout(2).bytes());
        let (mut producer, consumer) = create(Arc::clone(&region), &layout(2)).unwrap();
        producer.try_push(1).unwrap();
        drop((producer, consumer));

        // Made anew in another shape while somebody attaches: the old ring or the new one.
        let maker = Arc::clone(&region);
        let maker = thread::spawn(move || {
            if let Err(error) = layout(1).start(100).init(&maker) {
                assert!(matches!(error, Error::Taken { .. }), "{error}");
            }
        });
        match Consumer::<u64, _>::attach(region) {
            Ok(mut consumer) => {
                let expected = if consumer.capacity() == 2 { Ok(1) } else { Err(PopError::Empty) };
                assert_eq!(consumer.try_pop(), expected);
            }
            Err(error) => {
                assert!(matches!(error, Error::TooManyParticipants { .. } | Error::NotReady), "{error}")
            }
        }
        maker.join().unwrap();
    });
}

#[test]
fn a_refused_init_disturbs_nobody() {
    let (mut producer, consumer) = ring(1);
    drop(consumer);
    let layout = Layout::<u64>::new(1).unwrap();
    let error = layout.participants(4).unwrap().init(producer.region()).unwrap_err();
    assert_eq!(error, Error::Taken { role: Role::Participant(1) });
    producer.try_push(1).unwrap();
    let mut consumer = Rx::attach(Arc::clone(producer.region())).unwrap();
    assert_eq!(consumer.try_pop(), Ok(1));
}
