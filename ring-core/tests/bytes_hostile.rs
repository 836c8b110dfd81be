//! A peer that writes anything anywhere at any time: all that follows is an error or a wrong message.

mod fenced;

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use fenced::Fenced;
use ring_core::bytes::{Consumer, Delivery, Layout, Producer, create};

const RING: usize = 256;
const LONGEST: usize = RING / 2 - 8;

fn layout() -> Layout {
    Layout::new(RING).unwrap()
}

const MAGIC: usize = 0;
const CREDIT: usize = 256;
const PADDING: u64 = 1 << 63;

/// A small generator, always from the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// What a hostile peer writes: `what` chooses the kind.
fn hostile_word(what: u8, value: u8) -> u64 {
    let value = u64::from(value);
    match what % 8 {
        0 => 0,
        1 => u64::MAX - value,
        2 => PADDING | (value * 8 % RING as u64),
        3 => PADDING | value,
        4 => value * 8,
        5 => value << 56,
        _ => value,
    }
}

fn work_as_producer(producer: &mut Producer<Arc<Fenced>>, what: u8, value: u8) {
    let bytes = [value; 256];
    let len = usize::from(value);
    match what % 4 {
        0 => drop(producer.try_push(&bytes[..len])),
        1 => drop(producer.push_slices(&[&bytes[..len], &bytes[..3], &bytes[..len / 2]])),
        2 => {
            if let Ok(mut grant) = producer.try_reserve(len) {
                grant.write_at(len / 3, &bytes[len / 3..len]);
                grant.commit_shortened(len / 2 + 1);
            }
        }
        _ => assert!(producer.len() < RING as u64),
    }
}

fn work_as_consumer(consumer: &mut Consumer<Arc<Fenced>>, what: u8, value: u8) {
    let mut bytes = [0; 256];
    let place = &mut bytes[..usize::from(value)];
    match what % 4 {
        0 => drop(consumer.try_pop(place)),
        1 => {
            consumer.pop_each(3, |grant| {
                assert!((1..=LONGEST).contains(&grant.len()));
                assert!(grant.read(place) <= grant.len());
            });
        }
        2 => {
            if let Ok(grant) = consumer.try_peek() {
                grant.read(place);
                grant.release();
            }
        }
        _ => assert!(consumer.len().unwrap_or(0) < RING as u64),
    }
}

/// Lets a peer write words and both sides work, as the bytes of `script` say: whatever they are, all that follows is
/// an error or a wrong message.
fn hostile_peer(script: &[u8]) {
    let region = Fenced::new(layout().bytes());
    let (producer, consumer) = create(Arc::clone(&region), &layout()).unwrap();
    let (mut producer, mut consumer) = (Some(producer), Some(consumer));
    for step in script.chunks_exact(4) {
        let &[place, what, value, work] = step else { unreachable!("four bytes") };
        if work % 2 == 0 {
            // The header less than the ring: there the next step goes on.
            let words = layout().bytes() / 8;
            region.write(usize::from(place) % words * 8, hostile_word(what, value));
        }
        if let Some(producer) = &mut producer {
            work_as_producer(producer, work / 2, value);
        }
        if let Some(consumer) = &mut consumer {
            work_as_consumer(consumer, work / 8, value);
        }
        match what / 8 {
            0 => producer = None,
            1 => consumer = None,
            2 => producer = Producer::attach(Arc::clone(&region)).ok(),
            3 => {
                let attached = Consumer::attach(Arc::clone(&region));
                consumer = attached.ok().map(|consumer| consumer.delivery(Delivery::AtMostOnce));
            }
            4 => {
                let _ = layout().init(&region);
            }
            5 => {
                // A shape of its own, which a clean start needs.
                region.write(MAGIC, 0);
                let _ = layout().start(u64::from(value) << 56).init(&region);
            }
            _ => {}
        }
    }
    region.assert_fences();
}

#[test]
fn a_hostile_peer_only_spoils_messages() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..3000 {
        let script: Vec<u8> = (0..800).map(|_| random.byte()).collect();
        hostile_peer(&script);
    }
}

#[test]
fn a_hostile_peer_that_writes_meanwhile_only_spoils_messages() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let vandal = std::thread::spawn({
        let (region, is_over) = (Arc::clone(&region), Arc::clone(&is_over));
        move || {
            let mut random = Random(88_172_645_463_325_252);
            while !is_over.load(Ordering::Relaxed) {
                let offset = CREDIT + usize::from(random.byte()) * 8 % (layout().bytes() - CREDIT);
                region.write(offset, hostile_word(random.byte(), random.byte()));
            }
        }
    });
    let mut random = Random(1_234_567);
    let mut popped = 0;
    for _ in 0..100_000 {
        work_as_producer(&mut producer, random.byte(), random.byte());
        work_as_consumer(&mut consumer, random.byte(), random.byte());
        popped += u32::from(consumer.try_pop(&mut [0; RING]).is_ok());
    }
    is_over.store(true, Ordering::Relaxed);
    vandal.join().unwrap();
    assert!(popped > 0, "some get through");
    region.assert_fences();
}
