//! Whoever leaves its place is killed, or who makes the ring.
//!
//! # Safety
//!
//! The region is as long as its layout says.
#![allow(unsafe_code)]

use alloc::vec;

use super::*;
use crate::mpmc::header::Header;
use crate::{Region, sync};

/// A handle that is dropped with a leaked grant gives a slot back, and then its place. Somebody else clears up, or comes
/// into the place.
#[test]
fn a_participant_is_killed_at_each_write_as_it_leaves() {
    let [redeliver, skip] = POLICIES;
    for (policy, in_push, is_succeeded) in
        [(redeliver, false, false), (redeliver, false, true), (skip, false, true), (redeliver, true, false)]
    {
        at_each_write(2, move |doom| {
            let gone = gone();
            let (mut producer, mut last) = ring_with(2, policy);
            let (mut killed_tx, mut killed_rx) = (more_tx(&producer), more_rx(&last));
            let id = if in_push { killed_tx.id() } else { killed_rx.id() };
            if in_push {
                forget(killed_tx.try_reserve());
            }
            push(&mut producer, 1);
            if !in_push {
                leak_message(&mut killed_rx);
                assert_eq!(last.try_pop(), Err(PopError::Empty));
            }
            let killed = if in_push {
                drop(killed_rx);
                (Some(killed_tx), None)
            } else {
                drop(killed_tx);
                (None, Some(killed_rx))
            };
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                let lives = doom.befalls(|| drop(killed)).is_some();
                if !lives {
                    die(&his, id);
                }
                lives
            });
            last.recover(&*gone).unwrap();
            let mut seen: Vec<u64> = last.try_pop().into_iter().collect();
            let lives = killer.join().unwrap();
            if is_succeeded {
                drop(Tx::take_over(Arc::clone(producer.region()), id, &*gone).unwrap());
            }
            seen.extend(rest_of(&mut producer, &mut last, &gone));
            // Put back, unless it was killed before that.
            let is_skipped = policy == UnfinishedPops::Skip && !lives && doom.0 == 0;
            assert_eq!(assert_seen(seen, &[1]), usize::from(is_skipped));
        });
    }
}

#[test]
fn a_maker_is_killed_at_each_write() {
    let layout = Layout::<u64>::new(1).unwrap().participants(2).unwrap();
    at_each_write(20, move |doom| {
        let region = heap(layout.bytes());
        // SAFETY: the region holds a header, which is atomics.
        unsafe { sync::place(region.base().cast::<Header>(), Header::new) };
        let his = Arc::clone(&region);
        let killer = thread::spawn(move || doom.befalls(|| layout.init(&his).unwrap()));
        let early = Tx::attach(Arc::clone(&region));
        let lives = killer.join().unwrap().is_some();
        let producer = match early {
            Ok(producer) => Ok(producer),
            Err(error) => {
                assert_eq!(error, Error::NotReady);
                Tx::attach(Arc::clone(&region))
            }
        };
        let mut producer = match producer {
            Ok(producer) => producer,
            Err(error) => {
                assert_eq!(error, Error::NotReady);
                assert!(!lives);
                // Nobody can tell a dead first maker from a slow one.
                let made = layout.init(&region);
                assert_eq!(made, if doom.0 == 0 { Ok(()) } else { Err(Error::NotReady) });
                return;
            }
        };
        let mut consumer = Rx::attach(region).unwrap();
        assert_eq!(rest_of(&mut producer, &mut consumer, &gone()), []);
    });
}

/// Over a ring of another shape, whose one participant is dead, beside one that attaches.
#[test]
fn a_maker_is_killed_at_each_write_as_it_makes_a_ring_anew() {
    let layout = |depth| Layout::<u64>::new(depth).unwrap().participants(2).unwrap();
    at_each_write(22, move |doom| {
        let gone = gone();
        let region = heap(layout(2).bytes());
        layout(2).init(&region).unwrap();
        // Only looks at owner words from now on.
        let mut dead = ManuallyDrop::new(Tx::attach(Arc::clone(&region)).unwrap());
        dead.try_push(1).unwrap();
        die(&gone, 1);
        let his = (Arc::clone(&region), Arc::clone(&gone));
        let killer = thread::spawn(move || doom.befalls(|| layout(1).start(100).init_over(&his.0, &*his.1)));
        let attach = || Rx::take_over(Arc::clone(&region), 2, &*gone);
        // The old ring with what is left in it, or the new one, which is empty.
        let mut left = vec![1];
        let mut check = |consumer: &mut Rx| match consumer.capacity() {
            2 => assert_eq!(pop_rest(consumer), core::mem::take(&mut left)),
            depth => assert_eq!((depth, pop_rest(consumer)), (1, Vec::new())),
        };
        match attach() {
            Ok(mut consumer) => {
                check(&mut consumer);
                let refused = consumer.capacity() == 2;
                let made = killer.join().unwrap();
                assert_eq!(consumer.try_pop(), Err(PopError::Empty));
                assert!(made.is_none_or(|made| made.is_err() == refused));
                assert!(consumer.participant(2).unwrap().held);
            }
            Err(error) => {
                assert!(matches!(error, Error::NotReady | Error::Taken { .. }), "{error}");
                assert!(killer.join().unwrap().is_none_or(|made| made.is_ok()));
            }
        }
        for id in 1..=2 {
            let owner = dead.participant(id).unwrap();
            if owner.held {
                die_again(&gone, id, owner.incarnation);
            }
        }
        match attach() {
            Ok(mut consumer) => {
                check(&mut consumer);
                assert!(!consumer.participant(1).unwrap().held);
            }
            Err(error) => assert_eq!(error, Error::NotReady),
        }
        layout(1).init_over(&region, &*gone).unwrap();
        let (mut producer, mut consumer) =
            (Tx::attach(Arc::clone(&region)).unwrap(), Rx::attach(region).unwrap());
        assert_eq!(rest_of(&mut producer, &mut consumer, &gone), []);
    });
}
