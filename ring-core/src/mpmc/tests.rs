//! Models of the ring with two threads and more. The same bodies run under loom and natively.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Consumer, Layout, PopError, Producer, PushError, UnfinishedPops, create};
use crate::testing::{heap, scaled, thread, wide_model as model};
use crate::{Error, HeapRegion, Role};

mod close;
#[cfg(loom)]
mod deaths;
mod kills;
mod ready;

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

/// Whether a call that failed for now is worth another. A model looks at all orders anyway, and ends soon if nobody waits.
fn again() -> bool {
    thread::yield_now();
    !cfg!(loom)
}

/// Pushes, and says whether it did: in a model there may be no room.
fn push(producer: &mut Tx, value: u64) -> bool {
    while let Err(error) = producer.try_push(value) {
        assert!(matches!(error, PushError::Full(_) | PushError::Busy(_)), "{error}");
        if !again() {
            return false;
        }
    }
    true
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

/// Sends from each of `producers` threads and receives in `consumers`, one of which is this one, which gets the rest.
fn transfers(
    depths: &[u64],
    (producers, consumers): (u64, u64),
    each: u64,
    send: impl Fn(&mut Tx, u64) -> bool + Copy + Send + Sync + 'static,
    receive: impl Fn(&mut Rx, &mut Vec<u64>) -> Result<(), PopError> + Copy + Send + Sync + 'static,
) {
    for &depth in depths {
        model(move || {
            let (first_tx, mut first_rx) = ring(depth);
            let others: Vec<Tx> = (1..producers).map(|_| more_tx(&first_tx)).collect();
            let senders: Vec<_> = core::iter::once(first_tx)
                .chain(others)
                .zip(1..)
                .map(|(mut producer, number)| {
                    thread::spawn(move || {
                        let values = (1..=each).map(|count| numbered(number, count));
                        values.filter(|&value| send(&mut producer, value)).collect::<Vec<u64>>()
                    })
                })
                .collect();
            // Natively, as many as each gets for sure.
            let share = (producers * each / consumers).max(1);
            let receive_share = move |mut consumer: Rx| {
                let mut seen = Vec::new();
                while (seen.len() as u64) < share {
                    match receive(&mut consumer, &mut seen) {
                        Ok(()) => {}
                        Err(error) => {
                            assert!(matches!(error, PopError::Empty | PopError::Busy), "{error}");
                            if !again() {
                                break;
                            }
                        }
                    }
                }
                (consumer, seen)
            };
            let receivers: Vec<_> = (1..consumers)
                .map(|_| {
                    let consumer = more_rx(&first_rx);
                    thread::spawn(move || receive_share(consumer))
                })
                .collect();
            let mut arrived = Vec::new();
            let (consumer, mut seen) = receive_share(first_rx);
            first_rx = consumer;
            for receiver in receivers {
                let (_, seen) = receiver.join().unwrap();
                assert_ordered(&seen);
                arrived.extend(seen);
            }
            let mut sent: Vec<u64> = senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
            while receive(&mut first_rx, &mut seen).is_ok() {}
            assert_ordered(&seen);
            arrived.extend(seen);
            arrived.sort_unstable();
            sent.sort_unstable();
            assert_eq!(arrived, sent, "lost or repeated");
        });
    }
}

fn receive_one(consumer: &mut Rx, seen: &mut Vec<u64>) -> Result<(), PopError> {
    seen.push(consumer.try_pop()?);
    Ok(())
}

#[test]
fn one_to_one_loses_nothing() {
    transfers(&[1, 2], (1, 1), scaled(2, 300), push, receive_one);
}

#[test]
fn two_producers_lose_nothing() {
    transfers(&[1, 2], (2, 1), scaled(1, 200), push, receive_one);
}

#[test]
fn two_consumers_lose_nothing() {
    transfers(&[1, 2], (1, 2), scaled(1, 200), push, receive_one);
}

#[test]
fn two_producers_keep_their_order() {
    model(|| {
        let (mut producer, mut consumer) = ring(4);
        let mut other = more_tx(&producer);
        let send = |producer: &mut Tx, number| {
            (1..=2).all(|count| producer.try_push(numbered(number, count)).is_ok())
        };
        let sender = thread::spawn(move || send(&mut other, 1));
        assert!(send(&mut producer, 2) && sender.join().unwrap(), "there is room, and nobody is slow");
        let seen: Vec<u64> = consumer.drain(5).collect();
        assert_ordered(&seen);
        assert_eq!(seen.len(), 4);
    });
}

#[test]
fn two_consumers_share_what_is_there() {
    model(|| {
        let (mut producer, mut consumer) = ring(2);
        let mut other = more_rx(&consumer);
        assert!(push(&mut producer, 1) && push(&mut producer, 2));
        let popper = thread::spawn(move || [other.try_pop().unwrap_or(0), other.try_pop().unwrap_or(0)]);
        let mine = [consumer.try_pop().unwrap_or(0), consumer.try_pop().unwrap_or(0)];
        let theirs = popper.join().unwrap();
        let mut all = [mine, theirs].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 0, 1, 2]);
    });
}

