//! Roles that change hands, and rings that are made anew, while others are at work.
//!
//! # Safety
//!
//! A role is taken over only after its owner was forgotten.
#![allow(unsafe_code)]

use super::*;
use crate::{AssumeGone, Error, Role};

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
