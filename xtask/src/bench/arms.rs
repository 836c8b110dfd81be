//! The arms: each is one way to pass messages between the two processes.
//!
//! Both processes make the same arms in the same order. The *lead* makes what is shared, measures, and is the
//! process that the user started; its *peer* answers.

mod alone;
mod duplex;
mod floor;
mod index;
mod kernel;
mod spsc;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;

use anyhow::Result;
use ring_tune::Clock;
use serde::{Deserialize, Serialize};

pub(crate) use kernel::Channel;
pub(crate) use spsc::Change;

use super::memory::{Kind, Memory};
use super::stream::Reader;

/// The message: 56 bytes, all seven words written, the first one its number.
pub(crate) type Message = [u64; 7];

/// Which of the two processes holds an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Makes what is shared, and measures.
    Lead,
    /// Attaches, and answers.
    Peer,
}

/// An arm in words, for both processes to make it from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Spec {
    /// A bare word each way, over one line.
    SameLine {
        /// Where the line lies.
        kind: Kind,
    },
    /// A bare word each way, over so many lines in turn.
    Rotating {
        /// Where the lines lie.
        kind: Kind,
        /// Lines each way, a power of two.
        lines: usize,
    },
    /// Two of our rings, one each way.
    Spsc {
        /// Where the rings lie.
        kind: Kind,
        /// Slots of each.
        depth: u64,
        /// In what it differs from what users get by default.
        change: Change,
    },
    /// Two rings of the classic design, one each way.
    Index {
        /// Slots of each.
        depth: u64,
    },
    /// What the kernel offers.
    Kernel(Channel),
    /// Pushes into a ring whose lines no other core wants.
    PushAlone {
        /// Slots.
        depth: u64,
    },
    /// One system call.
    Syscall,
}

/// One way to pass messages, as one of the processes holds it.
pub(crate) trait Arm {
    /// Runs a slice and measures it, while the peer follows.
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples;

    /// Runs the other side of the same slice.
    fn follow(&mut self, slice: Slice);
}

/// What both processes do in a row, without a word in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Slice {
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
}

impl Slice {
    /// Whether the peer only writes.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream { .. })
    }
}

/// What a slice has shown, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    /// For median and mean: each a mean of many messages.
    pub(crate) centre: Vec<f64>,
    /// For the tails.
    pub(crate) tails: Vec<f64>,
    /// Messages that the tails stand on.
    pub(crate) messages: u64,
}

/// The clock, and what a start and a stop cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer {
    clock: Clock,
    /// What an empty interval shows.
    pub(crate) cost_ns: f64,
}

impl Timer {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, cost_ns: clock.measure_cost_ns() }
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> u64 {
        self.clock.start()
    }

    #[inline(always)]
    pub(crate) fn stop(&self) -> u64 {
        self.clock.stop()
    }

    /// The length of an interval in nanoseconds, without the clock's own part.
    pub(crate) fn net_ns(&self, ticks: u64) -> f64 {
        (self.clock.ticks_to_ns(ticks) - self.cost_ns).max(0.0)
    }

    /// The clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// One direction of an arm, to write to.
pub(crate) trait Sender {
    /// Passes a message on, or returns false where there is no room.
    fn try_send(&mut self, message: &Message) -> bool;
}

/// One direction of an arm, to read from.
pub(crate) trait Receiver {
    /// Takes the next message, if there is one.
    fn try_receive(&mut self) -> Option<Message>;

    /// As `try_receive`, but reads the first word only.
    fn try_receive_first(&mut self) -> Option<u64> {
        self.try_receive().map(|message| message[0])
    }
}

impl Spec {
    /// Where the arm lies and how long its parts are, in the order of cutting.
    pub(crate) fn parts(&self) -> Vec<(Kind, usize)> {
        match *self {
            Self::SameLine { kind } => vec![(kind, floor::bytes(1))],
            Self::Rotating { kind, lines } => vec![(kind, floor::bytes(lines)); 2],
            Self::Spsc { kind, depth, change } => vec![(kind, spsc::bytes(depth, change)); 2],
            Self::Index { depth } => vec![(Kind::Usual, index::bytes(depth)); 2],
            Self::Kernel(Channel::Eventfd) => {
                vec![(Kind::Usual, spsc::bytes(kernel::DEPTH, Change::None)); 2]
            }
            Self::Kernel(_) | Self::Syscall => vec![],
            Self::PushAlone { depth } => vec![(Kind::Usual, spsc::bytes(depth, Change::None))],
        }
    }

    /// Where it lies.
    pub(crate) fn kind(&self) -> Kind {
        match *self {
            Self::SameLine { kind } | Self::Rotating { kind, .. } | Self::Spsc { kind, .. } => kind,
            _ => Kind::Usual,
        }
    }

    /// What the kernel has to open for it.
    pub(crate) fn channel(&self) -> Option<Channel> {
        match *self {
            Self::Kernel(channel) => Some(channel),
            Self::Spsc { change: Change::Eventfd, .. } => Some(Channel::Eventfd),
            _ => None,
        }
    }

    /// Whether it can do without a second core: nobody spins.
    pub(crate) fn needs_one_cpu(&self) -> bool {
        matches!(self, Self::Kernel(_) | Self::Syscall | Self::PushAlone { .. })
    }

    /// Makes one side of the arm.
    pub(crate) fn make(
        &self,
        side: Side,
        memory: &mut Memory,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Box<dyn Arm>> {
        let parts = self
            .parts()
            .into_iter()
            .map(|(kind, bytes)| memory.cut(kind, bytes))
            .collect::<Result<Vec<_>>>()?;
        Ok(match *self {
            Self::SameLine { .. } => Box::new(floor::same_line(side, parts)?),
            Self::Rotating { lines, .. } => Box::new(floor::rotating(side, parts, lines)?),
            Self::Spsc { depth, change, .. } => spsc::make(side, parts, depth, change, descriptors)?,
            Self::Index { depth } => Box::new(index::make(side, parts, depth)?),
            Self::Kernel(channel) => kernel::make(side, channel, parts, descriptors)?,
            Self::PushAlone { depth } => alone::push_alone(side, parts, depth)?,
            Self::Syscall => Box::new(alone::Syscall),
        })
    }
}

/// The two parts of an arm with one direction each: what this side writes to, and what it reads from.
fn directions<P>(side: Side, parts: Vec<P>) -> Result<(P, P)> {
    let [to_peer, to_lead] =
        <[P; 2]>::try_from(parts).map_err(|_| anyhow::anyhow!("an arm of two directions has two parts"))?;
    Ok(match side {
        Side::Lead => (to_peer, to_lead),
        Side::Peer => (to_lead, to_peer),
    })
}
