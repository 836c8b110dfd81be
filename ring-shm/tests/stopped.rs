//! A process that is stopped in the middle of a claim is alive: nobody takes from it what it holds, however long it takes.
//!
//! # Safety
//!
//! A signal goes to a child of this process that was not waited for.
#![allow(unsafe_code)]

mod common;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use common::{Peer, TestName, answer, child as start_child, role, unlocked};
use ring_core::{Role, mpmc, spsc};
use ring_shm::{Claim, Error, Presence, Segment};

const LONG: Duration = Duration::from_secs(20);
/// How long it is stopped.
const STOP: Duration = Duration::from_secs(3);

/// Words that are all alike, so that half of a message shows.
type Message = [u64; 7];

type Tx = mpmc::Producer<Message, Claim>;
type Rx = mpmc::Consumer<Message, Claim>;

const DEPTH: u64 = 4;
/// The place of who is stopped: the others have the first two.
const STOPPED: Role = Role::Participant(3);

fn message(number: u64) -> Message {
    [number; 7]
}

/// This process stops, until its parent has it go on.
fn stop() {
    answer("about to stop");
    // SAFETY: no conditions.
    assert_eq!(unsafe { libc::raise(libc::SIGSTOP) }, 0);
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, name)) = role() else { return };
    match &*role {
        "reserve" => {
            let mut producer: Tx = unlocked().attach_ring(&name, LONG).unwrap();
            let mut grant = producer.try_reserve().unwrap();
            stop();
            grant.write(&message(7));
            grant.commit();
        }
        "peek" => {
            let mut consumer: Rx = unlocked().attach_ring(&name, LONG).unwrap();
            let grant = consumer.try_peek().unwrap();
            assert_eq!(grant.read(), message(0));
            stop();
            assert_eq!(grant.read(), message(0), "nobody wrote over it");
            grant.release();
        }
        "reserve the only place" => {
            let mut producer: spsc::Producer<Message, Claim> = unlocked().attach_ring(&name, LONG).unwrap();
            let mut grant = producer.try_reserve().unwrap();
            stop();
            grant.write(&message(7));
            grant.commit();
        }
        other => panic!("no such role: {other}"),
    }
    answer("done");
}

/// Has a child stop in the middle of a claim, runs `meanwhile` again and again, and has it go on to its end.
fn stopped(task: &str, name: &str, mut meanwhile: impl FnMut()) {
    let mut peer = Peer::start(start_child(task, name));
    assert_eq!(peer.hear(), "about to stop");
    let id = libc::pid_t::try_from(peer.id()).unwrap();
    let mut status = 0;
    // SAFETY: a child that was not waited for; the status is written to the integer.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, libc::WUNTRACED) }, id);
    assert!(libc::WIFSTOPPED(status), "it ended: {status:#x}");
    let start = Instant::now();
    while start.elapsed() < STOP {
        meanwhile();
    }
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(id, libc::SIGCONT) }, 0);
    assert_eq!(peer.finish(), ["done"]);
}

/// A ring whose three places are taken once the child has come.
fn ring(name: &str) -> (Tx, Rx) {
    let layout = mpmc::Layout::new(DEPTH).unwrap().participants(3).unwrap();
    (unlocked().create_ring(name, &layout).unwrap(), unlocked().attach_ring(name, LONG).unwrap())
}

/// Nobody gets the place of who is stopped.
fn assert_place_is_taken(name: &str, segment: &Arc<Segment>) {
    assert_eq!(segment.presence(STOPPED), Ok(Presence::Alive));
    assert!(matches!(segment.claim(STOPPED), Err(Error::RoleTaken { .. })));
    let error = unlocked().attach_ring::<Tx>(name, Duration::ZERO).unwrap_err();
    assert_eq!(error, Error::Ring(ring_core::Error::TooManyParticipants { participants: 3 }));
    let bare = mpmc::Producer::<Message, _>::take_over(segment, 3, &segment.liveness()).err();
    assert_eq!(bare, Some(ring_core::Error::Taken { role: STOPPED }));
}

