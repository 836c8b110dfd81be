//! A producer that is killed after each of its stores.
//!
//! The stores of each push are recorded. Copies of the ring get the first so many of them, or any part of those that
//! come before the one that publishes, since a processor may make them visible in any order. A successor attaches to
//! each copy and must find the messages that were committed, no more and no less. The ring was full of words that look
//! like headers before, and so is every message.
//!
//! # Safety
//!
//! A role is taken over only in a copy, which nobody else uses. Words of a region are read and written while no handle
//! is at work.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr::NonNull;

use super::{Rx, Tx, gone};
use crate::bytes::memory::PADDING;
use crate::bytes::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use crate::sync::bytes::record;
use crate::testing::heap;
use crate::{HeapRegion, Region};

/// Bytes before the words of the ring.
const HEADER_BYTES: usize = 512;

/// A small generator, always from the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// A word that a frame could begin with.
    fn header(&mut self, ring_bytes: usize) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => self.next(),
            2 => PADDING | (self.below(ring_bytes) as u64 & !7),
            _ => 1 + self.below(ring_bytes / 2) as u64,
        }
    }

    /// A message of words that frames could begin with.
    fn message(&mut self, ring_bytes: usize) -> Vec<u8> {
        let longest = ring_bytes / 2 - 8;
        let most = if self.below(2) == 0 { longest.min(24) } else { longest };
        let len = 1 + self.below(most);
        let words = (0..len.div_ceil(8)).flat_map(|_| self.header(ring_bytes).to_ne_bytes());
        words.take(len).collect()
    }
}

fn word(region: &HeapRegion, index: usize) -> NonNull<u64> {
    assert!(index * 8 < region.bytes());
    // SAFETY: the word lies in the region.
    unsafe { region.base().cast::<u64>().add(index) }
}

fn words(region: &HeapRegion) -> Vec<u64> {
    // SAFETY: no handle is at work.
    (0..region.bytes() / 8).map(|index| unsafe { word(region, index).read() }).collect()
}

fn region_of(words: &[u64]) -> Arc<HeapRegion> {
    let region = heap(words.len() * 8);
    for (index, &value) in words.iter().enumerate() {
        // SAFETY: nobody else has the region yet.
        unsafe { word(&region, index).write(value) };
    }
    region
}

/// Attaches to a copy and checks that these messages are in it, and that it goes on as any ring does.
fn check(copy: &[u64], messages: &VecDeque<Vec<u8>>, tail: u64, random: &mut Random) {
    let region = region_of(copy);
    let mut producer = Producer::take_over(Arc::clone(&region), &gone()).unwrap();
    assert_eq!(producer.tail(), tail);
    let mut consumer = Consumer::take_over(region, &gone()).unwrap();
    assert_eq!(consumer.len(), Ok(tail.wrapping_sub(consumer.head())));

    let next = random.message(copy.len() * 8 - HEADER_BYTES);
    let pushed = producer.try_push(&next);
    assert!(pushed.is_ok() || pushed == Err(PushError::Full));
    for message in messages.iter().chain(pushed.is_ok().then_some(&next)) {
        let grant = consumer.try_peek().unwrap();
        assert_eq!(*grant, **message);
        grant.release();
    }
    assert_eq!(consumer.try_peek().map(drop), Err(PopError::Empty));
    producer.try_push(&next).unwrap();
    assert_eq!(*consumer.try_peek().unwrap(), *next);
}

/// Begins a message and gives it up, or pushes one in one of the ways there are. Returns what was committed.
fn push(producer: &mut Tx, random: &mut Random) -> Option<Vec<u8>> {
    let ring_bytes = usize::try_from(producer.capacity()).unwrap();
    let mut message = random.message(ring_bytes);
    let way = random.below(5);
    if way == 0 {
        return producer.try_push(&message).ok().map(|()| message);
    }
    let mut grant = producer.try_reserve(message.len()).ok()?;
    if way == 1 {
        let half = message.len() / 2;
        grant.write_at(half, &message[half..]);
        grant.write_at(0, &message[..half]);
    } else {
        grant.write(&message);
    }
    match way {
        2 => return None,
        3 => {
            message.truncate(1 + random.below(message.len()));
            grant.commit_shortened(message.len());
        }
        _ => grant.commit(),
    }
    Some(message)
}

