//! Whoever clears up is killed, or who comes into the place where others clear up.

use super::*;

/// A third one clears up after both, who may find a message only behind its head. Where the first one died in a push,
/// the recoverer has a message itself.
#[test]
fn a_recoverer_is_killed_at_each_write_of_its_recovery() {
    let [redeliver, skip] = POLICIES;
    for (policy, in_push) in [(redeliver, false), (redeliver, true), (skip, false)] {
        at_each_write(5, move |doom| {
            let gone = gone();
            let (mut producer, mut last) = ring_with(2, policy);
            let mut killed = more_rx(&last);
            push(&mut producer, 1);
            if in_push {
                leak_message(&mut killed);
                push_and_die(more_tx(&producer), 2, 1, &gone);
            } else {
                assert_eq!(pop_and_die(more_rx(&last), 1, &gone), None);
                assert_eq!(last.try_pop(), Err(PopError::Empty));
            }
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                act_or_die(doom, &his, killed, |killed| &killed.seat, |killed| killed.recover(&*his).unwrap())
            });
            last.recover(&*gone).unwrap();
            let mut seen: Vec<u64> = last.try_pop().into_iter().collect();
            drop(killer.join().unwrap());
            seen.extend(rest_of(&mut producer, &mut last, &gone));
            assert_eq!(assert_seen(seen, &[1]), usize::from(policy == UnfinishedPops::Skip));
        });
    }
}

/// The dead one's successor lives, and whoever clears up there beside it is killed.
#[test]
fn a_recoverer_is_killed_at_each_write_beside_a_successor() {
    for policy in POLICIES {
        at_each_write(5, move |doom| {
            let gone = gone();
            let (mut producer, dead) = ring_with(1, policy);
            let killed = more_tx(&producer);
            let id = dead.id();
            push(&mut producer, 1);
            assert_eq!(pop_and_die(dead, 1, &gone), None);
            let his = Arc::clone(&gone);
            let killer = thread::spawn(move || {
                let act = |killed: &mut Tx| killed.recover(&*his).unwrap();
                act_or_die(doom, &his, killed, |killed| &killed.seat, act)
            });
            let take_over = || Rx::take_over(Arc::clone(producer.region()), id, &*gone);
            let successor = take_over();
            let killed = killer.join().unwrap();
            let mut successor = successor.or_else(|error| {
                assert_eq!(error, Error::Taken { role: Role::Participant(id) });
                take_over()
            });
            drop(killed);
            let seen = rest_of(&mut producer, successor.as_mut().unwrap(), &gone);
            assert_eq!(seen.len(), usize::from(policy == UnfinishedPops::Redeliver));
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
            assert_eq!(last.try_pop(), Err(PopError::Empty));
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
