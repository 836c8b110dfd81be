//! Looking at rings of every kind without a role, whole ones and spoiled ones.

mod fenced;

use std::sync::Arc;

use fenced::Fenced;
use ring_core::{Error, Inspector, Kind, Progress, Role, broadcast, bytes, mpmc, spsc};

/// A ring of each kind, made but for its start alike.
const DEPTH: u64 = 8;
const RING_BYTES: usize = 128;

/// Where positions wrap soon, and where they do not.
const STARTS: [u64; 4] = [0, u64::MAX - 23, 1 << 63, (1 << 32) - 8];

fn slots(start: u64) -> spsc::Layout<u64> {
    spsc::Layout::new(DEPTH).unwrap().start(start)
}

fn row(start: u64) -> bytes::Layout {
    bytes::Layout::new(RING_BYTES).unwrap().start(start)
}

fn places(start: u64) -> mpmc::Layout<u64> {
    mpmc::Layout::new(DEPTH).unwrap().participants(3).unwrap().start(start)
}

fn seen_by_all(start: u64) -> broadcast::Layout<u64> {
    broadcast::Layout::new(DEPTH).unwrap().start(start)
}

fn inspect(region: &Arc<Fenced>) -> Result<Inspector<Arc<Fenced>>, Error> {
    Inspector::new(Arc::clone(region))
}

#[track_caller]
fn assert_progress(region: &Arc<Fenced>, tail: u64, head: u64, fill: u64, closed: bool) {
    let before = region.contents();
    let progress = inspect(region).unwrap().progress().unwrap();
    let Progress { tail: found_tail, head: found_head, fill: found_fill, closed: found_closed, .. } =
        progress;
    assert_eq!((found_tail, found_head, found_fill, found_closed), (tail, Some(head), fill, closed));
    assert_eq!((progress.first, progress.overwritten), (None, 0));
    assert!(region.contents() == before, "it writes nothing");
    region.assert_fences();
}

#[test]
fn an_spsc_ring_at_rest_is_told_exactly() {
    for start in STARTS {
        let region = Fenced::new(slots(start).bytes());
        assert_eq!(inspect(&region).unwrap_err(), Error::NotReady, "zeroed memory");
        let (mut producer, mut consumer) = spsc::create(Arc::clone(&region), &slots(start)).unwrap();
        let at = |offset: u64| start.wrapping_add(offset);
        assert_progress(&region, start, start, 0, false);
        producer.push_slice(&[1, 2, 3]).unwrap();
        assert_progress(&region, at(3), start, 3, false);
        producer.push_slice(&[4; 5]).unwrap();
        assert_progress(&region, at(8), start, 8, false);
        // Twice round, so that positions wrap.
        for _ in 0..24 {
            consumer.try_pop().unwrap();
            consumer.drain(usize::MAX).for_each(drop);
            let _ = consumer.try_pop();
            producer.push_slice(&[5; 3]).unwrap();
        }
        assert_progress(&region, at(8 + 72), at(8 + 69), 3, false);
        producer.close();
        assert_progress(&region, at(80), at(77), 3, true);
    }
}

#[test]
fn a_byte_ring_at_rest_is_told_exactly() {
    for start in STARTS {
        let start = start & !7;
        let region = Fenced::new(row(start).bytes());
        let (mut producer, mut consumer) = bytes::create(Arc::clone(&region), &row(start)).unwrap();
        // Where the frame of a message at a position ends.
        let behind = |position: u64, len: usize| {
            let to_end = RING_BYTES as u64 - position % RING_BYTES as u64;
            let frame = 8 + len.next_multiple_of(8) as u64;
            position.wrapping_add(if frame > to_end { to_end + frame } else { frame })
        };
        let mut message = [0; 56];
        let mut head = start;
        assert_progress(&region, head, head, 0, false);
        for round in 0..50 {
            let mut tail = head;
            for len in [1 + round * 7 % 28, 3, 1 + round * 5 % 28] {
                producer.try_push(&vec![2; len]).unwrap();
                tail = behind(tail, len);
                assert_progress(&region, tail, head, tail.wrapping_sub(head), false);
            }
            for _ in 0..3 {
                consumer.try_pop(&mut message).unwrap();
            }
            assert!(consumer.try_pop(&mut message).is_err());
            head = tail;
            assert_progress(&region, head, head, 0, false);
        }
        producer.close();
        assert_progress(&region, head, head, 0, true);
    }
}

