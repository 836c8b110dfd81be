//! Models of one who posts and one who polls. The same bodies run under loom and natively.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{Entry, Flight, Poster};
use crate::sync::{AtomicU64, Ordering};
use crate::testing::{model, scaled, thread, wide_model};

/// On the heap, so that what is dropped twice is found by those who watch it.
type Buffer = Box<u64>;

const KEY: u32 = 0x0003_0007;

const DEPTHS: &[u32] = if cfg!(loom) { &[1, 2] } else { &[1, 2, 3, 64] };

/// A ring whose first post has this position.
fn ring_from(start: u64, depth: u32) -> (Arc<Flight<Buffer, u64>>, Poster<Buffer, u64>) {
    let flight = Arc::new(Flight::new(KEY, 17, depth));
    // SAFETY: it is the only one.
    let mut poster = unsafe { Poster::new(Arc::clone(&flight), depth) };
    poster.limit = start.wrapping_add(depth.into());
    poster.go_alone();
    // ORDERING: Relaxed: the thread that polls begins later.
    flight.head.0.store(start, Ordering::Relaxed);
    // ORDERING: Relaxed: as above.
    flight.tail.0.store(start, Ordering::Relaxed);
    (flight, poster)
}

fn ring(depth: u32) -> (Arc<Flight<Buffer, u64>>, Poster<Buffer, u64>) {
    ring_from(0, depth)
}

/// Writes an entry as soon as there is room.
fn write(poster: &mut Poster<Buffer, u64>, value: u64) -> u64 {
    while !poster.has_room() {
        thread::yield_now();
    }
    let position = poster.position();
    // SAFETY: there is room.
    unsafe { poster.write(Entry { buffer: Some(Box::new(value)), operation: value }) };
    position
}

fn post(poster: &mut Poster<Buffer, u64>, value: u64) -> u64 {
    let position = loop {
        match poster.next_alone() {
            (position, true) => break position,
            _ if poster.has_room() => poster.go_alone(),
            _ => thread::yield_now(),
        }
    };
    // SAFETY: there is room, and all that was written is published.
    unsafe { poster.put(position, Entry { buffer: Some(Box::new(value)), operation: value }) };
    position
}

fn value_of(entry: Entry<Buffer, u64>) -> u64 {
    assert_eq!(entry.buffer.as_deref(), Some(&entry.operation));
    entry.operation
}

/// Takes the oldest entry, after it was seen to be in flight.
fn take(flight: &Flight<Buffer, u64>) -> u64 {
    // SAFETY: each test has one thread that polls.
    value_of(unsafe { flight.take(flight.head()) })
}

/// As the completion queue does for a completion at this position: everything up to it.
fn complete(flight: &Flight<Buffer, u64>, position: u64) -> Option<Vec<u64>> {
    #[allow(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    let (head, found) = flight.find(position as u32)?;
    assert_eq!(found, position);
    let count = position.wrapping_sub(head) + 1;
    Some((0..count).map(|_| take(flight)).collect())
}

/// Posts the numbers from 0 up, in batches of each size that the ring holds, of which the last entry has a
/// completion, and takes all of them out.
fn transfers(start: u64) {
    for &depth in DEPTHS {
        for batch in [1, 2].into_iter().filter(|batch| *batch <= u64::from(depth)) {
            wide_model(move || {
                let batches = scaled(u64::from(depth) / batch + 1, 300);
                let (flight, mut poster) = ring_from(start, depth);
                let sender = thread::spawn(move || {
                    for first in (0..batches).map(|number| number * batch) {
                        for value in first..first + batch {
                            let position = write(&mut poster, value);
                            assert_eq!(position, start.wrapping_add(value));
                        }
                        poster.publish();
                    }
                    poster
                });
                for first in (0..batches).map(|number| number * batch) {
                    let last = start.wrapping_add(first + batch - 1);
                    let values = loop {
                        match complete(&flight, last) {
                            Some(values) => break values,
                            None => thread::yield_now(),
                        }
                    };
                    assert!(values.into_iter().eq(first..first + batch));
                }
                let mut poster = sender.join().unwrap();
                assert_eq!(poster.in_flight(), 0);
                assert!(poster.has_room());
                assert_eq!(flight.oldest(), None);
            });
        }
    }
}

