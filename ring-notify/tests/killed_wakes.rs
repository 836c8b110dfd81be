//! Whoever wakes is killed after each instruction of it, and before and after each of its system calls, by SIGKILL: who
//! sleeps comes back when its slice is over, or where it has none, when a successor comes.
//!
//! # Safety
//!
//! A role is taken over only after its owner was killed and waited for. What runs in the stepped child calls nothing
//! but the ring and its segment.
#![allow(unsafe_code)]
#![cfg(target_os = "linux")]

mod common;
#[path = "../../ring-shm/tests/common/stepper.rs"]
mod stepper;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use common::{ASLEEP, BARRIERS, Bed, LONG, Started, WAIT_WORDS, attach, one_slot, started, unlocked, word};
use ring_core::spsc::{Consumer, Delivery, Producer};
use ring_core::{AssumeGone, Role, mpmc};
use ring_notify::{Barrier, Options, RecvError};
use ring_shm::{Claim, Segment};
use stepper::{Killed, Pace, killed_at_each};

const SLICE: Option<Duration> = Some(Duration::from_millis(20));

type Tx = Producer<u64, Arc<Segment>>;
type Rx = Consumer<u64, Arc<Segment>>;

/// What is killed before it has said so must not have happened, and is given this long to be seen nevertheless.
const A_WHILE: Duration = Duration::from_millis(5);

fn gone(role: Role) -> AssumeGone {
    // SAFETY: the child that had the role was waited for.
    unsafe { AssumeGone::of(role) }
}

/// Gives room back in each pop, so that it is one operation.
fn at_once(consumer: Result<Rx, ring_core::Error>) -> Rx {
    consumer.unwrap().delivery(Delivery::AtMostOnce)
}

/// Waits until somebody sleeps on that word, or is about to.
fn wait_until_announced(segment: &Segment, index: usize) {
    while word(segment, index).load(Ordering::Acquire) & ASLEEP == 0 {
        std::thread::yield_now();
    }
}

/// Who sleeps, and who wakes.
struct Case {
    /// Whether the one that sleeps looks again by itself.
    has_slice: bool,
    sleeping: Options,
    waking: Options,
}

fn each_case() -> Vec<Case> {
    let mut cases = Vec::new();
    for bed in Bed::each() {
        for slice in [SLICE, None] {
            for barrier in BARRIERS {
                let (sleeping, waking) = (bed.options(barrier).slice(slice), bed.options(barrier));
                cases.push(Case { has_slice: slice.is_some(), sleeping, waking });
            }
        }
    }
    cases
}

/// A ring, and who sleeps on it.
struct Asleep<T> {
    segment: Arc<Segment>,
    sleeper: T,
}

const PACES: [Pace; 2] = [Pace::Instruction, Pace::Call];

#[test]
fn send_is_killed() {
    for Case { has_slice, sleeping, waking } in each_case() {
        for pace in PACES {
            killed_at_each(
                pace,
                || {
                    let segment = Arc::new(one_slot());
                    let mut receiver =
                        sleeping.clone().receiver(Rx::attach(Arc::clone(&segment)).unwrap()).unwrap();
                    Asleep { segment, sleeper: started(move || receiver.recv()) }
                },
                |Asleep { segment, .. }, mark| {
                    let mut sender = waking.clone().sender(Tx::attach(Arc::clone(segment)).unwrap()).unwrap();
                    wait_until_announced(segment, WAIT_WORDS[0]);
                    mark();
                    sender.send(7).unwrap();
                    mark();
                },
                |Asleep { segment, sleeper }, Killed { is_through, .. }| {
                    let successor = Tx::take_over(segment, &gone(Role::Producer)).unwrap();
                    let is_sent = successor.tail() == 1;
                    assert!(is_sent || !is_through);
                    if is_sent && has_slice {
                        // Nobody has woken it since.
                        assert_eq!(sleeper.is_over_within(LONG), Some(Ok(7)));
                        return;
                    }
                    let mut sender = waking.clone().sender(successor).unwrap();
                    if !is_sent {
                        assert_eq!(sleeper.is_over_within(A_WHILE), None, "nothing was sent");
                        sender.send(7).unwrap();
                    }
                    assert_eq!(sleeper.is_over_within(LONG), Some(Ok(7)));
                },
            );
        }
    }
}

