//! Models of one who posts and several who poll. The same bodies run under loom and natively.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::SharedFlight;
use crate::completion::Ticket;
use crate::testing::{model, scaled, thread, wide_model};

type Flight = SharedFlight<Box<u64>>;

/// What the lower half of the `wr_id` is that a place has for the so-manieth time, counted from 1.
fn low(place: u32, turn: u32) -> u32 {
    (turn & 0xffff) << 16 | place
}

/// Puts a value as soon as there is a place, and says what the request has for its lower half.
fn put(flight: &Flight, value: u64) -> u32 {
    let mut buffer = Box::new(value);
    loop {
        match flight.put(buffer, Ticket(value)) {
            Ok(place) => return place.low(),
            Err(back) => buffer = back,
        }
        thread::yield_now();
    }
}

fn take(flight: &Flight, low: u32) -> Option<u64> {
    let (entry, ticket) = flight.take(low)?;
    assert_eq!(entry.buffer.as_deref(), Some(&ticket.0));
    Some(ticket.0)
}

fn take_soon(flight: &Flight, low: u32) -> u64 {
    loop {
        match take(flight, low) {
            Some(value) => return value,
            None => thread::yield_now(),
        }
    }
}

#[test]
fn a_place_that_is_taken_is_used_again() {
    model(|| {
        let turns = scaled(2, 2_000);
        let flight = Arc::new(Flight::new(1));
        let posted = Arc::clone(&flight);
        let poster = thread::spawn(move || {
            (0..turns).for_each(|value| {
                put(&posted, value);
            });
        });
        for (value, turn) in (0..turns).zip(1..) {
            assert_eq!(take_soon(&flight, low(0, turn)), value);
            assert_eq!(take(&flight, low(0, turn)), None, "it came out once");
        }
        poster.join().unwrap();
        assert_eq!(flight.in_flight(), 0);
    });
}

#[test]
fn two_poll_while_one_posts() {
    wide_model(|| {
        let flight = Arc::new(Flight::new(2));
        let lows = [0, 1].map(|value| put(&flight, value));
        let [posted, others] = [(); 2].map(|()| Arc::clone(&flight));
        let poster = thread::spawn(move || put(&posted, 2));
        let other = thread::spawn(move || take(&others, lows[1]));
        assert_eq!(take(&flight, lows[0]), Some(0));
        // The third has the place of whichever was taken first.
        let third = loop {
            match [low(0, 2), low(1, 2)].into_iter().find_map(|low| take(&flight, low)) {
                Some(value) => break value,
                None => thread::yield_now(),
            }
        };
        assert_eq!((third, other.join().unwrap()), (2, Some(1)));
        poster.join().unwrap();
        assert_eq!(flight.in_flight(), 0);
    });
}

#[test]
fn a_late_completion_takes_nothing() {
    model(|| {
        let flight = Flight::new(2);
        assert_eq!(take(&flight, low(0, 0)), None, "nothing was posted");
        let first = put(&flight, 7);
        assert_eq!(first, low(0, 1));
        assert_eq!(take(&flight, low(0, 2)), None);
        assert_eq!(take(&flight, low(1, 1)), None);
        assert_eq!(take(&flight, low(2, 1)), None, "there is no such place");
        assert_eq!(take(&flight, first), Some(7));
        assert_eq!(put(&flight, 8), low(0, 2));
        assert_eq!(take(&flight, first), None, "of the former entry");
        assert_eq!(flight.in_flight(), 1);
    });
}

#[test]
fn all_that_is_left_comes_out() {
    model(|| {
        let flight = Flight::new(3);
        let lows: Vec<u32> = (0..3).map(|value| put(&flight, value)).collect();
        let back = flight.put(Box::new(9), Ticket(9)).map(|_| ());
        assert_eq!(back, Err(Box::new(9)), "there is no place");
        assert_eq!(take(&flight, lows[1]), Some(1));
        let left: Vec<u64> = flight.take_all().map(|buffer| *buffer).collect();
        assert_eq!(left, [0, 2]);
        assert_eq!((flight.in_flight(), flight.take_all().count()), (0, 0));
    });
}
