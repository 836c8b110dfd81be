//! Messages of every length, from and to everywhere, by every way in and out.

use std::sync::Arc;

use ring_core::bytes::{Delivery, Layout, create};
use ring_core::{HeapRegion, Region};

/// Bytes that differ from message to message and from place to place.
fn pattern(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| u8::try_from((number * 31 + place * 7 + 1) % 251).unwrap()).collect()
}

#[test]
fn every_length() {
    let layout = Layout::new(32 << 10).unwrap();
    let (mut producer, consumer) = create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    let mut bytes = vec![0; layout.longest() + 8];
    for len in (1..700).chain(3000..3150).chain([4095, 8192, 16_000, layout.longest()]) {
        // Neither side's bytes need lie at a word's start.
        let shift = len % 8;
        let message = pattern(len, len + shift);
        producer.try_push(&message[shift..]).unwrap();
        bytes.fill(0xff);
        assert_eq!(consumer.try_pop(&mut bytes[shift..shift + len]), Ok(len));
        assert_eq!(bytes[shift..shift + len], message[shift..]);
        assert!(bytes[..shift].iter().chain(&bytes[shift + len..]).all(|&byte| byte == 0xff));
    }
}

#[test]
fn grants_copy_in_part_by_part() {
    let layout = Layout::new(1024).unwrap();
    let (mut producer, consumer) = create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    for len in [1, 7, 8, 9, 40, 63, 64, 65, 130] {
        for from in 0..len {
            for to in [from, from + 1, from + 7, from + 8, from + 70, len] {
                let to = to.min(len);
                let (message, part) = (pattern(len, len), pattern(from, to - from));
                let mut grant = producer.try_reserve(len).unwrap();
                grant.write(&message);
                grant.write_at(from, &part);
                grant.commit();
                let grant = consumer.try_peek().unwrap();
                assert_eq!(grant[..from], message[..from]);
                assert_eq!(grant[from..to], part[..]);
                assert_eq!(grant[to..], message[to..]);
                grant.release();
            }
        }
    }
}

#[test]
fn nothing_is_written_beyond_a_frame_and_the_word_behind_it() {
    let layout = Layout::new(64).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    for len in 1..=24 {
        let (mut producer, mut consumer) = create(Arc::clone(&region), &layout).unwrap();
        // Bytes of an earlier message that nobody may touch any more.
        producer.try_push(&[0xee; 24]).unwrap();
        producer.try_reserve(24).map(drop).unwrap_err();
        consumer.try_peek().unwrap().release();
        drop((producer, consumer));
        let (mut producer, mut consumer) = create(Arc::clone(&region), &layout).unwrap();
        producer.try_push(&pattern(1, len)).unwrap();
        let end = consumer.try_peek().unwrap();
        assert_eq!(*end, pattern(1, len));
        end.release();
        drop((producer, consumer));
        // A message that is reserved and never written shows what lies there.
        let (mut producer, _consumer) = create(Arc::clone(&region), &layout).unwrap();
        let grant = producer.try_reserve(24).unwrap();
        let filled = len.next_multiple_of(8);
        assert_eq!(grant[..len], pattern(1, len));
        assert!(grant[len..filled].iter().all(|&byte| byte == 0), "padded with zero bytes");
        assert!(grant[filled..].iter().take(8).all(|&byte| byte == 0), "the frontier");
        assert!(grant[filled..].iter().skip(8).all(|&byte| byte == 0xee), "untouched");
    }
}

/// A push leaves a 0 ahead for a next message as long; a grant that reaches over it may be dropped or cut short.
#[test]
fn what_a_grant_leaves_behind_its_message_is_no_message() {
    let layout = Layout::new(1024).unwrap();
    for commit in [None, Some(16), Some(24), Some(25), Some(56), Some(100)] {
        for len in [1, 16, 24, 56, 100] {
            let (mut producer, consumer) =
                create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
            let mut consumer = consumer.delivery(Delivery::AtMostOnce);
            for number in 0..100 {
                producer.try_push(&pattern(number, len)).unwrap();
                let mut grant = producer.try_reserve(300).unwrap();
                grant.fill(0xff);
                match commit {
                    Some(bytes) => grant.commit_shortened(bytes),
                    None => drop(grant),
                }
                producer.try_push(&pattern(number, len)).unwrap();
                let mut lengths = Vec::new();
                consumer.pop_each(10, |grant| lengths.push(grant.len()));
                let expected: Vec<usize> = [Some(len), commit, Some(len)].into_iter().flatten().collect();
                assert_eq!(lengths, expected);
                assert_eq!(consumer.len(), Ok(0));
            }
        }
    }
}

#[test]
fn a_lent_region_may_be_larger() {
    let layout = Layout::new(64).unwrap();
    let region = HeapRegion::new(layout.bytes() + 4096);
    assert!(region.bytes() > layout.bytes());
    let (mut producer, mut consumer) = create(&region, &layout).unwrap();
    producer.try_push(b"here").unwrap();
    assert_eq!(*consumer.try_peek().unwrap(), *b"here");
}

#[test]
fn handles_move_between_threads() {
    let layout = Layout::new(256).unwrap();
    let (mut producer, consumer) = create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let mut consumer = consumer.delivery(Delivery::AtMostOnce);
    for number in 0..100 {
        producer = std::thread::spawn(move || {
            producer.try_push(&pattern(number, 100)).unwrap();
            producer
        })
        .join()
        .unwrap();
        consumer = std::thread::spawn(move || {
            let grant = consumer.try_peek().unwrap();
            assert_eq!(*grant, pattern(number, 100));
            grant.release();
            consumer
        })
        .join()
        .unwrap();
    }
}

/// Long and short messages between two threads, through a ring that is often full.
#[test]
fn a_stream_arrives_whole() {
    const MESSAGES: usize = 20_000;
    let len = |number: usize| 1 + number * number % 1500;
    let layout = Layout::new(4096).unwrap().start(u64::MAX - 10_000);
    let (mut producer, mut consumer) = create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let sender = std::thread::spawn(move || {
        for number in 0..MESSAGES {
            let message = pattern(number, len(number));
            while producer.try_push(&message).is_err() {
                std::thread::yield_now();
            }
        }
    });
    let mut number = 0;
    while number < MESSAGES {
        let popped = consumer.pop_each(10, |grant| {
            assert_eq!(**grant, pattern(number, len(number)));
            number += 1;
        });
        if popped == 0 {
            std::thread::yield_now();
        }
    }
    sender.join().unwrap();
}
