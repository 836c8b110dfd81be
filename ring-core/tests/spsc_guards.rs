//! What attaching refuses, and that a spoiled ring is an error and never an access outside the region.
//!
//! # Safety
//!
//! A role is taken over only after its owner was dropped or forgotten.
#![allow(unsafe_code)]

mod fenced;

use std::sync::Arc;

use fenced::Fenced;
use proptest::prelude::*;
use ring_core::spsc::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use ring_core::{AssumeGone, Error, Role};

const DEPTH: u64 = 8;

fn layout() -> Layout<u64> {
    Layout::new(DEPTH).unwrap()
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
const SLOTS: usize = 512;

fn attach(region: &Arc<Fenced>) -> Result<(), Error> {
    Producer::<u64, _>::attach(Arc::clone(region)).map(drop)?;
    Consumer::<u64, _>::attach(Arc::clone(region)).map(drop)
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
                SLOT_BYTES if found % 64 != 0 => Error::WrongSlotSize { found },
                SLOT_BYTES => {
                    // Slots that a ring can have, of a larger ring.
                    assert!(matches!(error, Error::RegionTooSmall { .. } | Error::TooLarge), "{error}");
                    continue;
                }
                DEPTH_WORD => Error::WrongDepth { found },
                _ => unreachable!(),
            };
            assert_eq!(error, expected);
        }
    }
    attach(&region).unwrap();

    // Shapes that a ring can have, of another ring.
    region.write(DEPTH_WORD, DEPTH * 2);
    let needed = (512 + 16 * 64) as u64;
    assert_eq!(attach(&region), Err(Error::RegionTooSmall { needed, available: layout().bytes() as u64 }));
    region.write(DEPTH_WORD, DEPTH);
    region.write(SLOT_BYTES, 1 << 62);
    assert_eq!(attach(&region), Err(Error::TooLarge));
    region.write(SLOT_BYTES, 64);

    // The other byte order: a ring that is ready, being made, being made anew.
    for magic in [*b"ring-mem", *b"ring-new", *b"ring-old"] {
        let magic = u64::from_le_bytes(magic).swap_bytes();
        region.write(MAGIC, magic);
        assert!(matches!(attach(&region), Err(Error::WrongArchitecture { .. })));
        assert!(matches!(layout().init(&region), Err(Error::WrongArchitecture { .. })));
        assert_eq!(region.read(MAGIC), magic);
    }
}

#[test]
fn another_message_type_is_refused() {
    let region = Fenced::new(layout().bytes());
    layout().init(&region).unwrap();
    let error = Consumer::<u32, _>::attach(Arc::clone(&region)).unwrap_err();
    assert_eq!(error, Error::WrongElementSize { found: 8, expected: 4 });
    let error = Consumer::<[u8; 8], _>::attach(Arc::clone(&region)).unwrap_err();
    assert_eq!(error, Error::WrongElementAlign { found: 8, expected: 1 });
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    for depth in [0, 3, 12, (1 << 31) + 1, 1 << 32, u64::MAX] {
        assert_eq!(Layout::<u64>::new(depth).unwrap_err(), Error::BadDepth { depth });
    }
    for log in 0..=31 {
        assert_eq!(Layout::<u64>::new(1 << log).unwrap().bytes(), 512 + (64 << log));
    }
    for slot_bytes in [0, 8, 63, 65, 100] {
        let error = layout().slot_bytes(slot_bytes).unwrap_err();
        assert_eq!(error, Error::BadSlotSize { slot_bytes, needed: 64 });
    }
    assert_eq!(layout().slot_bytes(1 << 62).unwrap_err(), Error::TooLarge);
    let small = Fenced::new(layout().bytes() - 64);
    let error = layout().init(&small).unwrap_err();
    assert_eq!(error, Error::RegionTooSmall { needed: 1024, available: 960 });
    let tiny = Fenced::new(64);
    assert!(matches!(attach(&tiny), Err(Error::RegionTooSmall { needed: 512, available: 64 })));
}

