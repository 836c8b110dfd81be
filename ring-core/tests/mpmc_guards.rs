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
use ring_core::mpmc::{Consumer, Layout, PopError, Producer, PushError, UnfinishedPops, create};
use ring_core::{AssumeAlive, AssumeGone, Error, HeapRegion, Role};

const DEPTH: u64 = 4;
const PLACES: u16 = 3;

fn layout() -> Layout<u64> {
    Layout::new(DEPTH).unwrap().participants(PLACES).unwrap()
}

const KIND: usize = 24;
const ELEMENT_BYTES: usize = 32;
const SLOT_BYTES: usize = 48;
const DEPTH_WORD: usize = 56;
const PARTICIPANTS: usize = 128;
const UNFINISHED: usize = 136;
const TABLE: usize = 512;
const SLOTS: usize = 640;

fn attach(region: &Arc<Fenced>) -> Result<(), Error> {
    Producer::<u64, _>::attach(Arc::clone(region)).map(drop)?;
    Consumer::<u64, _>::attach(Arc::clone(region)).map(drop)
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    for depth in [0, 3, 12, (1 << 31) + 1, 1 << 32, u64::MAX] {
        assert_eq!(Layout::<u64>::new(depth).unwrap_err(), Error::BadDepth { depth });
    }
    for participants in [0, 1024, u16::MAX] {
        let error = layout().participants(participants).unwrap_err();
        assert_eq!(error, Error::BadParticipants { participants });
    }
    let error = layout().slot_bytes(72).unwrap_err();
    assert_eq!(error, Error::BadSlotSize { slot_bytes: 72, needed: 64 });
    assert_eq!(layout().slot_bytes(usize::MAX - 63).unwrap_err(), Error::TooLarge);
    assert_eq!(layout().bytes(), SLOTS + 4 * 64);
    assert_eq!(layout().participants(1023).unwrap().bytes(), 512 + 1024 * 16 + 4 * 64);
    let small = HeapRegion::new(layout().bytes() - 128);
    assert!(matches!(layout().init(&small), Err(Error::RegionTooSmall { .. })));
}

#[test]
fn each_guard_has_its_error() {
    let region = Fenced::new(layout().bytes());
    assert_eq!(attach(&region), Err(Error::NotReady), "zeroed memory");
    layout().init(&region).unwrap();
    attach(&region).unwrap();
    for (offset, value, error) in [
        (KIND, 1, Error::WrongKind { found: 1, expected: 3 }),
        (ELEMENT_BYTES, 9, Error::WrongElementSize { found: 9, expected: 8 }),
        (SLOT_BYTES, 65, Error::WrongSlotSize { found: 65 }),
        (DEPTH_WORD, 5, Error::WrongDepth { found: 5 }),
        (PARTICIPANTS, 0, Error::WrongParticipants { found: 0 }),
        (PARTICIPANTS, 1024, Error::WrongParticipants { found: 1024 }),
        (PARTICIPANTS, u64::MAX, Error::WrongParticipants { found: u64::MAX }),
        (UNFINISHED, 2, Error::Corrupted),
    ] {
        let right = region.read(offset);
        region.write(offset, value);
        assert_eq!(attach(&region), Err(error));
        region.write(offset, right);
        attach(&region).unwrap();
    }
    let needed = region.read(DEPTH_WORD);
    region.write(DEPTH_WORD, 1 << 20);
    assert!(matches!(attach(&region), Err(Error::RegionTooSmall { .. })));
    region.write(DEPTH_WORD, needed);
    region.write(PARTICIPANTS, 1023);
    assert!(matches!(attach(&region), Err(Error::RegionTooSmall { .. })));
    region.assert_fences();
}

#[test]
fn places_are_as_many_as_were_asked_for() {
    let region = Fenced::new(layout().bytes());
    let (producer, consumer) = create(Arc::clone(&region), &layout()).unwrap();
    assert_eq!((producer.id(), consumer.id()), (1, 2));
    let third = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    let full = Error::TooManyParticipants { participants: PLACES };
    assert_eq!(attach(&region), Err(full));
    assert_eq!(Consumer::<u64, _>::attach(Arc::clone(&region)).unwrap_err(), full);
    let error = Consumer::<u64, _>::attach_with(Arc::clone(&region), &AssumeAlive).unwrap_err();
    assert_eq!(error, full, "whose owners live");
    drop(third);
    attach(&region).unwrap();
    // SAFETY: nobody is taken for gone: the places asked for do not exist.
    let gone = unsafe { AssumeGone::all() };
    for id in [0, PLACES + 1, u16::MAX] {
        let error = Consumer::<u64, _>::take_over(Arc::clone(&region), id, &gone).unwrap_err();
        assert_eq!(error, Error::NoSuchParticipant { id, participants: PLACES });
        assert_eq!(producer.participant(id), None);
    }
    let taken = Error::Taken { role: Role::Participant(1) };
    assert_eq!(layout().init(&region), Err(taken));
    drop((producer, consumer));
    let other = layout().participants(2).unwrap();
    assert_eq!(other.init(&region), Err(Error::WrongParticipants { found: 3 }));
    layout().unfinished_pops(UnfinishedPops::Skip).init(&region).unwrap();
    attach(&region).unwrap();
}