#[cfg(not(loom))]
#[test]
fn two_to_two_loses_nothing() {
    transfers(&[1, 2, 16, 1024], (2, 2), 300, push, receive_one);
}

#[test]
fn batches_lose_nothing() {
    model(|| {
        let (mut producer, mut consumer) = ring(2);
        let all: [u64; 3] = core::array::from_fn(|index| index as u64 + 1);
        let sender = thread::spawn(move || producer.push_slice(&all).unwrap_or(0));
        let mut batch = [0; 2];
        let popped = consumer.pop_slice(&mut batch).unwrap_or(0);
        let mut seen = batch[..popped].to_vec();
        seen.extend(consumer.drain(1));
        let sent = sender.join().unwrap();
        seen.extend(consumer.drain(4));
        assert_eq!(seen, all[..sent]);
    });
}

/// Writes in place, and now and then gives a reservation up.
fn send_in_place(producer: &mut Tx, value: u64) -> bool {
    loop {
        match producer.try_reserve() {
            Ok(mut grant) => {
                *grant = value;
                grant.commit();
                break;
            }
            Err(error) => assert!(matches!(error, PushError::Full(()) | PushError::Busy(()))),
        }
        if !again() {
            return false;
        }
    }
    if value % 3 == 1 {
        if let Ok(mut grant) = producer.try_reserve() {
            *grant = u64::MAX;
        }
    }
    true
}

fn receive_in_place(consumer: &mut Rx, seen: &mut Vec<u64>) -> Result<(), PopError> {
    let grant = consumer.try_peek()?;
    seen.push(*grant);
    grant.release();
    Ok(())
}

#[test]
fn grants_lose_nothing() {
    transfers(&[1, 2], (1, 1), scaled(1, 200), send_in_place, receive_in_place);
    transfers(&[2], (2, 1), scaled(1, 200), send_in_place, receive_in_place);
    transfers(&[2], (1, 2), scaled(1, 200), send_in_place, receive_in_place);
}

#[test]
fn a_slot_that_was_given_up_is_done_with() {
    model(|| {
        let (mut producer, mut consumer) = ring(1);
        let mut other = more_tx(&producer);
        let giver = thread::spawn(move || {
            if let Ok(mut grant) = producer.try_reserve() {
                *grant = 9;
            }
        });
        let pushed = other.try_push(1).is_ok();
        giver.join().unwrap();
        assert_eq!(consumer.try_pop().is_ok(), pushed);
    });
}

#[test]
fn a_message_that_was_put_back_reaches_the_other_consumer() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth);
            let mut other = more_rx(&consumer);
            push(&mut producer, 1);
            let other = thread::spawn(move || {
                let _ = other.try_peek().map(|grant| assert_eq!(*grant, 1));
                other
            });
            let first = consumer.try_pop();
            let _other = other.join().unwrap();
            let second = consumer.try_pop();
            assert!(first == Ok(1) && second == Err(PopError::Empty) || first.is_err() && second == Ok(1));
        });
    }
}

#[test]
fn what_was_put_back_is_found_where_nothing_else_is_ordered() {
    model(|| {
        let (mut producer, mut consumer) = ring(2);
        let mut other = more_rx(&consumer);
        push(&mut producer, 1);
        // The consumer's head gets past the message while the other looks at it.
        let grant = other.try_peek().unwrap();
        assert_eq!(consumer.try_pop(), Err(PopError::Empty));
        let count =
            |consumer: &Rx| consumer.seat.memory.header().state.put_back.load(crate::sync::Ordering::Relaxed);
        let before = count(&consumer);
        let seen = thread::spawn(move || {
            let count = count(&consumer);
            let popped = consumer.try_pop();
            (count, popped)
        });
        drop(grant);
        let (count, popped) = seen.join().unwrap();
        if count > before {
            assert_eq!(popped, Ok(1), "the count was seen, and so must be the message");
        }
    });
}

#[test]
fn the_readers_of_a_put_back_message_are_done_before_it_is_overwritten() {
    model(|| {
        let (mut producer, mut consumer) = ring(1);
        let mut other = more_rx(&consumer);
        push(&mut producer, 1);
        let other = thread::spawn(move || other.try_peek().map(|grant| grant.read()));
        let popper = thread::spawn(move || consumer.try_pop());
        let pushed = producer.try_push(2).is_ok();
        let _ = other.join().unwrap();
        let popped = popper.join().unwrap();
        assert!(!pushed || popped.is_ok_and(|value| [1, 2].contains(&value)));
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
        let layout = |depth| Layout::<u64>::new(depth).unwrap().participants(1).unwrap();
        let region = heap(layout(2).bytes());
        layout(2).init(&region).unwrap();
        Tx::attach(Arc::clone(&region)).unwrap().try_push(1).unwrap();

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
    model(|| {
        let (mut producer, consumer) = ring(1);
        drop(consumer);
        let layout = Layout::<u64>::new(1).unwrap();
        let error = layout.participants(4).unwrap().init(producer.region()).unwrap_err();
        assert_eq!(error, Error::Taken { role: Role::Participant(1) });
        producer.try_push(1).unwrap();
        let mut consumer = Rx::attach(Arc::clone(producer.region())).unwrap();
        assert_eq!(consumer.try_pop(), Ok(1));
    });
}