#[test]
fn roles_are_taken_and_given_back() {
    let region = Fenced::new(layout().bytes());
    let (producer, consumer) = create(Arc::clone(&region), &layout()).unwrap();
    assert_eq!(attach(&region), Err(Error::Taken { role: Role::Producer }));
    assert_eq!(layout().init(&region), Err(Error::Taken { role: Role::Producer }));
    let before = consumer.peer();
    assert!(before.held);
    drop(producer);
    assert!(!consumer.peer().held);
    assert_eq!(attach(&region), Err(Error::Taken { role: Role::Consumer }));
    assert_eq!(layout().init(&region), Err(Error::Taken { role: Role::Consumer }));
    let again = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    assert!(consumer.peer().incarnation > before.incarnation, "the other side can see a restart");
    drop((again, consumer));

    let killed = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    core::mem::forget(killed);
    assert_eq!(attach(&region), Err(Error::Taken { role: Role::Producer }));
    // SAFETY: the only producer was forgotten.
    let gone = unsafe { AssumeGone::all() };
    let successor = Producer::<u64, _>::take_over(Arc::clone(&region), &gone).unwrap();
    drop(successor);
    attach(&region).unwrap();
    layout().init(&region).unwrap();
}

#[test]
fn a_predecessor_that_comes_back_does_not_free_the_role() {
    let region = Fenced::new(layout().bytes());
    layout().init(&region).unwrap();
    let first = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    // SAFETY: not true, as in a process that was taken for dead; the region is not private.
    let gone = unsafe { AssumeGone::all() };
    let _second = Producer::<u64, _>::take_over(Arc::clone(&region), &gone).unwrap();
    drop(first);
    let error = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap_err();
    assert_eq!(error, Error::Taken { role: Role::Producer });
}

#[test]
fn a_ring_of_another_kind_or_version_is_not_made_over() {
    let region = Fenced::new(layout().bytes());
    layout().init(&region).unwrap();
    for offset in [VERSION, ARCHITECTURE, KIND] {
        let right = region.read(offset);
        region.write(offset, right + 1);
        let error = layout().init(&region).unwrap_err();
        let (found, expected) = (right + 1, right);
        assert_eq!(
            error,
            match offset {
                VERSION => Error::WrongVersion { found, expected },
                ARCHITECTURE => Error::WrongArchitecture { found, expected },
                _ => Error::WrongKind { found, expected },
            }
        );
        region.write(offset, right);
        attach(&region).unwrap();
    }
    region.write(VERSION, 99);
    region.write(MAGIC, 0);
    layout().init(&region).unwrap();
    attach(&region).unwrap();
}

#[test]
fn a_maker_that_was_killed_leaves_no_half_ring() {
    let region = Fenced::new(layout().bytes());
    // For the first time: who could say that the words around mean anything?
    region.write(MAGIC, u64::from_le_bytes(*b"ring-new"));
    assert_eq!(attach(&region), Err(Error::NotReady));
    assert_eq!(layout().init(&region), Err(Error::NotReady));
    region.write(MAGIC, 0);
    layout().init(&region).unwrap();

    // Anew: it held both roles.
    core::mem::forget(Producer::<u64, _>::attach(Arc::clone(&region)).unwrap());
    core::mem::forget(Consumer::<u64, _>::attach(Arc::clone(&region)).unwrap());
    region.write(MAGIC, u64::from_le_bytes(*b"ring-old"));
    assert_eq!(attach(&region), Err(Error::NotReady));
    assert_eq!(layout().init(&region), Err(Error::Taken { role: Role::Producer }));
    // SAFETY: both were forgotten.
    let gone = unsafe { AssumeGone::all() };
    let error = Producer::<u64, _>::take_over(Arc::clone(&region), &gone).unwrap_err();
    assert_eq!(error, Error::NotReady);
    layout().init_over(&region, &gone).unwrap();
    attach(&region).unwrap();
}

#[test]
fn closing_is_for_good() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    producer.try_push(1).unwrap();
    producer.close();
    assert_eq!(Producer::<u64, _>::attach(Arc::clone(&region)).unwrap_err(), Error::Closed);
    assert_eq!(consumer.try_pop(), Ok(1));
    assert_eq!(consumer.try_pop(), Err(PopError::Closed));
    assert_eq!(consumer.try_pop(), Err(PopError::Closed));
    drop(consumer);
    layout().init(&region).unwrap();
    attach(&region).unwrap();
}

