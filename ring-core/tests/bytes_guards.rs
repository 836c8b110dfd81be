//! What attaching to a byte ring refuses, and that a spoiled one is an error and never an access outside the region.
//!
//! # Safety
//!
//! A role is taken over only after its owner was forgotten.
#![allow(unsafe_code)]

mod fenced;

use std::sync::Arc;

use fenced::Fenced;
use ring_core::bytes::{Consumer, Layout, PopError, Producer, PushError, create};
use ring_core::{AssumeGone, Error, Role, spsc};

const RING: usize = 256;
const LONGEST: usize = RING / 2 - 8;

fn layout() -> Layout {
    Layout::new(RING).unwrap()
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
    let gone = unsafe { AssumeGone::all() };
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
    assert_eq!(producer.push_slices(&[&[][..], &[1]]), Err(PushError::NoBytes));
    assert_eq!(producer.push_slices::<[u8; 4]>(&[]), Ok(0));
    let mut bytes = [0; 8];
    assert_eq!(consumer.try_pop(&mut bytes), Err(PopError::BufferTooShort { len: 9 }));
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
