//! What attaching to a byte ring refuses, and that a spoiled one is an error and never an access outside the region.
//!
//! # Safety
//!
//! [`Fenced`] is part of a heap region that it owns; its words are reached as atomics.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use ring_core::bytes::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use ring_core::{AssumeGone, Error, HeapRegion, Region, Role, spsc};

const RING: usize = 256;
const LONGEST: usize = RING / 2 - 8;

fn layout() -> Layout {
    Layout::new(RING).unwrap()
}

/// Words that nothing may touch lie on both sides of the ring.
#[derive(Debug)]
struct Fenced {
    memory: HeapRegion,
    bytes: usize,
}

const FENCE: usize = 4096;
const FENCE_WORD: u64 = 0xa5a5_a5a5_a5a5_a5a5;

impl Fenced {
    fn new(bytes: usize) -> Arc<Self> {
        let fenced = Self { memory: HeapRegion::new(bytes + 2 * FENCE), bytes };
        fenced.fences().for_each(|word| word.store(FENCE_WORD, Ordering::Relaxed));
        Arc::new(fenced)
    }

    fn fences(&self) -> impl Iterator<Item = &AtomicU64> {
        let offsets = (0..FENCE).chain(FENCE + self.bytes..2 * FENCE + self.bytes);
        offsets.step_by(8).map(|offset| self.at(offset))
    }

    fn at(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.memory.bytes() && offset % 8 == 0);
        // SAFETY: the word lies in the memory.
        let word = unsafe { self.memory.base().add(offset) };
        // SAFETY: aligned, and shared as atomics only.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
    }

    fn write(&self, offset: usize, value: u64) {
        assert!(offset + 8 <= self.bytes);
        self.at(FENCE + offset).store(value, Ordering::Relaxed);
    }

    fn read(&self, offset: usize) -> u64 {
        assert!(offset + 8 <= self.bytes);
        self.at(FENCE + offset).load(Ordering::Relaxed)
    }

    fn assert_fences(&self) {
        let untouched = self.fences().all(|word| word.load(Ordering::Relaxed) == FENCE_WORD);
        assert!(untouched, "touched outside the region");
    }
}

