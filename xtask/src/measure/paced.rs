//! The open loop: messages that are due at fixed times, whether or not the one before has been taken.
//!
//! The peer sends and the lead takes. The peer never sleeps: it looks at the clock until a message is due, alike in
//! every arm, so that only what the lead does differs. The time at which a message was due travels in it, and its
//! latency counts from there: a stall is charged to every message that it delays.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | `taken` in Taker::take | `taken` in Giver::wait_until_due | nothing but itself |
//! | R2 → A2 | `told` in Giver::tell | `told` in Taker::ask | what the peer used |
//! | R3 → A3 | `told` in Taker::ask | `told` in Giver::give | that it has been read |

#[cfg(test)]
mod tests;

use core::hint::{black_box, spin_loop};
use core::sync::atomic::Ordering;

use anyhow::Result;
use ring_core::Region;
use ring_tune::Clock;
use serde::{Deserialize, Serialize};

use crate::exchange::{BLOCK, check, stamps, sum};
use crate::usage::{Begun, Meter, Usage, Used};
use crate::words::{Words, word_bytes};
use crate::{Arm, Message, Receiver, Samples, Sender, Slice, Timer, stream};

/// When a message is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// So long after the one before was.
    Every {
        /// Nanoseconds.
        ns: u64,
    },
    /// Once the one before has been taken. A gap of nothing in an open loop would only tell how long the queue is.
    BackToBack,
    /// At once, as in a stream. There are no latencies.
    Flood,
}

/// Words of a link.
const WORDS: usize = 5;
/// Messages that were taken since the arm was made.
const TAKEN: usize = 0;
/// Whether the peer has told what it used of a slice, and the lead has not heard it yet.
const TOLD: usize = 1;
/// What it used.
const USED: [usize; 3] = [2, 3, 4];

/// Memory for what the two sides of an arm tell each other beside the messages.
pub const LINK_BYTES: usize = word_bytes(WORDS);

/// What both sides hold.
#[derive(Debug)]
struct Link<R> {
    words: Words<R>,
    meter: Meter<R>,
    /// Messages before this slice.
    messages: u64,
}

impl<R: Region> Link<R> {
    fn new(region: R, meter: Meter<R>) -> Result<Self> {
        Ok(Self { words: Words::new(region, WORDS)?, meter, messages: 0 })
    }

    /// The start of what is measured. A flood is not held up by a call.
    fn begin(&self, pace: Pace) -> Begun {
        if pace == Pace::Flood { self.meter.begin_calls() } else { self.meter.begin() }
    }

    fn since(&self, pace: Pace, begun: Begun) -> Usage {
        if pace == Pace::Flood { self.meter.calls_since(begun) } else { self.meter.since(begun) }
    }
}

/// The lead's side.
#[derive(Debug)]
pub struct Taker<T, R> {
    from: T,
    link: Link<R>,
}

/// The peer's side.
#[derive(Debug)]
pub struct Giver<T, R> {
    to: T,
    link: Link<R>,
    clock: Clock,
}

impl<T: Receiver, R: Region> Taker<T, R> {
    /// Nothing has been sent yet. `region` has [`LINK_BYTES`] and is the same that the other side has.
    ///
    /// # Errors
    ///
    /// When the region is too small.
    pub fn new(from: T, region: R, meter: Meter<R>) -> Result<Self> {
        Ok(Self { from, link: Link::new(region, meter)? })
    }

    /// Takes the messages of a slice.
    #[inline(never)]
    fn take(&mut self, pace: Pace, warm_up: u64, messages: u64, timer: Timer) -> Samples {
        let mut latencies = stamps(messages);
        let mut total = 0_u64;
        let mut begun = Begun::default();
        for number in 0..warm_up + messages {
            if number == warm_up {
                begun = self.link.begin(pace);
            }
            let message = loop {
                if let Some(message) = self.from.try_receive() {
                    break message;
                }
                spin_loop();
            };
            let latency = if pace == Pace::Flood { 0 } else { timer.stop().wrapping_sub(message[1]) };
            check(message[0], number);
            // ORDERING: Release (R1): as a ring returns a slot; pairs with A1 in Giver::wait_until_due.
            self.link.words.at(TAKEN).store(self.link.messages + number + 1, Ordering::Release);
            total = total.wrapping_add(sum(&message));
            if let Some(index) = number.checked_sub(warm_up) {
                latencies[usize::try_from(index).expect("below the length")] = latency;
            }
        }
        let receiver = self.link.since(pace, begun);
        black_box(total);
        self.link.messages += warm_up + messages;
        let used = Used { messages, receiver, sender: self.ask() };
        Samples { used: Some(used), ..samples(pace, &latencies, timer) }
    }

    /// What the peer used, once it has told.
    fn ask(&mut self) -> Usage {
        // ORDERING: Acquire (A2): acquires what was used; pairs with R2 in Giver::tell.
        while self.link.words.at(TOLD).load(Ordering::Acquire) == 0 {
            spin_loop();
        }
        // ORDERING: Relaxed: acquired above.
        let [cpu_ns, switches, syscalls] = USED.map(|word| self.link.words.at(word).load(Ordering::Relaxed));
        // ORDERING: Release (R3): what was told has been read; pairs with A3 in Giver::give.
        self.link.words.at(TOLD).store(0, Ordering::Release);
        Usage { cpu_ns, switches, syscalls }
    }
}

