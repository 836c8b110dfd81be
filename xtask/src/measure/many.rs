//! Several writers and several readers of one queue, as fast as they can.
//!
//! The threads of a side share its CPU, so that two sides take two CPUs, however many they are.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::{Arm, Message, Receiver, Samples, Sender, Slice, Timer};

/// Tries in vain after which a thread lets another one have the CPU.
const PATIENCE: u32 = 100;

/// The readers: they lead.
#[derive(Debug)]
pub struct Readers<R>(pub Vec<R>);

/// The writers: they follow.
#[derive(Debug)]
pub struct Writers<S>(pub Vec<S>);

/// When a reader got its first and its last message, how many, and what they add up to.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    first: Option<u64>,
    last: u64,
    messages: u64,
    sum: u64,
}

impl<R: Receiver + Send> Arm for Readers<R> {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        let Slice::Stream { messages, .. } = slice else {
            unreachable!("this arm takes part in streams only")
        };
        let popped = AtomicU64::new(0);
        let seen: Vec<Seen> = thread::scope(|scope| {
            let popped = &popped;
            let readers: Vec<_> = self
                .0
                .iter_mut()
                .map(|reader| scope.spawn(move || read(reader, popped, messages, timer)))
                .collect();
            readers.into_iter().map(|reader| reader.join().expect("a reader panicked")).collect()
        });
        black_box(seen.iter().fold(0, |sum: u64, seen| sum.wrapping_add(seen.sum)));
        let first = seen.iter().filter_map(|seen| seen.first).min().unwrap_or_default();
        let last = seen.iter().map(|seen| seen.last).max().unwrap_or_default();
        let centre = vec![timer.clock().between_ns(first, last) / messages as f64];
        Samples { centre, tails: vec![], messages, used: None }
    }

    fn follow(&mut self, _: Slice) {}
}

impl<S: Sender + Send> Arm for Writers<S> {
    fn lead(&mut self, _: Slice, _: Timer) -> Samples {
        unreachable!("the writers follow")
    }

    fn follow(&mut self, slice: Slice) {
        let Slice::Stream { messages, .. } = slice else {
            unreachable!("this arm takes part in streams only")
        };
        let each = messages / self.0.len() as u64;
        thread::scope(|scope| {
            for writer in &mut self.0 {
                scope.spawn(move || write(writer, each));
            }
        });
    }
}

/// Takes messages until all readers together have `messages`, a multiple of the number of writers.
fn read(reader: &mut impl Receiver, popped: &AtomicU64, messages: u64, timer: Timer) -> Seen {
    let mut seen = Seen::default();
    let mut unreported = 0;
    let mut failed = 0;
    loop {
        if let Some(message) = reader.try_receive() {
            if seen.first.is_none() {
                seen.first = Some(timer.start());
            }
            seen.sum = seen.sum.wrapping_add(crate::exchange::sum(&message));
            unreported += 1;
            failed = 0;
            if seen.messages + unreported < messages {
                continue;
            }
        }
        if unreported > 0 {
            seen.last = timer.stop();
            seen.messages += unreported;
            // ORDERING: Relaxed: a number; nothing is read because of it.
            popped.fetch_add(unreported, Ordering::Relaxed);
            unreported = 0;
        }
        // ORDERING: Relaxed: as above.
        if popped.load(Ordering::Relaxed) >= messages {
            return seen;
        }
        wait(&mut failed);
    }
}

fn write(writer: &mut impl Sender, messages: u64) {
    for number in 0..messages {
        let message: Message = [number; 7];
        let mut failed = 0;
        while !writer.try_send(&message) {
            wait(&mut failed);
        }
    }
}

fn wait(failed: &mut u32) {
    *failed += 1;
    if *failed >= PATIENCE {
        *failed = 0;
        thread::yield_now();
    } else {
        spin_loop();
    }
}
