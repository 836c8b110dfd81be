//! Many messages between two real processes, and either of them killed again and again.
//!
//! With `RING_LONG=1` in the environment the runs are as long as a release is worth.
//!
//! # Safety
//!
//! A role is taken over only after its owner was killed and waited for.
#![allow(unsafe_code)]

mod common;

use core::hint::spin_loop;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::time::Instant;

use common::{Peer, TestName, answer, child as start_child, is_long, role, unlocked, word};
use ring_core::spsc::{Consumer, Delivery, Layout, PopError, Producer, PushError};
use ring_core::{AssumeGone, Message};
use ring_shm::Segment;

const LONG: Duration = Duration::from_secs(20);

/// Messages that a consumer takes at once.
const SLICE: usize = 8;

/// Seven words of which the last is a checksum of the others.
type Words = [u64; 7];

fn mix(word: u64) -> u64 {
    // SplitMix64, Steele, Lea and Flood 2014: each input has an output of its own, with no visible pattern.
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn message(number: u64) -> Words {
    let mut words = [number, 0, 0, 0, 0, 0, 0];
    for index in 1..6 {
        words[index] = mix(words[index - 1]);
    }
    words[6] = checksum(&words);
    words
}

fn checksum(words: &Words) -> u64 {
    words[..6].iter().fold(0, |sum, &word| mix(sum ^ word))
}

/// The number of a message, which must be whole.
fn number(words: &Words) -> u64 {
    assert_eq!(words[6], checksum(words), "half of one message and half of another: {words:?}");
    words[0]
}

fn ring<T: Message>(name: &str, depth: u64, start: u64) -> Segment {
    let layout = Layout::<T>::new(depth).unwrap().start(start);
    let new = unlocked().create(name, layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    new.publish()
}

fn attach(name: &str) -> Segment {
    unlocked().attach(name, LONG).unwrap()
}

/// Waits a little, or fails when the other side does nothing for too long.
struct Patience {
    tries: u32,
    since: Instant,
}

impl Patience {
    fn new() -> Self {
        Self { tries: 0, since: Instant::now() }
    }

    fn wait(&mut self) {
        self.tries += 1;
        if self.tries < 100 {
            spin_loop();
        } else {
            assert!(self.since.elapsed() < LONG, "the other process does nothing");
            std::thread::yield_now();
        }
    }
}

fn push<T: Message + Copy>(producer: &mut Producer<T, &Segment>, value: T) {
    let mut patience = Patience::new();
    while let Err(error) = producer.try_push(value) {
        assert!(matches!(error, PushError::Full(_)), "corrupted");
        patience.wait();
    }
}

fn pop<T: Message>(consumer: &mut Consumer<T, &Segment>) -> Option<T> {
    let mut patience = Patience::new();
    loop {
        match consumer.try_pop() {
            Ok(value) => return Some(value),
            Err(PopError::Empty) => patience.wait(),
            Err(PopError::Closed) => return None,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
    }
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    let mut arguments = argument.split(' ');
    let segment = attach(arguments.next().unwrap());
    let mut next = || arguments.next().unwrap();
    // SAFETY: the parent starts this process after the former one was killed and waited for.
    let gone = unsafe { AssumeGone::all() };
    match &*role {
        "send" => {
            let mut producer = Producer::<Words, _>::take_over(&segment, &gone).unwrap();
            let end: u64 = next().parse().unwrap();
            answer("attached");
            while producer.tail() != end {
                let next = message(producer.tail());
                push(&mut producer, next);
            }
            producer.close();
        }
        "send in batches" => {
            let mut producer = Producer::<Words, _>::take_over(&segment, &gone).unwrap();
            let end: u64 = next().parse().unwrap();
            while producer.tail() != end {
                let first = producer.tail();
                let many = (end - first).min(first % 40 + 1);
                let batch: Vec<Words> = (first..first + many).map(message).collect();
                let mut patience = Patience::new();
                let mut sent = 0;
                while sent < batch.len() {
                    match producer.push_slice(&batch[sent..]) {
                        Ok(pushed) => sent += pushed,
                        Err(PushError::Full(())) => patience.wait(),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            producer.close();
        }
        "receive" | "receive slices" => {
            let notes = attach(next());
            let delivery = match next() {
                "0" => Delivery::AtMostOnce,
                batch => Delivery::AtLeastOnce { batch: batch.parse().unwrap() },
            };
            let consumer = Consumer::<Words, _>::take_over(&segment, &gone).unwrap();
            let mut consumer = consumer.delivery(delivery);
            answer("attached");
            // What a real consumer does with a message; here it makes a mark.
            let mark = |words: &Words| {
                let index = usize::try_from(number(words)).unwrap();
                word(&notes, index).fetch_add(1, Ordering::Relaxed);
            };
            let mut slice = [[0; 7]; SLICE];
            while let Some(words) = pop(&mut consumer) {
                mark(&words);
                if role == "receive slices" {
                    let popped = consumer.pop_slice(&mut slice).unwrap_or(0);
                    slice[..popped].iter().for_each(mark);
                }
            }
            answer("closed");
        }
        other => panic!("no such role: {other}"),
    }
}

fn transfer(depth: u64, messages: u64, role: &str) {
    let name = TestName::new("stress");
    let segment = ring::<Words>(&name, depth, 0);
    let mut consumer = Consumer::<Words, _>::attach(&segment).unwrap();
    let peer = Peer::start(start_child(role, &format!("{} {messages}", &*name)));
    let mut expected = 0;
    while let Some(words) = pop(&mut consumer) {
        assert_eq!(number(&words), expected, "lost, repeated or out of order");
        expected += 1;
    }
    assert_eq!(expected, messages);
    peer.finish();
}

#[test]
fn every_message_arrives_once_whole_and_in_order() {
    let messages = if is_long() { 100_000_000 } else { 1_000_000 };
    transfer(1024, messages, "send");
    transfer(16, messages / 10, "send");
    transfer(1, messages / 100, "send");
}

#[test]
fn so_does_every_message_of_a_batch() {
    let messages = if is_long() { 10_000_000 } else { 100_000 };
    transfer(1024, messages, "send in batches");
    transfer(8, messages / 10, "send in batches");
}

/// Pauses of different lengths, so that a kill falls anywhere.
fn pause(round: u64) {
    let until = Instant::now() + Duration::from_micros(mix(round) % 3000);
    while Instant::now() < until {
        std::thread::yield_now();
    }
}

fn rounds() -> u64 {
    if is_long() { 1000 } else { 30 }
}

#[test]
fn a_killed_producer_loses_no_message_and_repeats_none() {
    let name = TestName::new("killed-producer");
    let segment = ring::<Words>(&name, 64, 0);
    let mut consumer = Consumer::<Words, _>::attach(&segment).unwrap();
    let mut expected = 0;
    for round in 0..rounds() {
        let mut peer = Peer::start(start_child("send", &format!("{} {}", &*name, u64::MAX)));
        assert_eq!(peer.hear(), "attached");
        let until = expected + mix(round) % 5000;
        while expected < until {
            assert_eq!(number(&pop(&mut consumer).unwrap()), expected);
            expected += 1;
        }
        pause(round);
        assert!(consumer.peer().held);
        peer.kill();
    }
    // The last one finishes what is due.
    let end = expected + 1000;
    let peer = Peer::start(start_child("send", &format!("{} {end}", &*name)));
    while let Some(words) = pop(&mut consumer) {
        assert_eq!(number(&words), expected);
        expected += 1;
    }
    assert_eq!(expected, end);
    assert_eq!(consumer.peer().incarnation, rounds() + 1);
    peer.finish();
}

/// Kills consumers, and returns how often each message was seen.
fn kill_consumers(role: &str, batch: u64) -> Vec<u64> {
    let name = TestName::new("killed-consumer");
    let notes_name = TestName::new("notes");
    let segment = ring::<Words>(&name, 64, 0);
    let most = usize::try_from((rounds() + 1) * 5000).unwrap();
    let notes = unlocked().create(&notes_name, most * 8).unwrap().publish();
    let mut producer = Producer::<Words, _>::attach(&segment).unwrap();
    let arguments = format!("{} {} {batch}", &*name, &*notes_name);
    for round in 0..=rounds() {
        let mut peer = Peer::start(start_child(role, &arguments));
        assert_eq!(peer.hear(), "attached");
        for _ in 0..mix(round) % 5000 {
            let next = message(producer.tail());
            push(&mut producer, next);
        }
        if round < rounds() {
            pause(round);
            peer.kill();
            continue;
        }
        let end = usize::try_from(producer.tail()).unwrap();
        producer.close();
        assert_eq!(peer.finish(), ["closed"]);
        return (0..end).map(|index| word(&notes, index).load(Ordering::Relaxed)).collect();
    }
    unreachable!("the last round returns")
}

#[test]
fn a_killed_consumer_that_credits_late_misses_none() {
    for (role, batch, most_again) in [
        ("receive", 1, 1),
        ("receive", 16, 16),
        ("receive slices", 1, 1 + SLICE),
        ("receive slices", 16, 16 + SLICE),
    ] {
        let seen = kill_consumers(role, batch);
        assert!(seen.iter().all(|&times| times >= 1), "missed");
        let again: u64 = seen.iter().map(|times| times - 1).sum();
        assert!(again <= rounds() * most_again as u64, "{again} seen again in {} kills", rounds());
    }
}

#[test]
fn a_killed_consumer_that_credits_inside_each_pop_repeats_none() {
    let seen = kill_consumers("receive", 0);
    assert!(seen.iter().all(|&times| times <= 1), "repeated");
    let missed = seen.iter().filter(|&&times| times == 0).count() as u64;
    assert!(missed <= rounds(), "{missed} missed in {} kills: more than one each", rounds());
}
