//! Participants that are killed before each of their writes, whichever those are.
//!
//! `kills.rs` stops at steps that it knows, and runs natively too. Here the model stops a thread before its first write
//! to the region, then before its second, and so on until it lives: see [`death`].
//!
//! # Safety
//!
//! As in `kills.rs`: whoever is declared gone was killed, and by then does nothing any more.
#![allow(unsafe_code)]

mod places;
mod recovery;

use core::cell::Cell;
use core::iter;
use core::mem::{ManuallyDrop, forget};

use super::kills::{Gone, POLICIES, die, die_again, gone, pop_all_with, pop_and_die, push_and_die};
use super::*;
use crate::mpmc::seat::Seat;
use crate::mpmc::word::State;
use crate::sync::{Ordering, death};

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

/// Leaves behind what a leaked [`ReadGrant`](crate::mpmc::ReadGrant) does, but for the read that loom would see go on.
fn leak_message(consumer: &mut Rx) {
    let slot = consumer.take().unwrap();
    let _ = slot.read();
    consumer.seat.lent = Some(slot.position);
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

/// Nothing but these was seen, and none of them twice. Returns how many are missing.
fn assert_seen(mut seen: Vec<u64>, sent: &[u64]) -> usize {
    assert!(seen.iter().all(|value| sent.contains(value)), "{seen:x?} of {sent:x?}");
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "twice: {seen:x?}");
    sent.len() - seen.len()
}

#[test]
fn a_producer_is_killed_at_each_write_of_its_push() {
    for depth in [1, 2] {
        at_each_write(4, move |doom| {
            let gone = gone();
            let (mut producer, mut consumer) = ring(depth);
            let mut killed = more_tx(&producer);
            // What lies in the slots is no message any more, but for one of the producer's own.
            assert!((1..=depth).all(|_| push(&mut killed, 9)));
            assert_eq!(pop_rest(&mut consumer).len() as u64, depth);
            let mut sent: Vec<u64> = (1..depth).map(|count| numbered(1, count)).collect();
            assert!(sent.iter().all(|&value| push(&mut killed, value)));
            let last = numbered(1, depth);
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                let act = |killed: &mut Tx| killed.try_push(last).is_ok();
                act_or_die(doom, &his, killed, |killed| &killed.seat, act)
            });
            let mine = numbered(2, 1);
            producer.recover(&*gone).unwrap();
            sent.extend(producer.try_push(mine).ok().map(|()| mine));
            let mut seen: Vec<u64> = consumer.try_pop().into_iter().collect();
            let killed = killer.join().unwrap();
            let most = match &killed {
                Ok((_, true)) => 1..=1,
                // No room, or not done.
                Ok((_, false)) | Err(true) => 0..=0,
                Err(false) => 0..=1,
            };
            drop(killed);
            seen.extend(rest_of(&mut producer, &mut consumer, &gone));
            assert_ordered(&seen);
            assert!(most.contains(&seen.iter().filter(|&&value| value == last).count()), "{seen:x?}");
            seen.retain(|&value| value != last);
            assert_eq!(assert_seen(seen, &sent), 0, "lost");
        });
    }
}

/// Kills a consumer beside another one. In a full ring there is a producer, too, and in another one somebody clears up.
///
/// What the killed one does `pops` a message and returns it, or puts it back.
fn kill_a_consumer(pops: bool, act: impl Fn(&mut Rx) -> Option<u64> + Copy + Send + Sync + 'static) {
    let [redeliver, skip] = POLICIES;
    for (policy, depth, messages) in [(redeliver, 1, 1), (skip, 1, 1), (redeliver, 2, 2), (redeliver, 2, 1)] {
        at_each_write(3, move |doom| {
            let gone = gone();
            let (mut producer, mut consumer) = ring_with(depth, policy);
            let killed = more_rx(&consumer);
            let mut sent: Vec<u64> = (1..=messages).map(|count| numbered(1, count)).collect();
            assert!(sent.iter().all(|&value| push(&mut producer, value)));
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || act_or_die(doom, &his, killed, |killed| &killed.seat, act));
            if messages < depth {
                consumer.recover(&*gone).unwrap();
            }
            let mut seen: Vec<u64> = consumer.try_pop().into_iter().collect();
            if messages == depth {
                sent.extend(producer.try_push(numbered(2, 1)).ok().map(|()| numbered(2, 1)));
            }
            let killed = killer.join().unwrap();
            let missing = match (&killed, policy) {
                (Ok((_, popped)), _) => {
                    seen.extend(popped);
                    0..=0
                }
                (Err(true), UnfinishedPops::Redeliver) => 0..=0,
                (Err(true), UnfinishedPops::Skip) => 1..=1,
                // Before it had claimed a slot, or after it was done with it.
                (Err(false), _) => 0..=usize::from(pops && doom.0 > 0),
            };
            drop(killed);
            seen.extend(rest_of(&mut producer, &mut consumer, &gone));
            assert!(missing.contains(&assert_seen(seen, &sent)));
        });
    }
}

#[test]
fn a_consumer_is_killed_at_each_write_of_its_pop() {
    kill_a_consumer(true, |killed| killed.try_pop().ok());
}

#[test]
fn a_consumer_is_killed_at_each_write_as_it_puts_back() {
    kill_a_consumer(false, |killed| {
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
            // At most one that the killed had popped, but not returned.
            assert!(assert_seen(seen, &sent) <= usize::from(killed == Err(false)));
        });
    }
}