// SAFETY: part of a heap region, aligned as it since the fence is a multiple of the alignment.
unsafe impl Region for Fenced {
    fn base(&self) -> NonNull<u8> {
        // SAFETY: the fence lies in the memory.
        unsafe { self.memory.base().add(FENCE) }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

const MAGIC: usize = 0;
const VERSION: usize = 8;
const ARCHITECTURE: usize = 16;
const KIND: usize = 24;
const ELEMENT_BYTES: usize = 32;
const ELEMENT_ALIGN: usize = 40;
const SLOT_BYTES: usize = 48;
const DEPTH_WORD: usize = 56;
const CREDIT: usize = 256;
const WORDS: usize = 512;
const PADDING: u64 = 1 << 63;

fn attach(region: &Arc<Fenced>) -> Result<(), Error> {
    Producer::attach(Arc::clone(region)).map(drop)?;
    Consumer::attach(Arc::clone(region)).map(drop)
}

#[test]
fn each_guard_has_its_error() {
    let region = Fenced::new(layout().bytes());
    assert_eq!(attach(&region), Err(Error::NotReady), "zeroed memory");
    layout().init(&region).unwrap();
    attach(&region).unwrap();

    for offset in (MAGIC..DEPTH_WORD + 8).step_by(8) {
        for byte in 0..8 {
            let right = region.read(offset);
            let found = right ^ (0x5a << (byte * 8));
            region.write(offset, found);
            let error = attach(&region).unwrap_err();
            region.write(offset, right);
            let expected = match offset {
                MAGIC => Error::WrongMagic { found },
                VERSION => Error::WrongVersion { found, expected: right },
                ARCHITECTURE => Error::WrongArchitecture { found, expected: right },
                KIND => Error::WrongKind { found, expected: right },
                ELEMENT_BYTES => Error::WrongElementSize { found, expected: right },
                ELEMENT_ALIGN => Error::WrongElementAlign { found, expected: right },
                SLOT_BYTES => Error::WrongSlotSize { found },
                DEPTH_WORD => Error::WrongDepth { found },
                _ => unreachable!(),
            };
            assert_eq!(error, expected);
        }
    }

    // Sizes that a ring can have, of another ring.
    region.write(DEPTH_WORD, 2 * RING as u64);
    let (needed, available) = ((512 + 2 * RING) as u64, layout().bytes() as u64);
    assert_eq!(attach(&region), Err(Error::RegionTooSmall { needed, available }));
    region.write(DEPTH_WORD, 1 << 63);
    assert_eq!(attach(&region), Err(Error::TooLarge));
    region.write(DEPTH_WORD, 32);
    assert_eq!(attach(&region), Err(Error::WrongDepth { found: 32 }));
    region.write(DEPTH_WORD, RING as u64);
    attach(&region).unwrap();
    region.assert_fences();
}

#[test]
fn rings_of_other_kinds_are_refused() {
    let region = Fenced::new(layout().bytes());
    spsc::Layout::<u64>::new(4).unwrap().init(&region).unwrap();
    assert_eq!(attach(&region), Err(Error::WrongKind { found: 1, expected: 2 }));
    assert_eq!(layout().init(&region), Err(Error::WrongKind { found: 1, expected: 2 }));
    region.write(MAGIC, 0);
    layout().init(&region).unwrap();
    let error = spsc::Consumer::<u64, _>::attach(Arc::clone(&region)).unwrap_err();
    assert_eq!(error, Error::WrongKind { found: 2, expected: 1 });
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for ring_bytes in [0, 1, 8, 32, 63, 65, 96, 4095, usize::MAX] {
        assert_eq!(Layout::new(ring_bytes).unwrap_err(), Error::BadRingBytes { ring_bytes });
    }
    for log in 6..62 {
        let layout = Layout::new(1 << log).unwrap();
        assert_eq!(layout.bytes(), 512 + (1 << log));
        assert_eq!(layout.longest(), (1 << (log - 1)) - 8);
    }
    for log in 62..64 {
        assert_eq!(Layout::new(1 << log).unwrap_err(), Error::TooLarge);
    }
    let small = Fenced::new(layout().bytes() - 64);
    let error = layout().init(&small).unwrap_err();
    assert_eq!(error, Error::RegionTooSmall { needed: 768, available: 704 });
    let tiny = Fenced::new(64);
    assert_eq!(attach(&tiny), Err(Error::RegionTooSmall { needed: 512, available: 64 }));
}

#[test]
fn roles_are_taken_and_given_back() {
    let region = Fenced::new(layout().bytes());
    let (producer, consumer) = create(Arc::clone(&region), &layout()).unwrap();
    assert_eq!(attach(&region), Err(Error::Taken { role: Role::Producer }));
    assert_eq!(layout().init(&region), Err(Error::Taken { role: Role::Producer }));
    let before = consumer.peer();
    assert!(before.held && producer.peer().held);
    drop(producer);
    assert!(!consumer.peer().held);
    assert_eq!(attach(&region), Err(Error::Taken { role: Role::Consumer }));
    assert_eq!(layout().init(&region), Err(Error::Taken { role: Role::Consumer }));
    let again = Producer::attach(Arc::clone(&region)).unwrap();
    assert!(consumer.peer().incarnation > before.incarnation, "the other side can see a restart");
    core::mem::forget((again, consumer));

    assert_eq!(attach(&region), Err(Error::Taken { role: Role::Producer }));
    assert_eq!(layout().init(&region), Err(Error::Taken { role: Role::Producer }));
    // SAFETY: both were forgotten.
    let gone = unsafe { AssumeGone::new() };
    drop(Producer::take_over(Arc::clone(&region), &gone).unwrap());
    layout().init_over(&region, &gone).unwrap();
    attach(&region).unwrap();
}

#[test]
fn closing_is_for_good() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    producer.try_push(b"last").unwrap();
    producer.close();
    assert_eq!(Producer::attach(Arc::clone(&region)).unwrap_err(), Error::Closed);
    let mut bytes = [0; 4];
    assert_eq!(consumer.try_pop(&mut bytes), Ok(4));
    assert_eq!(consumer.try_pop(&mut bytes), Err(PopError::Closed));
    assert_eq!(consumer.try_peek().map(drop), Err(PopError::Closed));
    drop(consumer);
    layout().init(&region).unwrap();
    attach(&region).unwrap();
}

#[test]
fn messages_that_never_fit_have_their_errors() {
    let (mut producer, mut consumer) = create(Fenced::new(layout().bytes()), &layout()).unwrap();
    let too_long = PushError::TooLong { longest: LONGEST };
    assert_eq!(producer.longest(), LONGEST);
    assert_eq!(producer.try_push(&[]), Err(PushError::NoBytes));
    assert_eq!(producer.try_reserve(0).map(drop), Err(PushError::NoBytes));
    for len in [LONGEST + 1, RING, usize::MAX] {
        assert_eq!(producer.try_reserve(len).map(drop), Err(too_long));
    }
    assert_eq!(producer.try_push(&[1; LONGEST + 1]), Err(too_long));
    assert_eq!(producer.push_slices(&[&[1; LONGEST + 1][..], &[1]]), Err(too_long));
    assert_eq!(producer.push_slices(&[&[1; 9][..], &[]]), Ok(1));
    assert_eq!(producer.push_slices::<[u8; 4]>(&[]), Ok(0));
    let mut bytes = [0; 8];
    assert_eq!(consumer.try_pop(&mut bytes), Err(PopError::TooShort { len: 9 }));
    assert_eq!(consumer.try_peek().unwrap().len(), 9);
}

#[test]
fn the_longest_message_fits_however_the_ring_stands() {
    for offset in (0..RING as u64).step_by(8) {
        for base in [0, u64::MAX - 300] {
            let layout = layout().start(base.wrapping_add(offset));
            let (mut producer, mut consumer) = create(Fenced::new(layout.bytes()), &layout).unwrap();
            producer.try_push(&[7; LONGEST]).unwrap();
            assert_eq!(producer.try_push(&[8; LONGEST]), Err(PushError::Full));
            let mut bytes = [0; LONGEST];
            assert_eq!(consumer.try_pop(&mut bytes), Ok(LONGEST));
            assert_eq!(consumer.try_pop(&mut bytes), Err(PopError::Empty));
            producer.try_push(&[8; LONGEST]).unwrap();
            assert_eq!(consumer.try_pop(&mut bytes), Ok(LONGEST));
            assert_eq!(bytes, [8; LONGEST]);
        }
    }
}

#[test]
fn words_that_cannot_be_are_corrupted() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    producer.try_push(&[1; LONGEST]).unwrap();
    for credit in [1, 124, 136, RING as u64, 1 << 40, u64::MAX, 0_u64.wrapping_sub(128)] {
        region.write(CREDIT, credit);
        assert_eq!(producer.try_push(&[2; LONGEST]), Err(PushError::Corrupted), "{credit}");
        assert_eq!(producer.push_slices(&[[2; LONGEST]]), Err(PushError::Corrupted));
        assert_eq!(producer.try_reserve(LONGEST).map(drop), Err(PushError::Corrupted));
    }
    region.write(CREDIT, 0);