/// Of a closed loop the centre comes from blocks, since the clock steps too coarsely for one message. In an open loop
/// the times at which messages are due fall anywhere between two of its steps.
fn samples(pace: Pace, latencies: &[u64], timer: Timer) -> Samples {
    // From the last look at the clock to the stamp of the receiver there is the cost of one of each.
    let net_ns = |&ticks: &u64| (timer.clock().between_ns(0, ticks) - timer.cost_ns).max(0.0);
    let each: Vec<f64> = latencies.iter().map(net_ns).collect();
    let messages = each.len() as u64;
    match pace {
        Pace::Flood => Samples { messages, ..Samples::default() },
        Pace::Every { .. } => Samples { centre: each.clone(), tails: each, messages, used: None },
        Pace::BackToBack => {
            let block = usize::try_from(BLOCK).expect("it is small");
            let mean = |block: &[f64]| block.iter().sum::<f64>() / block.len() as f64;
            Samples { centre: each.chunks(block).map(mean).collect(), tails: each, messages, used: None }
        }
    }
}

impl<T: Sender, R: Region> Giver<T, R> {
    /// Nothing has been sent yet. `region` is the same that the other side has.
    ///
    /// # Errors
    ///
    /// When the region is too small.
    pub fn new(to: T, region: R, meter: Meter<R>) -> Result<Self> {
        Ok(Self { to, link: Link::new(region, meter)?, clock: Clock::new() })
    }

    /// Sends the messages of a slice.
    #[inline(never)]
    fn give(&mut self, pace: Pace, warm_up: u64, messages: u64) {
        // What it told of the last slice is not written over: it may be done with this one before the lead looks.
        // ORDERING: Acquire (A3): the lead has read it; pairs with R3 in Taker::ask.
        while self.link.words.at(TOLD).load(Ordering::Acquire) != 0 {
            spin_loop();
        }
        let gap_ticks = gap_ticks(pace, &self.clock);
        let mut due = self.clock.start();
        let mut begun = Begun::default();
        for number in 0..warm_up + messages {
            if number == warm_up {
                begun = self.link.begin(pace);
            }
            due = self.wait_until_due(pace, number, due + gap_ticks);
            let message: Message = [number, due, number, number, number, number, number];
            while !self.to.try_send(&message) {
                spin_loop();
            }
        }
        self.link.messages += warm_up + messages;
        self.tell(self.link.since(pace, begun));
    }

    /// Returns when the message is due, or at once where that is past.
    #[inline(always)]
    fn wait_until_due(&self, pace: Pace, number: u64, due: u64) -> u64 {
        match pace {
            Pace::Flood => 0,
            Pace::Every { .. } => {
                while self.clock.start() < due {
                    spin_loop();
                }
                due
            }
            Pace::BackToBack => {
                // ORDERING: Acquire (A1): as a ring takes a slot back; pairs with R1 in Taker::take.
                while self.link.words.at(TAKEN).load(Ordering::Acquire) < self.link.messages + number {
                    spin_loop();
                }
                self.clock.start()
            }
        }
    }

    /// Tells the lead what was used.
    fn tell(&mut self, used: Usage) {
        for (word, value) in USED.into_iter().zip([used.cpu_ns, used.switches, used.syscalls]) {
            // ORDERING: Relaxed: R2 releases it.
            self.link.words.at(word).store(value, Ordering::Relaxed);
        }
        // ORDERING: Release (R2): publishes what was used; pairs with A2 in Taker::ask.
        self.link.words.at(TOLD).store(1, Ordering::Release);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of ticks")]
fn gap_ticks(pace: Pace, clock: &Clock) -> u64 {
    match pace {
        Pace::Every { ns } => (ns as f64 * clock.hz() / 1e9) as u64,
        Pace::BackToBack | Pace::Flood => 0,
    }
}

impl<T: Receiver, R: Region> Arm for Taker<T, R> {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        match slice {
            Slice::Paced { pace, warm_up, messages } => self.take(pace, warm_up, messages, timer),
            Slice::Stream { reader, messages } => stream::read(&mut self.from, reader, messages, timer),
            Slice::RoundTrips { .. } => unreachable!("this arm has one direction"),
        }
    }

    fn follow(&mut self, _: Slice) {
        unreachable!("whoever takes leads")
    }
}

impl<T: Sender, R: Region> Arm for Giver<T, R> {
    fn lead(&mut self, _: Slice, _: Timer) -> Samples {
        unreachable!("whoever gives follows")
    }

    fn follow(&mut self, slice: Slice) {
        match slice {
            Slice::Paced { pace, warm_up, messages } => self.give(pace, warm_up, messages),
            Slice::Stream { messages, .. } => stream::write(&mut self.to, messages),
            Slice::RoundTrips { .. } => unreachable!("this arm has one direction"),
        }
    }
}
