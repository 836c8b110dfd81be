//! Participants that are killed before each of their writes, whichever those are.
//!
//! `kills.rs` stops at steps that it knows, and runs natively too. Here the model stops a thread before its first write
//! to the region, then before its second, and so on until it lives: see [`death`].
//!
//! # Safety
//!
//! As in `kills.rs`: whoever is declared gone was killed, and by then does nothing any more.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::iter;
use core::mem::{ManuallyDrop, forget};

use super::kills::{Gone, POLICIES, die, die_again, gone, pop_all_with, pop_and_die, push_and_die};
use super::*;
use crate::Region;
use crate::mpmc::header::Header;
use crate::mpmc::seat::Seat;
use crate::mpmc::word::State;
use crate::sync::{self, Ordering, death};

std::thread_local! {
    /// Whether anybody was killed. All threads of a model are one to the system.
    static STRUCK: Cell<bool> = const { Cell::new(false) };
}

/// How many writes the one who is killed may make.
#[derive(Debug, Clone, Copy)]
struct Doom(u64);

impl Doom {
    fn befalls<R>(self, act: impl FnOnce() -> R) -> Option<R> {
        let outcome = death::after(self.0, act);
        STRUCK.set(STRUCK.get() || outcome.is_none());
        outcome
    }
}

/// Runs a model with a thread that is killed before its first write, before its second, and so on, until it lives in
/// each execution. It makes `least` writes or more.
fn at_each_write(least: u64, scenario: impl Fn(Doom) + Copy + Send + Sync + 'static) {
    for writes in 0.. {
        STRUCK.set(false);
        model(move || scenario(Doom(writes)));
        if !STRUCK.get() {
            assert!(writes >= least, "only {writes} writes");
            return;
        }
    }
}

/// Whether a participant has claimed a slot.
fn has_claim(seat: &Seat<u64, Arc<HeapRegion>>) -> bool {
    (0..seat.memory.depth()).any(|index| {
        // ORDERING: Relaxed: asked by whoever claimed it.
        let word = seat.memory.slot(index).word().load(Ordering::Relaxed);
        matches!(State::of(word), State::Reading(id) | State::Writing(id) if id == seat.id)
    })
}

/// Lets a participant act, or be killed and declared gone: then says whether it had a slot.
fn act_or_die<H, R>(
    doom: Doom,
    gone: &Gone,
    handle: H,
    seat: fn(&H) -> &Seat<u64, Arc<HeapRegion>>,
    act: impl FnOnce(&mut H) -> R,
) -> Result<(H, R), bool> {
    let mut handle = ManuallyDrop::new(handle);
    match doom.befalls(|| act(&mut handle)) {
        Some(result) => Ok((ManuallyDrop::into_inner(handle), result)),
        None => {
            let had_claim = has_claim(seat(&handle));
            die(gone, seat(&handle).id);
            Err(had_claim)
        }
    }
}

/// Pops all that is there.
fn pop_rest(consumer: &mut Rx) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match consumer.try_pop() {
            Ok(value) => seen.push(value),
            Err(error) => {
                assert_eq!(error, PopError::Empty, "nobody is in the way");
                return seen;
            }
        }
    }
}

/// Clears up after the dead and returns the messages that are left. From then on all slots and all places are of use.
fn rest_of(producer: &mut Tx, consumer: &mut Rx, gone: &Gone) -> Vec<u64> {
    consumer.recover(&**gone).unwrap();
    let rest = pop_rest(consumer);
    for _ in 0..2 {
        let all: Vec<u64> = (1..=producer.capacity()).map(|count| numbered(3, count)).collect();
        assert_eq!(producer.push_slice(&all), Ok(all.len()));
        assert_eq!(producer.try_push(0), Err(PushError::Full(0)));
        assert_eq!(pop_rest(consumer), all);
    }
    let places = (1..).take_while(|&id| consumer.participant(id).is_some()).count();
    let others: Vec<Rx> = iter::from_fn(|| Rx::attach(Arc::clone(producer.region())).ok()).collect();
    assert_eq!(others.len() + 2, places);
    rest
}