#[test]
fn an_mpmc_ring_at_rest_is_told_exactly() {
    for start in STARTS {
        let region = Fenced::new(places(start).bytes());
        let (mut producer, mut consumer) = mpmc::create(Arc::clone(&region), &places(start)).unwrap();
        let at = |offset: u64| start.wrapping_add(offset);
        assert_progress(&region, start, start, 0, false);
        for pushed in 1..=DEPTH {
            producer.try_push(pushed).unwrap();
            assert_progress(&region, at(pushed), start, pushed, false);
        }
        for popped in 1..=40 {
            consumer.try_pop().unwrap();
            assert_progress(&region, at(popped + 7), at(popped), 7, false);
            producer.try_push(popped).unwrap();
            assert_progress(&region, at(popped + 8), at(popped), 8, false);
        }
        // Given up: gone by for both.
        consumer.try_pop().unwrap();
        drop(producer.try_reserve().unwrap());
        consumer.drain(usize::MAX).for_each(drop);
        assert_progress(&region, at(49), at(49), 0, false);
        producer.try_push(1).unwrap();
        producer.close();
        assert_progress(&region, at(50), at(49), 1, true);
        consumer.try_pop().unwrap();
        consumer.try_pop().unwrap_err();
        assert_progress(&region, at(50), at(50), 0, true);
    }
}

/// A message that was put back is counted, wherever head and hints are.
#[test]
fn hints_that_are_behind_do_not_matter() {
    for start in STARTS {
        let region = Fenced::new(places(start).bytes());
        let (mut producer, mut consumer) = mpmc::create(Arc::clone(&region), &places(start)).unwrap();
        for value in 0..1000 {
            producer.try_push(value).unwrap();
            consumer.try_pop().unwrap();
        }
        producer.try_push(7).unwrap();
        drop(consumer.try_peek().unwrap());
        let at = |offset: u64| start.wrapping_add(offset);
        for back in 0..1000 {
            region.write(256, at(1000 - back));
            region.write(384, at(1000 - back));
            assert_progress(&region, at(1001), at(1000), 1, false);
        }
    }
}

#[test]
fn a_broadcast_ring_at_rest_is_told_exactly() {
    for start in STARTS {
        let region = Fenced::new(seen_by_all(start).bytes());
        let (mut producer, _) = broadcast::create(Arc::clone(&region), &seen_by_all(start)).unwrap();
        let assert = |pushed: u64, closed| {
            let progress = inspect(&region).unwrap().progress().unwrap();
            assert_eq!((progress.tail, progress.head), (start.wrapping_add(pushed), None));
            assert_eq!((progress.first, progress.fill), (Some(start), pushed.min(DEPTH)));
            assert_eq!((progress.overwritten, progress.closed), (pushed.saturating_sub(DEPTH), closed));
        };
        assert(0, false);
        for pushed in 1..=40 {
            producer.push(&pushed);
            assert(pushed, false);
        }
        producer.close();
        assert(40, true);
    }
}

/// Makes a ring of each kind, with some messages in it.
fn rings() -> [(Kind, Arc<Fenced>); 4] {
    let kinds = [Kind::Spsc, Kind::Bytes, Kind::Mpmc, Kind::Broadcast];
    kinds.map(|kind| {
        let bytes = match kind {
            Kind::Spsc => slots(0).bytes(),
            Kind::Bytes => row(0).bytes(),
            Kind::Mpmc => places(0).bytes(),
            Kind::Broadcast => seen_by_all(0).bytes(),
            _ => unreachable!(),
        };
        let region = Fenced::new(bytes);
        match kind {
            Kind::Spsc => {
                let (mut producer, mut consumer) = spsc::create(Arc::clone(&region), &slots(0)).unwrap();
                producer.push_slice(&[1; 5]).unwrap();
                consumer.try_pop().unwrap();
            }
            Kind::Bytes => {
                let (mut producer, mut consumer) = bytes::create(Arc::clone(&region), &row(0)).unwrap();
                producer.try_push(&[1; 40]).unwrap();
                consumer.try_pop(&mut [0; 40]).unwrap();
                producer.try_push(&[1; 40]).unwrap();
                producer.try_push(&[1; 2]).unwrap();
            }
            Kind::Mpmc => {
                let (mut producer, mut consumer) = mpmc::create(Arc::clone(&region), &places(0)).unwrap();
                producer.push_slice(&[1; 5]).unwrap();
                consumer.try_pop().unwrap();
            }
            _ => {
                let (mut producer, _) = broadcast::create(Arc::clone(&region), &seen_by_all(0)).unwrap();
                producer.push_slice(&[1; 12]);
            }
        }
        (kind, region)
    })
}