/// Who knows of one participant that it is gone must not touch what another one has.
#[test]
fn a_promise_about_one_place_leaves_the_others_alone() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, consumer) = create(Arc::clone(&region), &layout()).unwrap();
    let dead = Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    let (living, id) = (producer.id(), dead.id());
    core::mem::forget(dead);
    let mut grant = producer.try_reserve().unwrap();
    // SAFETY: the third handle was forgotten just now.
    let gone = unsafe { AssumeGone::of(Role::Participant(id)) };
    let mut successor = Producer::<u64, _>::take_over(Arc::clone(&region), id, &gone).unwrap();
    assert_eq!(successor.recover(&gone), Ok(0));
    for _ in 0..10 {
        let _ = successor.try_push_with(2, &gone);
    }
    assert!(successor.participant(living).unwrap().held);
    let taken = Error::Taken { role: Role::Participant(living) };
    assert_eq!(Consumer::<u64, _>::take_over(region, living, &gone).unwrap_err(), taken);
    grant.write(&1);
    grant.commit();
    let mut consumer = consumer;
    assert_eq!(consumer.try_pop(), Ok(1), "nobody gave the slot up");
}

#[test]
fn words_that_cannot_be_are_corrupted() {
    let region = Fenced::new(layout().bytes());
    let (mut producer, mut consumer) = create(Arc::clone(&region), &layout()).unwrap();
    // Writing by nobody and by a participant that there is not, full with an owner, free with one, laps ago.
    for word in [1, (PLACES as u64 + 1) << 2 | 1, 1 << 2 | 2, 1 << 2, (1 << 63) | 2] {
        region.write(SLOTS + 56, word);
        assert_eq!(producer.try_push(9), Err(PushError::Corrupted(9)), "{word:#x}");
        assert_eq!(producer.push_slice(&[9]), Err(PushError::Corrupted(())));
        assert_eq!(producer.try_reserve().map(drop), Err(PushError::Corrupted(())));
        assert_eq!(consumer.try_pop(), Err(PopError::Corrupted), "{word:#x}");
        assert_eq!(consumer.try_peek().map(drop), Err(PopError::Corrupted));
        assert_eq!(consumer.pop_slice(&mut [0]), Err(PopError::Corrupted));
    }
    region.write(SLOTS + 56, 1);
    // SAFETY: nobody is gone, and nobody is asked for.
    let gone = unsafe { AssumeGone::all() };
    assert_eq!(producer.recover(&gone), Err(Error::Corrupted));
    region.assert_fences();
}

/// What a peer would write to do harm.
fn evil() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..64_u64,
        Just(u64::MAX),
        (0..8_u64, 0..6_u64, 0..4_u64).prop_map(|(lap, owner, state)| lap << 12 | owner << 2 | state)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// A peer that writes anything anywhere at any time: all that follows is an error or a wrong message.
    #[test]
    fn a_hostile_peer_only_spoils_messages(
        steps in prop::collection::vec((any::<u8>(), any::<u8>(), 0..896_usize / 8, evil()), 1..200),
    ) {
        let region = Fenced::new(layout().bytes());
        let (producer, consumer) = create(Arc::clone(&region), &layout())?;
        let mut producer = Some(producer);
        let mut consumer = Some(consumer);
        // SAFETY: the region is no trusted one, so whoever is wrongly taken for gone is one more hostile peer.
        let gone = unsafe { AssumeGone::all() };
        for (what, then, place, value) in steps {
            // Most of it where it hurts: hints, the table, words of slots.
            let place = match then % 4 {
                0 => place,
                1 => [256, 384, 144, 152][place % 4] / 8,
                2 => TABLE / 8 + place % 6,
                _ => (SLOTS + 56) / 8 + place % 4 * 8,
            };
            region.write(place * 8, value);
            if let Some(producer) = &mut producer {
                match what % 8 {
                    0 | 1 => drop(producer.try_push(value)),
                    2 => drop(producer.push_slice(&[value; 5])),
                    3 => if let Ok(mut grant) = producer.try_reserve() {
                        region.write(place * 8, value.wrapping_add(1));
                        grant.write(&value);
                        if value % 2 == 0 { grant.commit(); }
                    },
                    4 => for _ in 0..6 { let _ = producer.try_push_with(value, &gone); },
                    5 => drop(producer.recover(&gone)),
                    6 => drop(producer.try_reserve().map(core::mem::forget)),
                    _ => prop_assert!(producer.len() <= DEPTH),
                }
            }
            if let Some(consumer) = &mut consumer {
                match what / 8 % 8 {
                    0 | 1 => drop(consumer.try_pop()),
                    2 => drop(consumer.pop_slice(&mut [0; 5])),
                    3 => if let Ok(grant) = consumer.try_peek() {
                        region.write(place * 8, value.wrapping_add(1));
                        let _ = grant.read();
                        if value % 2 == 0 { grant.release(); }
                    },
                    4 => for _ in 0..6 { let _ = consumer.try_pop_with(&gone); },
                    5 => drop(consumer.recover(&gone)),
                    6 => drop(consumer.try_peek().map(core::mem::forget)),
                    _ => consumer.drain(usize::from(what % 3)).for_each(drop),
                }
            }
            match then / 4 % 16 {
                0 => producer = None,
                1 => consumer = None,
                2 => producer = Producer::attach(Arc::clone(&region)).ok(),
                3 => consumer = Consumer::attach(Arc::clone(&region)).ok(),
                4 => producer = Producer::attach_with(Arc::clone(&region), &gone).ok(),
                5 => consumer = Consumer::take_over(Arc::clone(&region), u16::from(what % 5), &gone).ok(),
                6 => drop(layout().init(&region)),
                _ => {}
            }
        }
        region.assert_fences();
    }
}
