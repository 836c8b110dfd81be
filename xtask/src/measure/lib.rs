//! What measures, and what is measured alike wherever it runs: in the two processes of `cargo xtask bench`, and in the
//! two threads of the comparison with other crates.

mod duplex;
pub mod exchange;
mod lines;
mod many;
pub mod paced;
mod ring;
mod stream;
pub mod threads;
pub mod usage;
pub mod words;

use anyhow::Result;
use ring_tune::Clock;
use serde::{Deserialize, Serialize};

pub use duplex::Duplex;
pub use lines::{floor, line_bytes, same_line};
pub use many::{Readers, Writers};
pub use paced::Pace;
pub use ring::corrupted;
pub use stream::{BLOCK as STREAM_BLOCK, Reader};

use usage::Used;

/// The message: 56 bytes, all seven words written, the first one its number.
pub type Message = [u64; 7];

/// Which of the two processes holds an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Makes what is shared, and measures.
    Lead,
    /// Attaches, and answers.
    Peer,
}

/// One way to pass messages, as one of the processes holds it.
pub trait Arm {
    /// Runs a slice and measures it, while the peer follows.
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples;

    /// Runs the other side of the same slice.
    fn follow(&mut self, slice: Slice);
}

/// What both processes do in a row, without a word in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slice {
    /// A closed loop: message, answer, message, answer.
    RoundTrips {
        /// Not measured.
        warm_up: u64,
        /// Measured in blocks.
        blocks: u64,
        /// Measured one by one.
        singles: u64,
    },
    /// The peer writes, the lead reads, both as fast as they can.
    Stream {
        /// What the lead does with a message.
        reader: Reader,
        /// How many.
        messages: u64,
    },
    /// The peer sends when a message is due, the lead takes it.
    Paced {
        /// When that is.
        pace: Pace,
        /// Messages that are not measured.
        warm_up: u64,
        /// Messages that are.
        messages: u64,
    },
}

impl Slice {
    /// Whether the peer only writes.
    pub fn is_stream(&self) -> bool {
        matches!(self, Self::Stream { .. })
    }
}

/// What a slice has shown, in nanoseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Samples {
    /// For median and mean: each a mean of many messages.
    pub centre: Vec<f64>,
    /// For the tails.
    pub tails: Vec<f64>,
    /// Messages that the tails stand on.
    pub messages: u64,
    /// What both processes used, where an arm tells.
    pub used: Option<Used>,
}

impl Samples {
    /// Takes the samples of another slice in.
    pub fn append(&mut self, mut other: Self) {
        self.centre.append(&mut other.centre);
        self.tails.append(&mut other.tails);
        self.messages += other.messages;
        self.used = self.used.into_iter().chain(other.used).reduce(Used::and);
    }
}

/// The clock, and what a start and a stop cost.
#[derive(Debug, Clone, Copy)]
pub struct Timer {
    clock: Clock,
    /// What an empty interval shows.
    pub cost_ns: f64,
}

impl Timer {
    /// Measures what the clock costs.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, cost_ns: clock.measure_cost_ns() }
    }

    /// The start of an interval.
    #[inline(always)]
    #[must_use]
    pub fn start(&self) -> u64 {
        self.clock.start()
    }

    /// Its end.
    #[inline(always)]
    #[must_use]
    pub fn stop(&self) -> u64 {
        self.clock.stop()
    }

    /// The length of an interval in nanoseconds, without the clock's own part.
    pub fn net_ns(&self, ticks: u64) -> f64 {
        (self.clock.ticks_to_ns(ticks) - self.cost_ns).max(0.0)
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// One direction of an arm, to write to.
pub trait Sender {
    /// Passes a message on, or returns false where there is no room.
    fn try_send(&mut self, message: &Message) -> bool;
}

/// One direction of an arm, to read from.
pub trait Receiver {
    /// Takes the next message, if there is one.
    fn try_receive(&mut self) -> Option<Message>;

    /// As `try_receive`, but reads the first word only.
    fn try_receive_first(&mut self) -> Option<u64> {
        self.try_receive().map(|message| message[0])
    }
}

/// The two parts of an arm with one direction each: what this side writes to, and what it reads from.
///
/// # Errors
///
/// When there are more or fewer than two.
pub fn directions<P>(side: Side, parts: Vec<P>) -> Result<(P, P)> {
    let [to_peer, to_lead] =
        <[P; 2]>::try_from(parts).map_err(|_| anyhow::anyhow!("an arm of two directions has two parts"))?;
    Ok(match side {
        Side::Lead => (to_peer, to_lead),
        Side::Peer => (to_lead, to_peer),
    })
}