#[test]
fn what_is_posted_comes_out_once_and_in_order() {
    transfers(0);
}

#[test]
fn the_half_of_a_position_that_a_wr_id_carries_wraps() {
    transfers((1 << 32) - 2);
}

#[test]
fn positions_wrap_at_2_to_the_64() {
    transfers(u64::MAX - 1);
}

/// The device is an edge from a post that it takes to its completion; what it refuses it never completes.
#[test]
fn what_is_taken_back_is_posted_anew() {
    for &depth in DEPTHS {
        model(move || {
            let posts = scaled(2, 300);
            let (flight, mut poster) = ring(depth);
            let completed = Arc::new(AtomicU64::new(0));
            let device = Arc::clone(&completed);
            let sender = thread::spawn(move || {
                for value in 0..posts {
                    let position = post(&mut poster, 1_000 + value);
                    // SAFETY: the device does not get it.
                    assert_eq!(value_of(unsafe { poster.take_back() }), 1_000 + value);
                    assert_eq!(write(&mut poster, 2_000 + value), position);
                    // SAFETY: the device does not get it.
                    assert_eq!(value_of(unsafe { poster.take_back() }), 2_000 + value);
                    assert_eq!(post(&mut poster, value), position);
                    device.store(value + 1, Ordering::Release);
                }
            });
            let mut taken = 0;
            while taken < posts {
                if completed.load(Ordering::Acquire) == taken {
                    thread::yield_now();
                    continue;
                }
                assert_eq!(flight.oldest(), Some(taken));
                assert_eq!(complete(&flight, taken), Some(vec![taken]));
                taken += 1;
            }
            sender.join().unwrap();
            assert_eq!(flight.oldest(), None);
        });
    }
}

/// The tail that is taken back shows what lies below it, to who has not seen it before.
#[test]
fn what_was_posted_before_something_taken_back_is_seen() {
    model(|| {
        let (flight, mut poster) = ring(2);
        let sender = thread::spawn(move || {
            post(&mut poster, 7);
            post(&mut poster, 8);
            // SAFETY: the device does not get it.
            assert_eq!(value_of(unsafe { poster.take_back() }), 8);
        });
        while flight.oldest().is_none() {
            thread::yield_now();
        }
        assert_eq!(take(&flight), 7);
        sender.join().unwrap();
    });
}

#[test]
fn what_is_left_is_reaped_to_the_last() {
    for &depth in DEPTHS {
        model(move || {
            let (flight, mut poster) = ring(depth);
            let sender = thread::spawn(move || {
                for value in 0..u64::from(depth) {
                    post(&mut poster, value);
                }
                poster.leave();
            });
            // One may have a completion before the queue is destroyed.
            let mut taken = u64::from(complete(&flight, 0).is_some());
            while !flight.is_left() {
                thread::yield_now();
            }
            while flight.oldest() == Some(taken) {
                assert_eq!(take(&flight), taken);
                taken += 1;
            }
            assert_eq!(taken, depth.into());
            sender.join().unwrap();
        });
    }
}

/// In a single thread, where every answer is known.
#[test]
fn a_position_is_found_while_it_is_in_flight() {
    model(|| {
        let (flight, mut poster) = ring_from(u64::from(u32::MAX), 3);
        assert_eq!(flight.find(u32::MAX), None);
        let positions = [0, 1, 2].map(|value| post(&mut poster, value));
        assert!(!poster.has_room(), "four places, of which three were asked for");
        assert_eq!(poster.in_flight(), 3);
        assert_eq!(poster.wr_id(positions[1]), u64::from(KEY) << 32);
        assert_eq!(flight.find(u32::MAX), Some((positions[0], positions[0])));
        assert_eq!(flight.find(1), Some((positions[0], positions[2])));
        assert_eq!(flight.find(2), None);
        assert_eq!(complete(&flight, positions[1]), Some(vec![0, 1]));
        assert_eq!(flight.find(u32::MAX), None, "it has ended");
        assert_eq!(flight.find(0), None);
        assert_eq!((poster.in_flight(), poster.has_room()), (1, true));
        assert_eq!((flight.key(), flight.queue_pair()), (KEY, 17));
    });
}