#[test]
fn made_anew_over_old_memory_nothing_of_it_is_left() {
    for start in [0, 1, 7, 8, u64::MAX - 8, u64::MAX - 1, u64::MAX, 1 << 32] {
        let region = Fenced::new(layout().bytes());
        for old in [0, u64::MAX, start, start.wrapping_add(1)] {
            for offset in (0..layout().bytes()).step_by(8) {
                region.write(offset, old);
            }
            layout().start(start).init(&region).unwrap();
            let mut consumer = Consumer::<u64, _>::attach(Arc::clone(&region)).unwrap();
            assert_eq!(consumer.try_pop(), Err(PopError::Empty));
            let mut producer = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
            for value in 0..DEPTH {
                producer.try_push(value).unwrap();
            }
            assert_eq!(producer.try_push(0), Err(PushError::Full(0)));
            for value in 0..DEPTH {
                assert_eq!(consumer.try_pop(), Ok(value));
            }
        }
    }
}

#[test]
fn words_that_cannot_be_are_corrupted() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    for value in 0..DEPTH {
        producer.try_push(value).unwrap();
    }
    for credit in [DEPTH + 1, u64::MAX, 1 << 40] {
        region.write(CREDIT, credit);
        assert_eq!(producer.try_push(9), Err(PushError::Corrupted(9)));
        assert_eq!(producer.push_slice(&[9]), Err(PushError::Corrupted(())));
        assert_eq!(producer.push_iter([9]), Err(PushError::Corrupted(())));
        assert_eq!(producer.try_reserve().map(drop), Err(PushError::Corrupted(())));
    }
    region.write(SLOTS + 56, 12345);
    assert_eq!(consumer.try_pop(), Err(PopError::Corrupted));
    assert_eq!(consumer.try_peek().map(drop), Err(PopError::Corrupted));
    assert_eq!(consumer.pop_slice(&mut [0]), Err(PopError::Corrupted));
    drop((producer, consumer));
    assert_eq!(Producer::<u64, _>::attach(Arc::clone(&region)).unwrap_err(), Error::Corrupted);
    region.assert_fences();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// A peer that writes anything anywhere at any time: all that follows is an error or a wrong message.
    #[test]
    fn a_hostile_peer_only_spoils_messages(
        steps in prop::collection::vec(
            (any::<u8>(), 0..1024_usize / 8, prop_oneof![any::<u64>(), 0..20_u64, Just(u64::MAX)]),
            1..200,
        ),
    ) {
        let region = Fenced::new(layout().bytes());
        let (producer, consumer) = create(Arc::clone(&region), &layout())?;
        let mut producer = Some(producer);
        let mut consumer = Some(consumer);
        for (what, place, value) in steps {
            region.write(place * 8, value);
            if let Some(producer) = &mut producer {
                match what % 4 {
                    0 => drop(producer.try_push(value)),
                    1 => drop(producer.push_slice(&[value; 5])),
                    2 => if let Ok(mut grant) = producer.try_reserve() {
                        grant.write(&value);
                        grant.commit();
                    },
                    _ => prop_assert!(producer.len() <= DEPTH),
                }
            }
            if let Some(consumer) = &mut consumer {
                match what / 4 % 4 {
                    0 => drop(consumer.try_pop()),
                    1 => drop(consumer.pop_slice(&mut [0; 5])),
                    2 => if let Ok(grant) = consumer.try_peek() {
                        let _ = grant.read();
                        grant.release();
                    },
                    _ => prop_assert!(consumer.len().unwrap_or(0) <= DEPTH),
                }
                consumer.drain(usize::from(what % 3)).for_each(drop);
            }
            match what / 16 {
                0 => producer = None,
                1 => consumer = None,
                2 => producer = Producer::attach(Arc::clone(&region)).ok(),
                3 => {
                    consumer = Consumer::attach(Arc::clone(&region))
                        .ok()
                        .map(|consumer| consumer.delivery(Delivery::AtMostOnce));
                }
                4 => drop(layout().init(&region)),
                _ => {}
            }
        }
        region.assert_fences();
    }
}