/// The ring after so many stores as `applies` says, by their number.
fn after(
    before: &[u64],
    stores: &[(usize, u64)],
    base: usize,
    mut applies: impl FnMut(usize) -> bool,
) -> Vec<u64> {
    let mut copy = before.to_vec();
    for (number, &(address, value)) in stores.iter().enumerate() {
        if applies(number) {
            copy[(address - base) / 8] = value;
        }
    }
    copy
}

fn crashes(ring_bytes: usize, start: u64, operations: usize, random: &mut Random) {
    let layout = Layout::new(ring_bytes).unwrap().start(start);
    let mut old: Vec<u64> = (0..layout.bytes() / 8).map(|_| random.header(ring_bytes)).collect();
    old[..HEADER_BYTES / 8].fill(0);
    let mut region = region_of(&old);
    let (mut producer, consumer): (Tx, Rx) = create(Arc::clone(&region), &layout).unwrap();
    let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    let mut messages = VecDeque::new();

    for _ in 0..operations {
        for _ in 0..random.below(3) {
            let popped = consumer.try_peek().map(|grant| {
                let message = grant.to_vec();
                grant.release();
                message
            });
            assert_eq!(popped.ok(), messages.pop_front());
        }

        let (before, tail_before) = (words(&region), producer.tail());
        let base = region.base().addr().get();
        let mut committed = None;
        let stores = record::stores_of(|| committed = push(&mut producer, random));
        assert_eq!(words(&region), after(&before, &stores, base, |_| true), "every store was recorded");

        // A message is there from the store of the header at the tail on. The stores before it come in any order, those
        // after it at any time.
        let header = base + HEADER_BYTES + usize::try_from(tail_before % ring_bytes as u64).unwrap();
        let published =
            stores.iter().rposition(|&(address, _)| address == header).filter(|_| committed.is_some());
        assert_eq!(published.is_some(), committed.is_some());
        let mut with_it = messages.clone();
        with_it.extend(committed);
        for cut in 0..=stores.len() {
            let (there, tail) = match published {
                Some(published) if cut > published => (&with_it, producer.tail()),
                _ => (&messages, tail_before),
            };
            check(&after(&before, &stores, base, |number| number < cut), there, tail, random);
            let mask = random.next();
            let some = after(&before, &stores, base, |number| match published {
                Some(published) if number == published || cut > published && number < published => {
                    cut > published
                }
                _ => mask >> (number % 64) & 1 != 0,
            });
            check(&some, there, tail, random);
        }
        // The successor of one that was killed goes on, and is killed as well.
        if !stores.is_empty() && random.below(4) == 0 {
            let cut = random.below(stores.len());
            core::mem::forget((producer, consumer));
            region = region_of(&after(&before, &stores, base, |number| number < cut));
            producer = Producer::take_over(Arc::clone(&region), &gone()).unwrap();
            consumer =
                Consumer::take_over(Arc::clone(&region), &gone()).unwrap().delivery(Delivery::AtMostOnce);
            if published.is_some_and(|published| cut > published) {
                messages = with_it;
            } else {
                assert_eq!(producer.tail(), tail_before);
            }
            continue;
        }
        messages = with_it;
        check(&words(&region), &messages, producer.tail(), random);
    }
}

#[test]
fn a_killed_producer_leaves_what_it_committed() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..12 {
        for ring_bytes in [64, 128, 256, 2048] {
            let start = [0, 8, u64::MAX, u64::MAX - 100, 1 << 32, random.next()][round % 6];
            let operations = if ring_bytes > 256 { 10 } else { 60 };
            crashes(ring_bytes, start, operations, &mut random);
        }
    }
}
