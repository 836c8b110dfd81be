//! What attaching and joining refuse, and that a spoiled ring is an error and never an access outside the region.
//!
//! # Safety
//!
//! A role is taken over only after its owner was dropped or forgotten.
#![allow(unsafe_code)]

mod fenced;

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use fenced::Fenced;
use proptest::prelude::*;
use ring_core::broadcast::{Consumer, Layout, PopError, Producer, create};
use ring_core::{AssumeGone, Error, HeapRegion, Role};

const DEPTH: u64 = 8;

fn layout() -> Layout<u64> {
    Layout::new(DEPTH).unwrap()
}

const MAGIC: usize = 0;
const DEPTH_WORD: usize = 56;
const STATE: usize = 136;
const HINT: usize = 256;
const SLOTS: usize = 384;

/// The word of a slot of 64 bytes.
const fn slot_word(index: usize) -> usize {
    SLOTS + index * 64 + 56
}

fn attach(region: &Arc<Fenced>) -> Result<(), Error> {
    Producer::<u64, _>::attach(Arc::clone(region)).map(drop)
}

fn join(region: &Arc<Fenced>) -> Result<Consumer<u64, Arc<Fenced>>, Error> {
    Consumer::join(Arc::clone(region))
}

#[test]
fn each_guard_has_its_error_on_both_sides() {
    let region = Fenced::new(layout().bytes());
    assert_eq!(attach(&region), Err(Error::NotReady), "zeroed memory");
    assert_eq!(join(&region).unwrap_err(), Error::NotReady);
    layout().init(&region).unwrap();
    attach(&region).unwrap();

    for offset in (MAGIC..DEPTH_WORD + 8).step_by(8) {
        let right = region.read(offset);
        let found = right ^ 0x5a00;
        region.write(offset, found);
        let error = attach(&region).unwrap_err();
        assert_eq!(join(&region).unwrap_err(), error);
        assert_eq!(Consumer::<u64, _>::join_oldest(Arc::clone(&region)).unwrap_err(), error);
        region.write(offset, right);
        let expected = match offset {
            MAGIC => Error::WrongMagic { found },
            8 => Error::WrongVersion { found, expected: right },
            16 => Error::WrongArchitecture { found, expected: right },
            24 => Error::WrongKind { found, expected: 4 },
            32 => Error::WrongElementSize { found, expected: 8 },
            40 => Error::WrongElementAlign { found, expected: 8 },
            48 => Error::RegionTooSmall {
                needed: SLOTS as u64 + DEPTH * found,
                available: layout().bytes() as u64,
            },
            _ => Error::WrongDepth { found },
        };
        assert_eq!(error, expected);
    }
    region.write(48, 65);
    assert_eq!(join(&region).unwrap_err(), Error::WrongSlotSize { found: 65 });
    region.write(48, 1 << 62);
    assert_eq!(join(&region).unwrap_err(), Error::TooLarge);
    region.write(48, 64);
    join(&region).unwrap();
    let tiny = Fenced::new(64);
    assert_eq!(join(&tiny).unwrap_err(), Error::RegionTooSmall { needed: 384, available: 64 });
    let ring = HeapRegion::new(4096);
    ring_core::spsc::Layout::<u64>::new(DEPTH).unwrap().init(&ring).unwrap();
    let error = Consumer::<u64, _>::join(&ring).unwrap_err();
    assert_eq!(error, Error::WrongKind { found: 1, expected: 4 });
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    for depth in [0, 3, 12, (1 << 31) + 1, u64::MAX] {
        assert_eq!(Layout::<u64>::new(depth).unwrap_err(), Error::BadDepth { depth });
    }
    for log in 0..=31 {
        assert_eq!(Layout::<u64>::new(1 << log).unwrap().bytes(), SLOTS + (64 << log));
    }
    let error = layout().slot_bytes(100).unwrap_err();
    assert_eq!(error, Error::BadSlotSize { slot_bytes: 100, needed: 64 });
    assert_eq!(layout().slot_bytes(1 << 62).unwrap_err(), Error::TooLarge);
    let small = Fenced::new(layout().bytes() - 64);
    let error = layout().init(&small).unwrap_err();
    assert_eq!(error, Error::RegionTooSmall { needed: 896, available: 832 });
}

