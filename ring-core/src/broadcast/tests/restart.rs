//! Producers that succeed one another, and rings that are made anew, while others are at work.
//!
//! # Safety
//!
//! A role is taken over only after its owner was forgotten.
#![allow(unsafe_code)]

use super::*;
use crate::broadcast::word::published;
use crate::sync::Ordering;
use crate::{AssumeGone, Error, Role};

/// The promise that every former owner is gone, which the models keep by forgetting it first.
fn gone() -> AssumeGone {
    // SAFETY: see above.
    unsafe { AssumeGone::all() }
}

/// How far a producer got with its last message when it was killed.
#[derive(Debug, Clone, Copy)]
enum Killed {
    BeforeTheMessage,
    AfterTheMessage,
    BeforeTheHint,
}

#[test]
fn a_successor_of_a_killed_producer_goes_on_beside_the_consumer() {
    for depth in 1..=scaled(1, 2) {
        for killed in [Killed::BeforeTheMessage, Killed::AfterTheMessage, Killed::BeforeTheHint] {
            model(move || {
                let (mut producer, mut consumer) = ring(depth, 0);
                let region = Arc::clone(producer.region());
                push(&mut producer);
                let slot = producer.begin();
                if !matches!(killed, Killed::BeforeTheMessage) {
                    slot.write(&message(1));
                }
                if matches!(killed, Killed::BeforeTheHint) {
                    slot.word().store(published(1), Ordering::Release);
                }
                core::mem::forget(producer);
                let receiver = thread::spawn(move || {
                    let mut seen = Seen::default();
                    seen.watch(&mut consumer, 1);
                    (seen, consumer)
                });
                let mut successor = Producer::take_over(region, &gone()).unwrap();
                let found = if matches!(killed, Killed::BeforeTheHint) { 2 } else { 1 };
                assert_eq!(successor.tail(), found);
                push(&mut successor);
                let (mut seen, mut consumer) = receiver.join().unwrap();
                successor.close();
                assert_eq!(seen.finish(&mut consumer), found + 1);
            });
        }
    }
}

#[test]
fn a_producer_goes_on_where_the_last_one_stopped() {
    model(|| {
        let (mut first, mut consumer) = ring(2, 0);
        let region = Arc::clone(first.region());
        let first = thread::spawn(move || push(&mut first));
        let taken = match Producer::attach(region) {
            Ok(mut second) => {
                push(&mut second);
                false
            }
            Err(error) => {
                assert_eq!(error, Error::Taken { role: Role::Producer });
                true
            }
        };
        first.join().unwrap();
        assert_eq!(consumer.try_pop(), Ok(message(0)));
        assert_eq!(consumer.try_pop(), if taken { Err(PopError::Empty) } else { Ok(message(1)) });
    });
}

#[test]
fn who_joins_while_a_ring_is_made_anew_joins_one_of_them_or_none() {
    model(|| {
        let (mut producer, consumer) = ring(2, 0);
        push(&mut producer);
        // What `init` does between taking the role and giving it back, but for the shape, which would take hours.
        let maker = thread::spawn(move || {
            producer.memory.header().begin_making();
            producer.memory.empty(100);
            producer.memory.header().end_making();
        });
        match Rx::join_oldest(Arc::clone(consumer.region())) {
            Ok(joined) => assert!([0, 100].contains(&joined.head()), "{}", joined.head()),
            Err(error) => assert_eq!(error, Error::NotReady),
        }
        maker.join().unwrap();
        let mut late = Rx::join(Arc::clone(consumer.region())).unwrap();
        assert_eq!(late.try_pop(), Err(PopError::Empty));
        assert_eq!(late.head(), 100);
    });
}

#[test]
fn who_is_left_in_a_ring_that_was_made_anew_learns_of_it() {
    model(|| {
        let (producer, mut consumer) = ring(2, 0);
        let region = Arc::clone(consumer.region());
        drop(producer);
        let maker = thread::spawn(move || {
            let layout = Layout::<Pair>::new(2).unwrap();
            layout.init(&region).unwrap();
            push(&mut Producer::attach(region).unwrap());
        });
        // A message of the new ring may come first.
        let first = consumer.try_pop();
        assert!(matches!(first, Ok(_) | Err(PopError::Empty | PopError::Corrupted)), "{first:?}");
        maker.join().unwrap();
        let last = (0..2).map(|_| consumer.try_pop()).last();
        assert_eq!(last, Some(Err(PopError::Corrupted)));
    });
}