/// Each of these was seen once, but at most `missing`, and nothing else was. Returns how many are missing.
fn assert_seen(mut seen: Vec<u64>, sent: &[u64], missing: usize) -> usize {
    assert_eq!(seen.iter().filter(|value| !sent.contains(value)).count(), 0, "{seen:x?} of {sent:x?}");
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "twice: {seen:x?}");
    assert!(seen.len() + missing >= sent.len(), "lost: {seen:x?} of {sent:x?}");
    sent.len() - seen.len()
}

#[test]
fn a_producer_is_killed_at_each_write_of_its_pushes() {
    for depth in [1, 2] {
        at_each_write(4 * depth, move |doom| {
            let gone = gone();
            let (mut producer, mut consumer) = ring(depth);
            let killed = more_tx(&producer);
            // What lies in the slots is no message any more.
            assert!((1..=depth).all(|_| push(&mut producer, 9)));
            assert_eq!(pop_rest(&mut consumer).len() as u64, depth);
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                act_or_die(
                    doom,
                    &his,
                    killed,
                    |killed| &killed.seat,
                    |killed| (1..=depth).filter(|&count| killed.try_push(numbered(1, count)).is_ok()).count(),
                )
            });
            let mine = producer.try_push(numbered(2, 1)).is_ok();
            let mut seen: Vec<u64> = consumer.try_pop().into_iter().collect();
            let killed = killer.join().unwrap();
            let (alive, sent) = killed.map_or((None, None), |(killed, sent)| (Some(killed), Some(sent)));
            drop(alive);
            seen.extend(rest_of(&mut producer, &mut consumer, &gone));
            assert_ordered(&seen);
            let by_killed = seen.iter().filter(|&&value| value >> 32 == 1).count();
            assert!(sent.is_none_or(|sent| sent == by_killed), "{seen:x?}");
            let ends: Vec<u64> = (1..=depth).map(|count| numbered(1, count)).collect();
            assert_seen(
                seen,
                &[&ends[..], &[numbered(2, 1)][..usize::from(mine)]].concat(),
                ends.len() - by_killed,
            );
        });
    }
}

/// Kills a consumer in what it does with the first of the messages that fill the ring, beside another consumer and a
/// producer. `act` returns what it popped.
fn kill_a_consumer(least: u64, act: impl Fn(&mut Rx) -> Option<u64> + Copy + Send + Sync + 'static) {
    for (policy, depth) in POLICIES.into_iter().flat_map(|policy| [(policy, 1), (policy, 2)]) {
        at_each_write(least, move |doom| {
            let gone = gone();
            let (mut producer, mut consumer) = ring_with(depth, policy);
            let killed = more_rx(&consumer);
            let mut sent: Vec<u64> = (1..=depth).map(|count| numbered(1, count)).collect();
            assert!(sent.iter().all(|&value| push(&mut producer, value)));
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || act_or_die(doom, &his, killed, |killed| &killed.seat, act));
            consumer.recover(&*gone).unwrap();
            let mut seen: Vec<u64> = consumer.try_pop().into_iter().collect();
            sent.extend(producer.try_push(numbered(2, 1)).ok().map(|()| numbered(2, 1)));
            let killed = killer.join().unwrap();
            let (most, exact) = match (&killed, policy) {
                (Ok((_, popped)), _) => {
                    seen.extend(popped);
                    (0, true)
                }
                (Err(true), UnfinishedPops::Redeliver) => (0, true),
                (Err(true), UnfinishedPops::Skip) => (1, true),
                // Before it had claimed a slot, or after it was done with it.
                (Err(false), _) => (usize::from(doom.0 > 0), false),
            };
            drop(killed);
            seen.extend(rest_of(&mut producer, &mut consumer, &gone));
            let missing = assert_seen(seen, &sent, most);
            assert!(!exact || missing == most, "seen although it was to be skipped");
        });
    }
}

