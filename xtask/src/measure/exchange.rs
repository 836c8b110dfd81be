//! The closed loop: message, answer, message, answer.
//!
//! The clock steps too coarsely for one exchange, so median and mean come from blocks of 64; what tails look
//! like only single exchanges can tell. Both are halved to one way.

#[cfg(test)]
mod tests;

use core::hint::black_box;

use crate::{Message, Samples, Slice, Timer};

/// Round trips in a block.
pub const BLOCK: u64 = 64;

/// One exchange of numbered messages.
pub trait Exchange {
    /// Sends message `number` and returns when its answer is here.
    fn ping(&mut self, number: u64);

    /// Waits for message `number`, then answers it.
    fn pong(&mut self, number: u64);
}

/// Runs a slice of round trips, and measures.
// A function of its own in every arm, or what it is inlined into decides which registers its loop gets.
#[inline(never)]
pub fn lead(exchange: &mut impl Exchange, next: &mut u64, slice: Slice, timer: Timer) -> Samples {
    let Slice::RoundTrips { warm_up, blocks, singles } = slice else { no_stream() };
    let mut number = *next;
    let mut block_ticks = stamps(blocks);
    let mut single_ticks = stamps(singles);

    for _ in 0..warm_up {
        exchange.ping(number);
        number += 1;
    }
    for ticks in &mut block_ticks {
        let start = timer.start();
        for _ in 0..BLOCK {
            exchange.ping(number);
            number += 1;
        }
        *ticks = timer.stop() - start;
    }
    for ticks in &mut single_ticks {
        let start = timer.start();
        exchange.ping(number);
        number += 1;
        *ticks = timer.stop() - start;
    }
    *next = number;

    Samples {
        centre: block_ticks.iter().map(|&ticks| one_way_ns(timer.net_ns(ticks), BLOCK)).collect(),
        tails: single_ticks.iter().map(|&ticks| one_way_ns(timer.net_ns(ticks), 1)).collect(),
        messages: singles,
        used: None,
    }
}

/// Runs the other side of a slice.
// As `lead`.
#[inline(never)]
pub fn follow(exchange: &mut impl Exchange, next: &mut u64, slice: Slice) {
    let Slice::RoundTrips { warm_up, blocks, singles } = slice else { no_stream() };
    let end = *next + warm_up + blocks * BLOCK + singles;
    for number in *next..end {
        exchange.pong(number);
    }
    *next = end;
}

/// One way of so many round trips.
fn one_way_ns(ns: f64, round_trips: u64) -> f64 {
    ns / round_trips as f64 / 2.0
}

/// Room for stamps that is in the cache already.
pub fn stamps(count: u64) -> Vec<u64> {
    let mut stamps: Vec<u64> = (0..count).collect();
    black_box(&mut stamps);
    stamps
}

fn no_stream() -> ! {
    unreachable!("this arm takes part in round trips only")
}

/// All seven words of a message.
#[inline(always)]
pub fn sum(message: &Message) -> u64 {
    message.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Each message comes once and in order.
#[inline(always)]
pub fn check(found: u64, expected: u64) {
    if found != expected {
        out_of_order(found, expected);
    }
}

#[cold]
#[inline(never)]
fn out_of_order(found: u64, expected: u64) -> ! {
    panic!("message {found} arrived where {expected} was due")
}
