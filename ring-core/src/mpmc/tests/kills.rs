//! Participants that are killed at steps that are picked by hand, and who clears up after them. `deaths.rs` finds the steps itself.
//!
//! # Safety
//!
//! Only who was forgotten, or was only ever made to die, is declared gone, and by the thread that did it.
#![allow(unsafe_code)]

use super::*;
use crate::Registry;
use crate::mpmc::keeper::Keeper;
use crate::mpmc::seat::Seat;

pub(super) type Gone = Arc<Registry<4>>;

pub(super) fn gone() -> Gone {
    Arc::new(Registry::new())
}

/// Says that the handle with this number, which was forgotten, is dead.
pub(super) fn die(gone: &Registry<4>, id: u16) {
    die_again(gone, id, 1);
}

/// As [`die`], where the place had others before.
pub(super) fn die_again(gone: &Registry<4>, id: u16, incarnation: u64) {
    // SAFETY: see above; each number is claimed once in these models unless said otherwise.
    unsafe { gone.declare_gone(Role::Participant(id), incarnation) };
}

/// Pushes as far as `step`, and dies.
pub(super) fn push_and_die(mut producer: Tx, value: u64, step: u32, gone: &Registry<4>) {
    let id = producer.id();
    if let Ok(slot) = producer.claim() {
        if step >= 1 {
            slot.write(&value);
        }
        if step >= 2 {
            producer.publish(&slot);
        }
    }
    core::mem::forget(producer);
    die(gone, id);
}

/// Pops as far as `step`, and dies. Returns what it popped to the end.
pub(super) fn pop_and_die(mut consumer: Rx, step: u32, gone: &Registry<4>) -> Option<u64> {
    let id = consumer.id();
    let mut popped = None;
    if let Ok(slot) = consumer.take() {
        let value = (step >= 1).then(|| slot.read());
        if step >= 2 {
            consumer.finish(&slot);
            popped = value;
        }
    }
    core::mem::forget(consumer);
    die(gone, id);
    popped
}

/// Pops until the ring ends, recovering the dead.
pub(super) fn pop_all_with(consumer: &mut Rx, gone: &Gone) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match consumer.try_pop_with(&**gone) {
            Ok(value) => seen.push(value),
            Err(PopError::Empty | PopError::Busy) => thread::yield_now(),
            Err(PopError::Closed) => return seen,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
    }
}

pub(super) const POLICIES: [UnfinishedPops; 2] = [UnfinishedPops::Redeliver, UnfinishedPops::Skip];

#[test]
fn a_killed_producer_is_skipped() {
    for depth in [1, 2] {
        for step in 0..=2 {
            model(move || {
                let gone = gone();
                let (killed, mut consumer) = ring(depth);
                let mut producer = more_tx(&killed);
                let his = Arc::clone(&gone);
                let killer = thread::spawn(move || push_and_die(killed, 1, step, &his));
                // Beside it a producer, and then a consumer as well.
                producer.recover(&*gone).unwrap();
                let sent = u64::from(producer.try_push(2).is_ok());
                consumer.recover(&*gone).unwrap();
                let first = consumer.try_pop();
                killer.join().unwrap();
                producer.close();
                let mut seen = pop_all_with(&mut consumer, &gone);
                seen.extend(first);
                let of_killed = seen.iter().filter(|&&value| value == 1).count();
                // A claim that came after the close, or found the ring full, has pushed nothing.
                assert!(of_killed <= usize::from(step == 2), "{seen:?}");
                assert_eq!(seen.iter().filter(|&&value| value == 2).count() as u64, sent);
                assert_eq!(seen.len() as u64, of_killed as u64 + sent);
            });
        }
    }
}

#[test]
fn the_message_of_a_killed_consumer_comes_again_or_not() {
    for policy in POLICIES {
        for depth in [1, 2] {
            for step in 0..=2 {
                model(move || {
                    let gone = gone();
                    let (mut producer, mut consumer) = ring_with(depth, policy);
                    let killed = more_rx(&consumer);
                    let his = Arc::clone(&gone);
                    assert!((1..=depth).all(|value| push(&mut producer, value)));
                    producer.close();
                    let killer = thread::spawn(move || pop_and_die(killed, step, &his));
                    consumer.recover(&*gone).unwrap();
                    let first = consumer.try_pop();
                    let popped = killer.join().unwrap();
                    let mut seen = pop_all_with(&mut consumer, &gone);
                    seen.extend(first);
                    seen.extend(popped);
                    seen.sort_unstable();
                    let is_cut_short = policy == UnfinishedPops::Skip && step < 2;
                    let is_whole = seen.iter().copied().eq(1..=depth);
                    assert!(is_whole || is_cut_short && seen.len() as u64 == depth - 1, "{seen:?}");
                });
            }
        }
    }
}