#[test]
fn a_consumer_is_killed_at_each_write_of_its_pop() {
    kill_a_consumer(3, |killed| killed.try_pop().ok());
}

#[test]
fn a_consumer_is_killed_at_each_write_as_it_puts_back() {
    kill_a_consumer(3, |killed| {
        let _ = killed.try_peek();
        None
    });
}

#[test]
fn a_consumer_is_killed_at_each_write_to_the_end_of_the_ring() {
    for depth in [1, 2] {
        at_each_write(3 * depth + 1, move |doom| {
            let gone = gone();
            let (mut producer, mut consumer) = ring(depth);
            let killed = more_rx(&consumer);
            let sent: Vec<u64> = (1..=depth).collect();
            assert!(sent.iter().all(|&value| push(&mut producer, value)));
            producer.close();
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                // What it popped to the end, also where it was killed later.
                let mut popped = Vec::new();
                let killed = act_or_die(
                    doom,
                    &his,
                    killed,
                    |killed| &killed.seat,
                    |killed| {
                        popped.extend(iter::from_fn(|| killed.try_pop().ok()));
                    },
                );
                (killed.map(drop), popped)
            });
            let mut seen: Vec<u64> = consumer.try_pop().into_iter().collect();
            let (killed, popped) = killer.join().unwrap();
            seen.extend(pop_all_with(&mut consumer, &gone));
            assert_eq!(consumer.try_pop(), Err(PopError::Closed));
            seen.extend(popped);
            assert_seen(seen, &sent, usize::from(killed == Err(false)));
        });
    }
}

/// A recoverer that has a claim of its own clears up after one that is dead, and a third after both.
#[test]
fn a_recoverer_is_killed_at_each_write_of_its_recovery() {
    for (policy, in_push) in POLICIES.into_iter().flat_map(|policy| [(policy, false), (policy, true)]) {
        at_each_write(5, move |doom| {
            let gone = gone();
            let (mut producer, mut last) = ring_with(2, policy);
            let mut killed = more_rx(&last);
            push(&mut producer, 1);
            forget(killed.try_peek());
            let sent = if in_push {
                push_and_die(more_tx(&producer), 2, 1, &gone);
                &[1][..]
            } else {
                push(&mut producer, 2);
                assert_eq!(pop_and_die(more_rx(&last), 1, &gone), None);
                &[1, 2]
            };
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                act_or_die(doom, &his, killed, |killed| &killed.seat, |killed| killed.recover(&*his).unwrap())
            });
            last.recover(&*gone).unwrap();
            let mut seen: Vec<u64> = last.try_pop().into_iter().collect();
            let killed = killer.join().unwrap();
            let of_killed = usize::from(killed.is_err());
            drop(killed);
            seen.extend(rest_of(&mut producer, &mut last, &gone));
            let missing = match policy {
                UnfinishedPops::Redeliver => 0,
                UnfinishedPops::Skip => usize::from(!in_push) + of_killed,
            };
            assert_eq!(assert_seen(seen, sent, missing), missing);
        });
    }
}