    // Too long, no padding to the ring's end, beyond the ring's end.
    for header in [
        LONGEST as u64 + 1,
        u64::MAX,
        u64::MAX >> 1,
        PADDING,
        PADDING | RING as u64,
        PADDING | (RING as u64 - 8),
        PADDING | 1,
    ] {
        region.write(WORDS, header);
        assert_eq!(consumer.try_pop(&mut [0; RING]), Err(PopError::Corrupted), "{header:#x}");
        assert_eq!(consumer.try_peek().map(drop), Err(PopError::Corrupted));
        assert_eq!(consumer.len(), Err(PopError::Corrupted));
    }
    region.write(WORDS, LONGEST as u64);
    consumer.try_peek().unwrap().release();
    assert_eq!(consumer.head(), 128);
    // Padding to the ring's end that no message can have needed, though there is one behind it.
    region.write(WORDS + 128, PADDING | 120);
    region.write(WORDS, 3);
    assert_eq!(consumer.try_peek().map(drop), Err(PopError::Corrupted));
    // Beyond the ring's end, though short enough; padding that is right, with none or worse behind it.
    region.write(WORDS + 128, 8);
    consumer.try_peek().unwrap().release();
    region.write(WORDS + 144, LONGEST as u64);
    assert_eq!(consumer.try_peek().map(drop), Err(PopError::Corrupted));
    region.write(WORDS + 144, PADDING | 104);
    for header in [0, PADDING | 248, LONGEST as u64 + 1] {
        region.write(WORDS, header);
        assert_eq!(consumer.try_peek().map(drop), Err(PopError::Corrupted));
    }
    region.write(WORDS, 3);
    assert_eq!(consumer.try_peek().unwrap().len(), 3);

    // Lengths that lead around the ring for ever.
    drop((producer, consumer));
    for offset in (0..RING).step_by(16) {
        region.write(WORDS + offset, 8);
    }
    region.write(CREDIT, 0);
    assert_eq!(Producer::attach(Arc::clone(&region)).unwrap_err(), Error::Corrupted);
    let consumer = Consumer::attach(Arc::clone(&region)).unwrap();
    assert_eq!(consumer.len(), Err(PopError::Corrupted));
    drop(consumer);
    region.write(CREDIT, 4);
    assert_eq!(Producer::attach(Arc::clone(&region)).unwrap_err(), Error::Corrupted);
    assert_eq!(Consumer::attach(Arc::clone(&region)).unwrap_err(), Error::Corrupted);
    region.assert_fences();
}

#[test]
fn a_grant_keeps_its_length_whatever_the_peer_writes() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    producer.try_push(&[1; 40]).unwrap();
    let grant = consumer.try_peek().unwrap();
    region.write(WORDS, u64::MAX);
    let mut bytes = [0; RING];
    assert_eq!((grant.len(), grant.read(&mut bytes)), (40, 40));
    assert_eq!(grant.read(&mut bytes[..3]), 3);
    grant.release();
    assert_eq!(consumer.head(), 48);
    region.assert_fences();
}

#[test]
#[should_panic(expected = "5 bytes at 4 in a message of 8")]
fn a_part_beyond_the_message_is_refused() {
    let (mut producer, _consumer) = create(Fenced::new(layout().bytes()), &layout()).unwrap();
    producer.try_reserve(8).unwrap().write_at(4, &[0; 5]);
}

#[test]
#[should_panic(expected = "0 bytes of a grant of 8")]
fn a_message_is_not_shortened_to_nothing() {
    let (mut producer, _consumer) = create(Fenced::new(layout().bytes()), &layout()).unwrap();
    producer.try_reserve(8).unwrap().commit_shortened(0);
}

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
            consumer.drain(3, |grant| {
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
/// an error or a wrong message. A fuzzer can call it with what it likes.
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