#[test]
fn a_producer_gets_past_a_killed_consumer() {
    for policy in POLICIES {
        model(move || {
            let gone = gone();
            let (mut producer, killed) = ring_with(1, policy);
            let mut consumer = more_rx(&killed);
            push(&mut producer, 1);
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || pop_and_die(killed, 1, &his));
            producer.recover(&*gone).unwrap();
            let sent = producer.try_push(2).is_ok();
            producer.close();
            let mut seen: Vec<u64> = consumer.try_pop().into_iter().collect();
            killer.join().unwrap();
            seen.extend(pop_all_with(&mut consumer, &gone));
            let all = if sent { &[1, 2][..] } else { &[1] };
            // What the killed consumer took may have been the one or the other.
            let misses_one = seen.len() + 1 == all.len() && seen.iter().all(|value| all.contains(value));
            assert!(seen == all || policy == UnfinishedPops::Skip && misses_one, "{seen:?} of {all:?}");
        });
    }
}

#[test]
fn what_the_dead_did_happened_before_what_a_third_one_does() {
    for in_push in [true, false] {
        model(move || {
            let gone = gone();
            let (mut producer, mut consumer) = ring(1);
            let recoverer = more_rx(&consumer);
            let his = Arc::clone(&gone);
            let killer = if in_push {
                let killed = more_tx(&producer);
                thread::spawn(move || push_and_die(killed, 1, 1, &his))
            } else {
                push(&mut producer, 1);
                let killed = more_rx(&consumer);
                thread::spawn(move || assert_eq!(pop_and_die(killed, 1, &his), None))
            };
            let his = Arc::clone(&gone);
            let recoverer = thread::spawn(move || recoverer.recover(&*his).map(|_| recoverer));
            // The one who died read or wrote the slot, another cleared up, and this one writes it.
            if !in_push {
                let _ = consumer.try_pop();
            }
            let _ = producer.try_push(2);
            killer.join().unwrap();
            let _recoverer = recoverer.join().unwrap().unwrap();
        });
    }
}

/// The owner word is all that leads from the dead to who clears up: a successor knew of the death, had to leave again, and
/// so nobody needs to be asked any more.
#[test]
fn what_the_dead_did_happened_before_a_place_that_a_successor_left_is_cleared_up() {
    for in_push in [true, false] {
        model(move || {
            let gone = gone();
            let (mut producer, consumer) = ring(1);
            let killed = if in_push { Ok(more_tx(&producer)) } else { Err(more_rx(&consumer)) };
            let dead = killed.as_ref().map_or_else(Rx::id, Tx::id);
            if !in_push {
                push(&mut producer, 1);
            }
            // Whoever looked at the place before it had this owner becomes its keeper now.
            let region = Arc::clone(producer.region());
            let seat = &consumer.seat;
            let kept = seat.keeper().keep(&seat.memory, dead, &*gone).unwrap();
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                match killed {
                    Ok(killed) => push_and_die(killed, 1, 1, &his),
                    Err(killed) => assert_eq!(pop_and_die(killed, 1, &his), None),
                }
                // It stays where the keeper has ended before it.
                if let Err(error) = Seat::<u64, _>::claim(&region, dead, &*his) {
                    assert_eq!(error, Error::Taken { role: Role::Participant(dead) });
                }
            });
            // Asks nobody: the place is free, or still owned as far as this one knows.
            let left_by = kept.left_by(&crate::AssumeAlive);
            if left_by.is_some() {
                assert_eq!(kept.sweep(), 1, "the slot of the dead was not seen");
            }
            kept.end();
            // Into the slot that the dead wrote or read, if it was freed.
            let _ = producer.try_push(2);
            let _ = core::mem::ManuallyDrop::new(consumer).try_pop();
            killer.join().unwrap();
        });
    }
}

/// Clears up after `id` as far as `step`, and dies.
fn recover_and_die(recoverer: &Tx, id: u16, step: u32, gone: &Registry<4>) {
    let seat = &recoverer.seat;
    let Some(kept) = seat.keeper().keep(&seat.memory, id, gone) else { return };
    let Some(owner) = kept.left_by(gone) else { return kept.end() };
    for index in 0..seat.memory.depth() {
        if step > 0 {
            kept.finish(index);
        }
    }
    if step >= 2 {
        seat.memory.announce();
    }
    if step >= 3 {
        kept.free(owner);
    }
    if step >= 4 {
        kept.end();
    }
}

#[test]
fn a_killed_recoverer_is_recovered_from() {
    for policy in POLICIES {
        for step in 0..=4 {
            model(move || {
                let gone = gone();
                let (mut producer, consumer) = ring_with(2, policy);
                let mut last = more_rx(&consumer);
                let recoverer = more_tx(&producer);
                push(&mut producer, 1);
                producer.close();
                let dead = consumer.id();
                pop_and_die(consumer, 1, &gone);
                let his = Arc::clone(&gone);
                let killer = thread::spawn(move || {
                    let id = recoverer.id();
                    recover_and_die(&recoverer, dead, step, &his);
                    core::mem::forget(recoverer);
                    die(&his, id);
                });
                // Beside it and after it.
                last.recover(&*gone).unwrap();
                let first = last.try_pop();
                killer.join().unwrap();
                let mut seen = pop_all_with(&mut last, &gone);
                seen.extend(first);
                assert_eq!(seen.len(), usize::from(policy == UnfinishedPops::Redeliver));
                // All that died gave their places back, or will.
                last.recover(&*gone).unwrap();
                for id in 1..=4 {
                    assert_eq!(last.participant(id).unwrap().held, id == last.id() || id == producer.id());
                }
            });
        }
    }
}