#[test]
fn what_a_ring_is_is_told() {
    for (kind, region) in rings() {
        let inspector = inspect(&region).unwrap();
        assert_eq!(inspector.kind(), kind);
        let is_row = kind == Kind::Bytes;
        assert_eq!(inspector.depth(), if is_row { 128 } else { 8 });
        assert_eq!(inspector.element_bytes(), if is_row { 1 } else { 8 });
        assert_eq!(inspector.element_align(), 8);
        assert_eq!(inspector.slot_bytes(), if is_row { 8 } else { 64 });
        assert_eq!(inspector.participants(), if kind == Kind::Mpmc { 3 } else { 0 });
        let (name, roles): (_, &[Role]) = match kind {
            Kind::Spsc => ("spsc", &[Role::Producer, Role::Consumer]),
            Kind::Bytes => ("bytes", &[Role::Producer, Role::Consumer]),
            Kind::Mpmc => ("mpmc", &[Role::Participant(1), Role::Participant(2), Role::Participant(3)]),
            _ => ("broadcast", &[Role::Producer]),
        };
        assert_eq!(kind.to_string(), name);
        assert!(inspector.roles().eq(roles.iter().copied()));
        let all = [Role::Producer, Role::Consumer, Role::Participant(0), Role::Participant(1)];
        for role in all.into_iter().chain([Role::Participant(3), Role::Participant(4)]) {
            assert_eq!(inspector.owner(role).is_some(), roles.contains(&role), "{kind} {role}");
        }
    }
}

#[test]
fn owners_come_and_go() {
    let region = Fenced::new(slots(0).bytes());
    slots(0).init(&region).unwrap();
    let inspector = inspect(&region).unwrap();
    let owner = || inspector.owner(Role::Producer).unwrap();
    assert_eq!((owner().incarnation, owner().held), (0, false));
    let producer = spsc::Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    assert_eq!((owner().incarnation, owner().held), (1, true));
    drop(producer);
    assert_eq!((owner().incarnation, owner().held), (1, false));
}

#[test]
fn each_guard_has_its_error() {
    for (kind, region) in rings() {
        let shaped = |offset: usize, value: u64| {
            let right = region.read(offset);
            region.write(offset, value);
            let error = inspect(&region).unwrap_err();
            region.write(offset, right);
            inspect(&region).unwrap();
            error
        };
        assert_eq!(shaped(0, 5), Error::WrongMagic { found: 5 });
        assert_eq!(shaped(0, u64::from_le_bytes(*b"ring-old")), Error::NotReady);
        assert!(matches!(shaped(8, 9), Error::WrongVersion { found: 9, .. }));
        assert!(matches!(shaped(16, 7), Error::WrongArchitecture { found: 7, .. }));
        for found in [0, 5, u64::MAX] {
            let error = shaped(24, found);
            assert_eq!(error, Error::WrongKind { found, expected: 0 });
            assert!(
                error
                    .to_string()
                    .contains("of a kind that this program does not know, not of one that it does")
            );
        }
        assert!(matches!(shaped(32, 0), Error::WrongElementSize { found: 0, .. }));
        assert!(matches!(shaped(40, 3), Error::WrongElementAlign { found: 3, .. }));
        assert!(matches!(shaped(40, 128), Error::WrongElementAlign { found: 128, .. }));
        assert_eq!(shaped(48, 65), Error::WrongSlotSize { found: 65 });
        assert_eq!(shaped(48, 0), Error::WrongSlotSize { found: 0 });
        assert_eq!(shaped(56, 12), Error::WrongDepth { found: 12 });
        assert!(matches!(shaped(56, 1 << 20), Error::RegionTooSmall { .. }));
        match kind {
            Kind::Bytes => {
                assert!(matches!(shaped(32, 8), Error::WrongElementSize { found: 8, expected: 1 }));
                assert_eq!(shaped(56, 1 << 63), Error::TooLarge);
            }
            _ => {
                assert!(matches!(shaped(32, 12), Error::WrongElementSize { found: 12, .. }));
                assert_eq!(shaped(32, 64), Error::WrongSlotSize { found: 64 });
                assert_eq!(shaped(56, 1 << 32), Error::WrongDepth { found: 1 << 32 });
            }
        }
        if kind == Kind::Mpmc {
            assert_eq!(shaped(128, 0), Error::WrongParticipants { found: 0 });
            assert!(matches!(shaped(128, 1023), Error::RegionTooSmall { .. }));
        }
    }
    let tiny = Fenced::new(64);
    assert_eq!(inspect(&tiny).unwrap_err(), Error::RegionTooSmall { needed: 128, available: 64 });
}

#[test]
fn a_ring_that_was_made_anew_is_not_taken_for_the_old_one() {
    let region = Fenced::new(slots(0).bytes());
    slots(0).init(&region).unwrap();
    let inspector = inspect(&region).unwrap();
    slots(40).init(&region).unwrap();
    assert_eq!(inspector.progress().unwrap().tail, 40, "of the same shape");
    spsc::Layout::<u64>::new(2).unwrap().init(&region).unwrap();
    assert_eq!(inspector.progress(), Err(Error::MadeAnew));
    assert_eq!(inspect(&region).unwrap().progress().unwrap().tail, 0);
}

