//! The open pipe: the peer writes as fast as it can, the lead reads as fast as it can.

use core::hint::black_box;

use serde::{Deserialize, Serialize};

use super::arms::{Message, Receiver, Samples, Sender, Timer};
use super::exchange::{check, stamps, sum};

/// Messages in a block of the tails.
const BLOCK: u64 = 1_000;

/// What the reader does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reader {
    /// Reads the first word only.
    Fast,
    /// Adds up all seven words.
    Equal,
    /// Adds them up and multiplies 20 times, each product the factor of the next.
    Slow,
}

/// Takes `messages` messages, and measures the time of all but the first tenth.
pub(crate) fn read(from: &mut impl Receiver, reader: Reader, messages: u64, timer: Timer) -> Samples {
    match reader {
        Reader::Fast => read_with(from, messages, timer, Receiver::try_receive_first, |word| (*word, *word)),
        Reader::Equal => {
            read_with(from, messages, timer, Receiver::try_receive, |message| (message[0], sum(message)))
        }
        Reader::Slow => {
            let mut chain = 1;
            let work = |message: &Message| {
                chain = multiply(chain ^ sum(message));
                (message[0], chain)
            };
            read_with(from, messages, timer, Receiver::try_receive, work)
        }
    }
}

/// 20 multiplications, each of which waits for the one before.
#[inline(always)]
fn multiply(start: u64) -> u64 {
    (0..20).fold(start | 1, |product, _| product.wrapping_mul(product))
}

/// `take` takes a message out of the ring, `work` returns its number and what came out of it.
#[inline(always)]
fn read_with<R: Receiver, T>(
    from: &mut R,
    messages: u64,
    timer: Timer,
    take: impl Fn(&mut R) -> Option<T>,
    mut work: impl FnMut(&T) -> (u64, u64),
) -> Samples {
    let dropped = messages / 10;
    let blocks = (messages - dropped) / BLOCK;
    let mut stamps = stamps(blocks + 1);
    let mut total = 0_u64;
    let mut receive = |number| {
        let taken = loop {
            if let Some(taken) = take(from) {
                break taken;
            }
            core::hint::spin_loop();
        };
        let (found, result) = work(&taken);
        total = total.wrapping_add(result);
        check(found, number);
    };

    let mut number = 0;
    while number < messages - blocks * BLOCK {
        receive(number);
        number += 1;
    }
    stamps[0] = timer.start();
    for stamp in &mut stamps[1..] {
        for _ in 0..BLOCK {
            receive(number);
            number += 1;
        }
        *stamp = timer.stop();
    }
    black_box(total);

    let per_message =
        |first: u64, last: u64, count: u64| timer.clock().between_ns(first, last) / count as f64;
    Samples {
        centre: vec![per_message(stamps[0], stamps[stamps.len() - 1], blocks * BLOCK)],
        tails: stamps.windows(2).map(|pair| per_message(pair[0], pair[1], BLOCK)).collect(),
        messages,
    }
}

/// Passes `messages` messages on.
pub(crate) fn write(to: &mut impl Sender, messages: u64) {
    for number in 0..messages {
        while !to.try_send(&[number; 7]) {
            core::hint::spin_loop();
        }
    }
}