#[test]
fn two_recoverers_finish_a_slot_once() {
    for policy in POLICIES {
        model(move || {
            let gone = gone();
            let (mut producer, consumer) = ring_with(2, policy);
            let mut last = more_rx(&consumer);
            push(&mut producer, 1);
            pop_and_die(consumer, 1, &gone);
            let his = Arc::clone(&gone);
            let other = thread::spawn(move || {
                let finished = producer.recover(&*his).unwrap();
                core::mem::forget(producer);
                finished
            });
            let finished = last.recover(&*gone).unwrap();
            assert!(finished <= 1);
            let popped = last.try_pop().is_ok();
            assert_eq!(other.join().unwrap() + finished, 1);
            let popped_late = last.try_pop().is_ok();
            assert_eq!(popped || popped_late, policy == UnfinishedPops::Redeliver);
            assert!(!(popped && popped_late));
        });
    }
}

/// The successor pops what its predecessor had begun to: the same word in the same slot, by somebody else.
#[test]
fn a_late_recoverer_leaves_a_successor_alone() {
    model(|| {
        let gone = gone();
        let (mut producer, consumer) = ring_with(1, UnfinishedPops::Redeliver);
        let region = Arc::clone(producer.region());
        push(&mut producer, 1);
        let dead = consumer.id();
        pop_and_die(consumer, 1, &gone);
        let his = Arc::clone(&gone);
        let late = thread::spawn(move || {
            let finished = producer.recover(&*his).unwrap();
            (producer, finished)
        });
        if let Ok((memory, id, owner)) = Seat::claim(&region, dead, &*gone) {
            // A consumer in that place, without the sweep for others that attaching adds.
            let mut successor = Rx::over(Seat::new(memory, id, owner, region));
            let grant = successor.try_peek().expect("put back");
            assert_eq!(*grant, 1);
            let still = grant.read();
            grant.release();
            assert_eq!(still, 1);
            let _late = late.join().unwrap();
            assert_eq!(successor.try_pop(), Err(PopError::Empty), "delivered twice");
        } else {
            // Its claim had the other leave the place alone, or the other was faster.
            let (producer, finished) = late.join().unwrap();
            assert_eq!(finished + producer.recover(&*gone).unwrap(), 1);
            let mut last = Rx::attach(region).unwrap();
            assert_eq!(last.try_pop(), Ok(1));
            assert_eq!(last.try_pop(), Err(PopError::Empty));
        }
    });
}

#[test]
fn a_successor_finishes_what_is_left_in_its_place() {
    for policy in POLICIES {
        model(move || {
            let gone = gone();
            let (mut producer, killed) = ring_with(2, policy);
            let region = Arc::clone(producer.region());
            let id = killed.id();
            push(&mut producer, 1);
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || pop_and_die(killed, 1, &his));
            let first = Rx::take_over(Arc::clone(&region), id, &*gone);
            assert_eq!(killer.join().unwrap(), None);
            let mut successor = match first {
                Ok(successor) => successor,
                Err(error) => {
                    assert_eq!(error, Error::Taken { role: Role::Participant(id) });
                    Rx::take_over(Arc::clone(&region), id, &*gone).unwrap()
                }
            };
            let expected = if policy == UnfinishedPops::Redeliver { Ok(1) } else { Err(PopError::Empty) };
            assert_eq!(successor.try_pop(), expected);
            push(&mut producer, 2);
            assert_eq!(successor.try_pop(), Ok(2));
        });
    }
}

#[test]
fn a_keeper_that_left_is_no_keeper() {
    model(|| {
        let gone = gone();
        let (producer, consumer) = ring(1);
        let dead = consumer.id();
        pop_and_die(consumer, 0, &gone);
        let memory = &producer.seat.memory;
        // A number that no participant has.
        for word in [3 << 10, 3 << 10 | 5, u64::MAX] {
            memory.entry(dead).keeper.store(word, crate::sync::Ordering::Relaxed);
            Keeper::new(producer.id(), 3).keep(memory, dead, &*gone).expect("nobody keeps it").end();
        }
        // One of the future is alive: its owner word was not seen yet.
        memory.entry(dead).keeper.store(9 << 10 | 1, crate::sync::Ordering::Relaxed);
        assert!(Keeper::new(producer.id(), 3).keep(memory, dead, &*gone).is_none());
    });
}