/// Calls everything, and returns how often it was an error.
fn look_at_all(region: &Arc<Fenced>, early: &Inspector<Arc<Fenced>>) -> usize {
    let late = inspect(region);
    let mut errors = usize::from(late.is_err());
    for inspector in late.iter().chain([early]) {
        inspector.roles().for_each(|role| assert!(inspector.owner(role).is_some()));
        errors += usize::from(inspector.progress().is_err());
    }
    region.assert_fences();
    errors
}

#[test]
fn garbage_in_any_word_is_an_error_or_a_number() {
    let values =
        [0, 1, 2, 3, 7, 8, 63, 1 << 31, 1 << 32, 1 << 62, 1 << 63, (1 << 63) | 64, u64::MAX - 1, u64::MAX];
    let mut errors = 0;
    for (_, region) in rings() {
        let early = inspect(&region).unwrap();
        for offset in (0..early.region().contents().len() * 8).step_by(8) {
            let right = region.read(offset);
            for value in
                values.into_iter().chain([right.wrapping_add(1), right.wrapping_sub(1), right ^ 1 << 40])
            {
                region.write(offset, value);
                errors += look_at_all(&region, &early);
            }
            region.write(offset, right);
        }
    }
    assert!(errors > 1000, "{errors} of some thousand are errors");
}

#[test]
fn garbage_in_all_words_is_an_error_or_a_number() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for (_, region) in rings() {
        let early = inspect(&region).unwrap();
        let right = region.contents();
        for round in 0..2000 {
            for (index, &word) in right.iter().enumerate().skip(8) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // Near the truth, so that not all is refused at the first look, and far from it.
                let wrong = if round % 2 == 0 { random } else { word.wrapping_add(random >> (random & 63)) };
                region.write(index * 8, if random & (1 << 50) == 0 { word } else { wrong });
            }
            look_at_all(&region, &early);
        }
    }
}

/// Looks while `work` goes on in another thread, until that ends.
fn beside(region: &Arc<Fenced>, most: u64, work: impl FnOnce() + Send) -> u64 {
    std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        let inspector = inspect(region).unwrap();
        let (mut looks, mut tail, mut head) = (0, 0, 0);
        while !worker.is_finished() {
            let progress = inspector.progress().unwrap();
            assert!(progress.fill <= most, "{progress:?}");
            assert!(tail <= progress.tail && head <= progress.head.unwrap_or(0), "{progress:?}");
            (tail, head) = (progress.tail, progress.head.unwrap_or(0));
            looks += 1;
        }
        worker.join().unwrap();
        looks
    })
}

#[test]
fn rings_at_work_are_seen_going_on() {
    const MESSAGES: u64 = 300_000;
    let region = Fenced::new(slots(0).bytes());
    let (mut producer, consumer) = spsc::create(Arc::clone(&region), &slots(0)).unwrap();
    let mut consumer = consumer.delivery(spsc::Delivery::AtMostOnce);
    let looks = beside(&region, DEPTH, move || {
        for value in 0..MESSAGES {
            producer.try_push(value).unwrap();
            if value % 5 == 4 {
                assert_eq!(consumer.drain(5).count(), 5);
            }
        }
    });
    assert!(looks > 0);

    let region = Fenced::new(row(0).bytes());
    let (mut producer, consumer) = bytes::create(Arc::clone(&region), &row(0)).unwrap();
    let mut consumer = consumer.delivery(bytes::Delivery::AtMostOnce);
    beside(&region, 120, move || {
        for len in (1..=40).cycle().take(300_000) {
            // Bytes that would be lengths.
            producer.try_push(&[8; 40][..len]).unwrap();
            consumer.try_pop(&mut [0; 40]).unwrap();
        }
    });

    let region = Fenced::new(places(0).bytes());
    let (mut producer, mut consumer) = mpmc::create(Arc::clone(&region), &places(0)).unwrap();
    beside(&region, DEPTH, move || {
        for value in 0..MESSAGES {
            producer.try_push(value).unwrap();
            if value % 5 == 4 {
                assert_eq!(consumer.drain(5).count(), 5);
            }
        }
    });

    let region = Fenced::new(seen_by_all(0).bytes());
    let (mut producer, _) = broadcast::create(Arc::clone(&region), &seen_by_all(0)).unwrap();
    beside(&region, DEPTH, move || (0..MESSAGES).for_each(|value| producer.push(&value)));
}
