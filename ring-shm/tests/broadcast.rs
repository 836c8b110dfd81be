//! A broadcast ring between real processes: consumers that are overtaken, and a producer that is killed.
//!
//! With `RING_LONG=1` in the environment the runs are as long as a release is worth.
//!
//! # Safety
//!
//! The producer's role is taken over only after its owner was killed and waited for.
#![allow(unsafe_code)]

mod common;

use core::hint::spin_loop;
use core::time::Duration;
use std::thread;
use std::time::Instant;

use common::{Peer, TestName, answer, child as start_child, is_long, role, unlocked};
use ring_core::AssumeGone;
use ring_core::broadcast::{Consumer, Layout, PopError, Producer};
use ring_shm::Segment;

const LONG: Duration = Duration::from_secs(20);

/// Of the ring whose consumers are overtaken.
const DEPTH: u64 = 16;

type Words<const N: usize> = [u64; N];

/// Four cache lines, with the slot's word.
const FOUR_LINES: usize = 31;

/// Words that no other message has in these places.
fn message<const N: usize>(number: u64) -> Words<N> {
    core::array::from_fn(|place| {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(u32::try_from(place % 64).unwrap())
    })
}

fn ring<const N: usize>(name: &str, depth: u64) -> Segment {
    let layout = Layout::<Words<N>>::new(depth).unwrap();
    let new = unlocked().create(name, layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    new.publish()
}

fn attach(name: &str) -> Segment {
    unlocked().attach(name, LONG).unwrap()
}

/// What a consumer saw.
#[derive(Debug, Default)]
struct Seen {
    popped: u64,
    lost: u64,
}

/// Follows the producer until it closes the ring, or the head has come so far.
fn follow<const N: usize>(consumer: &mut Consumer<Words<N>, &Segment>, until: u64) -> Seen {
    let mut seen = Seen::default();
    let mut last = Instant::now();
    let mut empty = 0;
    while consumer.head() < until {
        let position = consumer.head();
        match consumer.try_pop() {
            Ok(words) => {
                assert!(words == message(position), "torn, or not the message of {position}: {words:x?}");
                seen.popped += 1;
            }
            Err(PopError::Lost { messages }) => seen.lost += messages,
            Err(PopError::Empty) => {
                empty += 1;
                if empty % 1000 == 0 {
                    assert!(last.elapsed() < LONG, "the other process does nothing");
                    std::thread::yield_now();
                }
                spin_loop();
                continue;
            }
            Err(PopError::Closed) => break,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
        last = Instant::now();
    }
    seen
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    let segment = attach(&argument);
    match &*role {
        "follow 8" => follow_to_the_end::<1>(&segment),
        "follow 56" => follow_to_the_end::<7>(&segment),
        "follow 64" => follow_to_the_end::<8>(&segment),
        "follow 200" => follow_to_the_end::<25>(&segment),
        "follow 4096" => follow_to_the_end::<512>(&segment),
        "send" => {
            // SAFETY: the parent starts this process after the former one was killed and waited for.
            let gone = unsafe { AssumeGone::all() };
            let mut producer = Producer::take_over(&segment, &gone).unwrap();
            answer(&producer.tail().to_string());
            loop {
                let next: Words<FOUR_LINES> = message(producer.tail());
                producer.push(&next);
            }
        }
        other => panic!("no such role: {other}"),
    }
}

fn follow_to_the_end<const N: usize>(segment: &Segment) {
    let mut consumer = Consumer::<Words<N>, _>::join_oldest(segment).unwrap();
    assert_eq!(consumer.head(), 0);
    answer("joined");
    // However slow the producer is, it overtakes one who waits for it.
    while consumer.lag().unwrap() <= DEPTH {
        thread::yield_now();
    }
    let Seen { popped, lost } = follow(&mut consumer, u64::MAX);
    answer(&format!("{popped} {lost}"));
}

/// One process sends without a break, two follow as fast as they can, and are overtaken.
fn overtake<const N: usize>() {
    let bytes = N * 8;
    let name = TestName::new(&format!("broadcast-{bytes}"));
    let segment = ring::<N>(&name, DEPTH);
    let mut producer = Producer::<Words<N>, _>::attach(&segment).unwrap();
    let mut peers = [(); 2].map(|()| Peer::start(start_child(&format!("follow {bytes}"), &name)));
    for peer in &mut peers {
        assert_eq!(peer.hear(), "joined");
    }
    let start = Instant::now();
    let time = if is_long() { Duration::from_secs(60) } else { Duration::from_millis(400) };
    while start.elapsed() < time {
        for _ in 0..1000 {
            let next = message(producer.tail());
            producer.push(&next);
        }
    }
    let sent = producer.tail();
    producer.close();
    for peer in peers {
        let answers = peer.finish();
        let (popped, lost) = answers[0].split_once(' ').unwrap();
        let [popped, lost]: [u64; 2] = [popped, lost].map(|number| number.parse().unwrap());
        assert_eq!(popped + lost, sent);
        assert!(popped > 0 && lost > 0, "{popped} popped and {lost} lost: it was never overtaken");
    }
}

/// One after the other, since each keeps three processes busy.
#[test]
fn what_other_processes_saw_and_lost_is_what_was_sent() {
    overtake::<1>();
    overtake::<7>();
    overtake::<8>();
    overtake::<25>();
    overtake::<512>();
}

#[test]
fn a_killed_producer_leaves_whole_messages() {
    let name = TestName::new("broadcast-killed");
    let segment = ring::<FOUR_LINES>(&name, 8);
    let mut consumer = Consumer::<Words<FOUR_LINES>, _>::join(&segment).unwrap();
    let rounds = if is_long() { 1000 } else { 20 };
    let mut all = Seen::default();
    for round in 0..rounds {
        let mut peer = Peer::start(start_child("send", &name));
        let tail: u64 = peer.hear().parse().unwrap();
        assert!(tail >= consumer.head(), "it goes on where the former one stopped");
        let until = consumer.head() + 100 + round * 97 % 1000;
        let seen = follow(&mut consumer, until);
        all.popped += seen.popped;
        all.lost += seen.lost;
        peer.kill();
        assert!(consumer.peer().held);
    }
    // SAFETY: the last one was killed and waited for.
    let gone = unsafe { AssumeGone::all() };
    let producer = Producer::<Words<FOUR_LINES>, _>::take_over(&segment, &gone).unwrap();
    let sent = producer.tail();
    producer.close();
    let seen = follow(&mut consumer, u64::MAX);
    assert_eq!(all.popped + all.lost + seen.popped + seen.lost, sent);
    assert_eq!(consumer.peer().incarnation, rounds + 1);
}
