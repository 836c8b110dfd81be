//! Many messages through one ring between several real processes.
//!
//! With `RING_LONG=1` in the environment the runs are as long as a release is worth.

mod common;

use core::hint::spin_loop;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::time::Instant;

use common::{Peer, TestName, child as start_child, is_long, role, unlocked, word};
use ring_core::mpmc::{Consumer, Layout, PopError, Producer, PushError};
use ring_shm::Segment;

const LONG: Duration = Duration::from_secs(60);

/// Which producer, its count, some words, and a checksum of the others.
type Words = [u64; 7];

fn mix(word: u64) -> u64 {
    // SplitMix64, Steele, Lea and Flood 2014: each input has an output of its own, with no visible pattern.
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn message(producer: u64, count: u64) -> Words {
    let mut words = [producer, count, mix(count), 0, 0, 0, 0];
    for index in 3..6 {
        words[index] = mix(words[index - 1]);
    }
    words[6] = checksum(&words);
    words
}

fn checksum(words: &Words) -> u64 {
    words[..6].iter().fold(0, |sum, &word| mix(sum ^ word))
}

fn attach(name: &str) -> Segment {
    unlocked().attach(name, LONG).unwrap()
}

/// Waits a little, or fails when the others do nothing for too long.
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
            assert!(self.since.elapsed() < LONG, "the other processes do nothing");
            std::thread::yield_now();
        }
    }
}

/// Sends `each` messages as producer `number`.
fn send(segment: &Segment, number: u64, each: u64) {
    let mut producer = Producer::<Words, _>::attach(segment).unwrap();
    for count in 0..each {
        let mut patience = Patience::new();
        while let Err(error) = producer.try_push(message(number, count)) {
            assert!(matches!(error, PushError::Full(_) | PushError::Busy(_)), "{error}");
            patience.wait();
        }
    }
}

/// Receives until the ring is closed, marks each message in `notes`, and returns how many they were.
fn receive(segment: &Segment, notes: &Segment, producers: u64, each: u64) -> u64 {
    let mut consumer = Consumer::<Words, _>::attach(segment).unwrap();
    let mut next = vec![0; usize::try_from(producers).unwrap()];
    let mut seen = 0;
    let mut patience = Patience::new();
    loop {
        match consumer.try_pop() {
            Ok(words) => {
                assert_eq!(words[6], checksum(&words), "half of one message and half of another: {words:?}");
                let [number, count, ..] = words;
                let next = &mut next[usize::try_from(number).unwrap()];
                assert!(count >= *next, "out of order: {count} of {number} after {}", *next - 1);
                *next = count + 1;
                let mark = word(notes, usize::try_from(number * each + count).unwrap());
                assert_eq!(mark.fetch_add(1, Ordering::Relaxed), 0, "{count} of {number} came twice");
                seen += 1;
                patience = Patience::new();
            }
            Err(PopError::Empty | PopError::Busy) => patience.wait(),
            Err(PopError::Closed) => return seen,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
    }
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    let mut arguments = argument.split(' ');
    let [segment, notes] = core::array::from_fn(|_| attach(arguments.next().unwrap()));
    let [number, producers, each] = core::array::from_fn(|_| arguments.next().unwrap().parse().unwrap());
    match &*role {
        "send" => send(&segment, number, each),
        "receive" => common::answer(&receive(&segment, &notes, producers, each).to_string()),
        other => panic!("no such role: {other}"),
    }
}

/// `producers` and `consumers` processes beside this one, which is a producer and then a consumer.
fn transfer(depth: u64, producers: u64, consumers: u64, messages: u64) {
    let each = messages / (producers + 1);
    let total = each * (producers + 1);
    let (name, notes_name) = (TestName::new("mpmc"), TestName::new("mpmc-notes"));
    let layout = Layout::<Words>::new(depth).unwrap().participants(8).unwrap();
    let new = unlocked().create(&name, layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    let segment = new.publish();
    let notes = unlocked().create(&notes_name, usize::try_from(total).unwrap() * 8).unwrap().publish();

    let arguments = |number| format!("{} {} {number} {} {each}", &*name, &*notes_name, producers + 1);
    let start = |role, number| Peer::start(start_child(role, &arguments(number)));
    let senders: Vec<Peer> = (1..=producers).map(|number| start("send", number)).collect();
    let receivers: Vec<Peer> = (0..consumers).map(|number| start("receive", number)).collect();
    let closer = Consumer::<Words, _>::attach(&segment).unwrap();
    let mine = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(&segment, 0, each));
        let receiver =
            (consumers == 0).then(|| scope.spawn(|| receive(&segment, &notes, producers + 1, each)));
        sender.join().unwrap();
        for sender in senders {
            assert_eq!(sender.finish(), [] as [&str; 0]);
        }
        closer.close();
        receiver.map_or(0, |receiver| receiver.join().unwrap())
    });
    let theirs = receivers.into_iter().map(|peer| peer.finish()[0].parse::<u64>().unwrap());
    assert_eq!(mine + theirs.sum::<u64>(), total);
    let all_marked =
        (0..usize::try_from(total).unwrap()).all(|index| word(&notes, index).load(Ordering::Relaxed) == 1);
    assert!(all_marked, "a message was lost");
}

fn messages() -> u64 {
    if is_long() { 10_000_000 } else { 1_000_000 }
}

#[test]
fn two_processes_pass_every_message_once_and_in_order() {
    transfer(1024, 1, 0, messages());
    transfer(16, 0, 1, messages() / 20);
}

#[test]
fn three_processes_pass_every_message_once_and_in_order() {
    transfer(1024, 1, 1, messages());
    transfer(16, 2, 0, messages() / 20);
    transfer(4, 0, 2, messages() / 100);
}