#[test]
fn recv_is_killed() {
    for Case { has_slice, sleeping, waking } in each_case() {
        for pace in PACES {
            killed_at_each(
                pace,
                || {
                    let segment = Arc::new(one_slot());
                    let mut sender =
                        sleeping.clone().sender(Tx::attach(Arc::clone(&segment)).unwrap()).unwrap();
                    sender.send(1).unwrap();
                    Asleep { segment, sleeper: started(move || sender.send(2)) }
                },
                |Asleep { segment, .. }, mark| {
                    let mut receiver =
                        waking.clone().receiver(at_once(Rx::attach(Arc::clone(segment)))).unwrap();
                    wait_until_announced(segment, WAIT_WORDS[1]);
                    mark();
                    assert_eq!(receiver.recv(), Ok(1));
                    mark();
                },
                |Asleep { segment, sleeper }, Killed { is_through, .. }| {
                    let successor = at_once(Rx::take_over(segment, &gone(Role::Consumer)));
                    let has_room = successor.head() == 1;
                    assert!(has_room || !is_through);
                    if has_room && has_slice {
                        assert_eq!(sleeper.is_over_within(LONG), Some(Ok(())));
                        return;
                    }
                    let mut receiver = waking.clone().receiver(successor).unwrap();
                    if !has_room {
                        assert_eq!(sleeper.is_over_within(A_WHILE), None, "there is no room");
                        assert_eq!(receiver.recv(), Ok(1));
                    }
                    assert_eq!(sleeper.is_over_within(LONG), Some(Ok(())));
                    assert_eq!(receiver.recv(), Ok(2));
                },
            );
        }
    }
}

type ManyTx = mpmc::Producer<u64, Claim>;
type ManyRx = mpmc::Consumer<u64, Claim>;

/// Of several who sleep nobody is left behind, also if what was begun has to be cleared up first.
#[test]
fn send_to_many_is_killed() {
    let layout = mpmc::Layout::<u64>::new(2).unwrap().participants(5).unwrap();
    for bed in Bed::each() {
        let options =
            |claim: &Claim| bed.options(Barrier::Asymmetric).slice(SLICE).liveness(claim.liveness());
        // Not one like the other: those who sleep clear up at each slice, and wake each other.
        for pace in [Pace::SomeInstruction, Pace::Call] {
            killed_at_each(
                pace,
                || {
                    let first: ManyRx = unlocked().create_anonymous_ring(&layout).unwrap();
                    let segment = Arc::clone(first.region().segment());
                    let second: ManyRx = attach(&segment);
                    let sleepers = [first, second].map(|consumer| {
                        let mut receiver = options(consumer.region()).receiver(consumer).unwrap();
                        started(move || receiver.recv())
                    });
                    Asleep { segment, sleeper: sleepers }
                },
                |Asleep { segment, .. }, mark| {
                    let producer: ManyTx = attach(segment);
                    let mut sender = bed.options(Barrier::Asymmetric).sender(producer).unwrap();
                    wait_until_announced(segment, WAIT_WORDS[0]);
                    mark();
                    sender.send(7).unwrap();
                    mark();
                },
                |Asleep { segment, sleeper }, Killed { is_through, .. }| {
                    let successor: ManyTx = attach(&segment);
                    let mut sender = options(successor.region()).sender(successor).unwrap();
                    sender.send(8).unwrap();
                    sender.close();
                    let found = sleeper.map(Started::end);
                    let has = |number| found.contains(&Ok(number));
                    let is_closed = found.contains(&Err(RecvError::Ring(mpmc::PopError::Closed)));
                    assert!(has(8) && (has(7) || is_closed && !is_through), "{found:?}");
                },
            );
        }
    }
}