#[test]
fn a_reserved_slot_stays_reserved() {
    let name = TestName::new("stopped-producer");
    let (mut producer, mut consumer) = ring(&name);
    let segment = Arc::clone(producer.region().segment());
    let liveness = segment.liveness();
    let mut pushed = 0;
    stopped("reserve", &name, || {
        assert_place_is_taken(&name, &segment);
        assert_eq!(consumer.recover(&liveness), Ok(0));
        // All others are filled, and stay behind it.
        match producer.try_push_with(message(pushed), &liveness) {
            Ok(()) => pushed += 1,
            Err(mpmc::PushError::Busy(_)) => assert_eq!(pushed, DEPTH - 1),
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(consumer.try_pop_with(&liveness), Err(mpmc::PopError::Busy));
    });
    let mut found = vec![];
    while let Ok(message) = consumer.try_pop() {
        assert_eq!(message, [message[0]; 7]);
        found.push(message[0]);
    }
    assert_eq!(found, [7, 0, 1, 2], "all arrive, the late one in its place");
}

#[test]
fn a_message_that_is_being_read_is_neither_overwritten_nor_delivered_to_another() {
    let name = TestName::new("stopped-consumer");
    let (mut producer, mut consumer) = ring(&name);
    let segment = Arc::clone(producer.region().segment());
    let liveness = segment.liveness();
    (0..DEPTH).for_each(|number| producer.try_push(message(number)).unwrap());
    let mut next = 1;
    let mut is_stuck = false;
    stopped("peek", &name, || {
        assert_place_is_taken(&name, &segment);
        assert_eq!(producer.recover(&liveness), Ok(0));
        match consumer.try_pop_with(&liveness) {
            Ok(found) => {
                assert_eq!(found, message(next));
                next += 1;
            }
            Err(mpmc::PopError::Empty | mpmc::PopError::Busy) => assert_eq!(next, DEPTH),
            Err(error) => panic!("{error:?}"),
        }
        match producer.try_push_with(message(DEPTH), &liveness) {
            Err(mpmc::PushError::Busy(_) | mpmc::PushError::Full(_)) => is_stuck = true,
            other => panic!("its slot was overwritten: {other:?}"),
        }
    });
    assert!(is_stuck && next == DEPTH);
    for number in DEPTH..3 * DEPTH {
        producer.try_push(message(number)).unwrap();
        assert_eq!(consumer.try_pop(), Ok(message(number)));
    }
}

#[test]
fn a_role_of_two_stays_taken() {
    type Consumer = spsc::Consumer<Message, Claim>;
    let name = TestName::new("stopped-role");
    let layout = spsc::Layout::new(DEPTH).unwrap();
    let mut consumer: Consumer = unlocked().create_ring(&name, &layout).unwrap();
    let segment = Arc::clone(consumer.region().segment());
    let liveness = segment.liveness();
    stopped("reserve the only place", &name, || {
        assert_eq!(segment.presence(Role::Producer), Ok(Presence::Alive));
        assert!(matches!(segment.claim(Role::Producer), Err(Error::RoleTaken { .. })));
        let result = unlocked().attach_ring::<spsc::Producer<Message, Claim>>(&name, Duration::ZERO);
        assert!(matches!(result, Err(Error::RoleTaken { .. })));
        let bare = spsc::Producer::<Message, _>::take_over(&segment, &liveness).err();
        assert_eq!(bare, Some(ring_core::Error::Taken { role: Role::Producer }));
        assert_eq!(consumer.try_pop(), Err(spsc::PopError::Empty));
    });
    assert_eq!(consumer.try_pop(), Ok(message(7)));
    assert_eq!(consumer.try_pop(), Err(spsc::PopError::Empty));
}