#[test]
fn consumers_write_nothing() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut first) = create(Arc::clone(&region), &layout()).unwrap();
    (0..DEPTH + 3).for_each(|value| producer.push(&value));
    let before = region.contents();
    let mut newest = join(&region).unwrap();
    let mut oldest = Consumer::<u64, _>::join_oldest(Arc::clone(&region)).unwrap();
    assert_eq!(newest.try_pop(), Err(PopError::Empty));
    assert_eq!(first.try_pop(), Err(PopError::Lost { messages: 3 }));
    assert_eq!(first.lag(), Ok(DEPTH));
    assert_eq!(first.drain(usize::MAX).count(), 8);
    assert_eq!(oldest.pop_slice(&mut [0; 20]), Ok(8));
    assert!(oldest.is_empty());
    drop((newest, oldest, first));
    assert_eq!(region.contents(), before);
}

#[test]
fn the_producers_role_is_taken_and_given_back() {
    let region = Fenced::new(layout().bytes());
    let (producer, consumer) = create(Arc::clone(&region), &layout()).unwrap();
    let taken = Error::Taken { role: Role::Producer };
    assert_eq!(attach(&region), Err(taken));
    assert_eq!(layout().init(&region), Err(taken));
    assert!(consumer.peer().held);
    core::mem::forget(producer);
    assert_eq!(attach(&region), Err(taken));
    // SAFETY: the only producer was forgotten.
    let gone = unsafe { AssumeGone::all() };
    let mut successor = Producer::<u64, _>::take_over(Arc::clone(&region), &gone).unwrap();
    successor.push(&1);
    successor.close();
    assert_eq!(attach(&region), Err(Error::Closed));
    assert_eq!(layout().init_over(&region, &gone), Ok(()));
    attach(&region).unwrap();
}

#[test]
fn who_joins_a_closed_ring_gets_what_is_left() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, _) = create(Arc::clone(&region), &layout()).unwrap();
    producer.push_slice(&[1, 2]);
    producer.close();
    assert_eq!(join(&region).unwrap().try_pop(), Err(PopError::Closed));
    let mut oldest = Consumer::<u64, _>::join_oldest(Arc::clone(&region)).unwrap();
    assert_eq!(oldest.drain(9).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(oldest.try_pop(), Err(PopError::Closed));
    assert_eq!(oldest.try_pop(), Err(PopError::Closed));
}

#[test]
fn made_anew_over_old_memory_nothing_of_it_is_left() {
    for start in [0, 1, 7, 8, u64::MAX - 8, u64::MAX, (1 << 63) - 1, 1 << 63, 1 << 32] {
        let region = Fenced::new(layout().bytes());
        for old in [0, u64::MAX, start << 1, start << 1 | 1] {
            for offset in (0..layout().bytes()).step_by(8) {
                region.write(offset, old);
            }
            layout().start(start).init(&region).unwrap();
            let mut oldest = Consumer::<u64, _>::join_oldest(Arc::clone(&region)).unwrap();
            assert_eq!((oldest.head(), oldest.try_pop()), (start, Err(PopError::Empty)));
            let mut producer = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
            (0..DEPTH).for_each(|value| producer.push(&value));
            assert!(oldest.drain(usize::MAX).eq(0..DEPTH));
        }
    }
}

#[test]
fn who_is_left_in_a_ring_that_was_made_anew_learns_of_it() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut empty) = create(Arc::clone(&region), &layout()).unwrap();
    let mut behind = join(&region).unwrap();
    producer.push(&1);
    assert_eq!(empty.try_pop(), Ok(1));
    drop(producer);
    let (mut producer, _) = create(Arc::clone(&region), &layout()).unwrap();
    assert_eq!(empty.try_pop(), Err(PopError::Corrupted));
    (0..2 * DEPTH).for_each(|value| producer.push(&value));
    assert_eq!(behind.try_pop(), Err(PopError::Corrupted));
}

