//! The open pipe: the peer writes as fast as it can, the lead reads as fast as it can.

use core::hint::black_box;

use serde::{Deserialize, Serialize};

use crate::exchange::{check, stamps, sum};
use crate::{Message, Receiver, Samples, Sender, Timer};

/// Messages in a block of the tails.
pub const BLOCK: u64 = 1_000;

/// What the reader does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reader {
    /// Reads the first word only.
    Fast,
    /// Adds up all seven words.
    Equal,
    /// Adds them up and multiplies 20 times, each product the factor of the next.
    Slow,
}

/// Takes `messages` messages, a multiple of [`BLOCK`], and measures the time of all but the first tenth.
// A function of its own in every arm, or what it is inlined into decides which registers its loop gets.
#[inline(never)]
pub(crate) fn read(from: &mut impl Receiver, reader: Reader, messages: u64, timer: Timer) -> Samples {
    match reader {
        Reader::Fast => {
            let work = |total: u64, first: &u64| (*first, total.wrapping_add(*first));
            read_with(from, messages, timer, Receiver::try_receive_first, work)
        }
        Reader::Equal => {
            let work = |total: u64, message: &Message| (message[0], total.wrapping_add(sum(message)));
            read_with(from, messages, timer, Receiver::try_receive, work)
        }
        Reader::Slow => {
            let work = |product, message: &Message| (message[0], multiply(product ^ sum(message)));
            read_with(from, messages, timer, Receiver::try_receive, work)
        }
    }
}

/// 20 multiplications, each of which waits for the one before.
#[inline(always)]
fn multiply(start: u64) -> u64 {
    (0..20).fold(start | 1, |product, _| product.wrapping_mul(product))
}

/// `take` takes a message out of the ring. `work` gets what the messages before came to, and returns the number of
/// this one and what they come to with it; in one place and by value, so that it stays in a register in every arm.
#[inline(always)]
fn read_with<R: Receiver, T>(
    from: &mut R,
    messages: u64,
    timer: Timer,
    take: impl Fn(&mut R) -> Option<T>,
    work: impl Fn(u64, &T) -> (u64, u64),
) -> Samples {
    let blocks = messages / BLOCK;
    let mut stamps = stamps(blocks + 1);
    let mut result = 1;
    let mut number = 0;
    stamps[0] = timer.start();
    for stamp in &mut stamps[1..] {
        for _ in 0..BLOCK {
            let taken = loop {
                if let Some(taken) = take(from) {
                    break taken;
                }
                core::hint::spin_loop();
            };
            let found;
            (found, result) = work(result, &taken);
            check(found, number);
            number += 1;
        }
        *stamp = timer.stop();
    }
    black_box(result);

    let kept = stamps.iter().skip(usize::try_from(blocks.div_ceil(10)).unwrap_or(usize::MAX));
    let kept: Vec<u64> = kept.copied().collect();
    let per_message =
        |first: u64, last: u64, count: u64| timer.clock().between_ns(first, last) / count as f64;
    let tails: Vec<f64> = kept.windows(2).map(|pair| per_message(pair[0], pair[1], BLOCK)).collect();
    let whole = per_message(kept[0], kept[kept.len() - 1], BLOCK * tails.len() as u64);
    Samples { centre: vec![whole], tails, messages, used: None }
}

/// Passes `messages` messages on.
// As `read`.
#[inline(never)]
pub(crate) fn write(to: &mut impl Sender, messages: u64) {
    for number in 0..messages {
        while !to.try_send(&[number; 7]) {
            core::hint::spin_loop();
        }
    }
}