/// Kills what comes into the place of a dead consumer, beside a third one that clears up.
#[test]
fn a_successor_is_killed_at_each_write_as_it_attaches() {
    for policy in POLICIES {
        at_each_write(5, move |doom| {
            let gone = gone();
            let (mut producer, dead) = ring_with(2, policy);
            let mut last = more_rx(&dead);
            let id = dead.id();
            push(&mut producer, 1);
            assert_eq!(pop_and_die(dead, 1, &gone), None);
            let his = Arc::clone(&gone);
            let region = Arc::clone(producer.region());
            let killer = thread::spawn(move || doom.befalls(|| Rx::take_over(region, id, &*his).ok()));
            last.recover(&*gone).unwrap();
            let mut seen: Vec<u64> = last.try_pop().into_iter().collect();
            let successor = killer.join().unwrap();
            let owner = last.participant(id).unwrap();
            if successor.is_none() && owner.held {
                die_again(&gone, id, owner.incarnation);
            }
            drop(successor);
            // And again, in the place of both.
            let mut consumer = Rx::take_over(Arc::clone(producer.region()), id, &*gone).unwrap();
            seen.extend(pop_rest(&mut consumer));
            drop(consumer);
            seen.extend(rest_of(&mut producer, &mut last, &gone));
            assert!(seen.iter().eq([1].iter().filter(|_| policy == UnfinishedPops::Redeliver)), "{seen:?}");
        });
    }
}

/// A handle that is dropped with a leaked grant gives a slot back, and then its place.
#[test]
fn a_participant_is_killed_at_each_write_as_it_leaves() {
    for (policy, in_push) in POLICIES.into_iter().flat_map(|policy| [(policy, false), (policy, true)]) {
        at_each_write(2, move |doom| {
            let gone = gone();
            let (mut producer, mut last) = ring_with(2, policy);
            let (killed_tx, killed_rx) = if in_push {
                let mut killed = more_tx(&producer);
                forget(killed.try_reserve());
                push(&mut producer, 1);
                (Some(killed), None)
            } else {
                let mut killed = more_rx(&last);
                push(&mut producer, 1);
                forget(killed.try_peek());
                (None, Some(killed))
            };
            let id = killed_tx.as_ref().map_or(3, Tx::id);
            assert!(killed_rx.as_ref().is_none_or(|killed| killed.id() == id));
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                let lives = doom.befalls(|| drop((killed_tx, killed_rx))).is_some();
                if !lives {
                    die(&his, id);
                }
                lives
            });
            last.recover(&*gone).unwrap();
            let mut seen: Vec<u64> = last.try_pop().into_iter().collect();
            let lives = killer.join().unwrap();
            drop(Tx::take_over(Arc::clone(producer.region()), id, &*gone).unwrap());
            seen.extend(rest_of(&mut producer, &mut last, &gone));
            let may_miss = policy == UnfinishedPops::Skip && !in_push && !lives;
            let missing = assert_seen(seen, &[1], usize::from(may_miss));
            // Put back, unless it was killed before that.
            assert_eq!(missing, usize::from(may_miss && doom.0 == 0));
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
    at_each_write(20, move |doom| {
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
        let check = |consumer: &mut Rx| match consumer.capacity() {
            // Its message was in it, and is no more than once.
            2 => assert_eq!(pop_rest(consumer), [1]),
            depth => assert_eq!((depth, pop_rest(consumer)), (1, Vec::new())),
        };
        match attach() {
            Ok(mut consumer) => {
                check(&mut consumer);
                let made = killer.join().unwrap();
                assert_eq!(consumer.try_pop(), Err(PopError::Empty));
                if made == Some(Ok(())) {
                    assert_eq!(consumer.capacity(), 1);
                }
            }
            Err(error) => {
                assert!(matches!(error, Error::NotReady | Error::Taken { .. }), "{error}");
                let _ = killer.join().unwrap();
            }
        }
        for id in 1..=2 {
            let owner = dead.participant(id).unwrap();
            if owner.held {
                die_again(&gone, id, owner.incarnation);
            }
        }
        match attach() {
            Ok(consumer) => drop(consumer),
            Err(error) => assert_eq!(error, Error::NotReady),
        }
        layout(1).init_over(&region, &*gone).unwrap();
        let (mut producer, mut consumer) =
            (Tx::attach(Arc::clone(&region)).unwrap(), Rx::attach(region).unwrap());
        assert_eq!(rest_of(&mut producer, &mut consumer, &gone), []);
    });
}