#[test]
fn words_that_cannot_be_are_corrupted() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    (0..DEPTH).for_each(|value| producer.push(&value));
    let right = region.read(slot_word(0));
    // Of another slot, of laps long ago, of half the way round.
    for word in [2, 3, right.wrapping_sub(32), right.wrapping_sub(15), 1 << 62, 1 << 63, u64::MAX] {
        region.write(slot_word(0), word);
        let found = consumer.try_pop();
        assert_eq!(found, Err(PopError::Corrupted), "{word:#x}");
        assert_eq!(consumer.pop_slice(&mut [0]), Err(PopError::Corrupted));
        assert_eq!(consumer.drain(1).next(), None);
    }
    // It says that it was overwritten, and the others do not.
    region.write(slot_word(0), 1 << 40);
    assert_eq!(consumer.try_pop(), Err(PopError::Corrupted));
    region.write(slot_word(0), right);
    assert_eq!(consumer.try_pop(), Ok(0));

    for hint in [3 * DEPTH, 1 << 40, 1 << 62] {
        region.write(HINT, hint);
        assert_eq!(join(&region).unwrap_err(), Error::Corrupted);
        assert_eq!(consumer.lag(), Err(PopError::Corrupted));
    }
    drop(producer);
    assert_eq!(attach(&region), Err(Error::Corrupted));
    region.write(HINT, DEPTH);
    region.write(STATE, 77 << 2);
    assert_eq!(consumer.drain(9).count(), 7);
    assert_eq!(consumer.try_pop(), Err(PopError::Corrupted));
    region.write(STATE, 2);
    assert_eq!(join(&region).unwrap_err(), Error::NotReady);
    region.assert_fences();
}

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..60_u64, Just(u64::MAX), (0..64_u32).prop_map(|shift| 1 << shift)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// A peer that writes anything anywhere: all that follows is an error or a wrong message.
    #[test]
    fn a_hostile_peer_only_spoils_messages(
        steps in prop::collection::vec((any::<u8>(), 0..(SLOTS + 8 * 64) / 8, word()), 1..200),
    ) {
        let region = Fenced::new(layout().bytes());
        let (producer, consumer) = create(Arc::clone(&region), &layout())?;
        let (mut producer, mut consumer) = (Some(producer), Some(consumer));
        for (what, place, value) in steps {
            region.write(place * 8, value);
            if let Some(producer) = &mut producer {
                match what % 4 {
                    0 => producer.push(&value),
                    1 => producer.push_slice(&[value; 11]),
                    2 => producer.reserve().commit(),
                    _ => drop(producer.reserve()),
                }
            }
            if let Some(consumer) = &mut consumer {
                match what / 4 % 4 {
                    0 => drop(consumer.try_pop()),
                    1 => drop(consumer.pop_slice(&mut [0; 5])),
                    2 => drop(consumer.drain(usize::MAX).take(30).count()),
                    _ => drop(consumer.lag()),
                }
            }
            match what / 16 {
                0 => producer = None,
                1 => producer = Producer::attach(Arc::clone(&region)).ok(),
                2 => consumer = Consumer::join(Arc::clone(&region)).ok(),
                3 => consumer = Consumer::join_oldest(Arc::clone(&region)).ok(),
                4 => drop(layout().init(&region)),
                _ => {}
            }
        }
        region.assert_fences();
    }
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[test]
fn a_hostile_peer_at_work_meanwhile_only_spoils_messages() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 1;
            while !is_over.load(Ordering::Relaxed) {
                // Words near those that are right, more often than any; the guards stay.
                let words = (layout().bytes() - 128) as u64 / 8;
                let offset = 128 + usize::try_from(random(&mut seed) % words).unwrap() * 8;
                let near = region.read(offset).wrapping_add(random(&mut seed) % 64).wrapping_sub(32);
                region.write(offset, if random(&mut seed) % 4 == 0 { random(&mut seed) } else { near });
            }
        });
        let mut seed = 2;
        for _ in 0..50_000 {
            match random(&mut seed) % 8 {
                0 | 1 => producer.push(&seed),
                2 => producer.reserve().write(&seed),
                3 => drop(consumer.try_pop()),
                4 => drop(consumer.pop_slice(&mut [0; 5])),
                5 => drop(consumer.lag()),
                6 => consumer = join(&region).unwrap_or(consumer),
                _ => consumer = Consumer::join_oldest(Arc::clone(&region)).unwrap_or(consumer),
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    region.assert_fences();
}
