//! The arms: each is one way to pass messages between the two processes.
//!
//! Both processes make the same arms in the same order. The *lead* makes what is shared, measures, and is the
//! process that the user started; its *peer* answers.

mod alone;
mod copies;
mod index;
mod kernel;
mod notify;
mod rings;
mod shm;
mod spsc;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use measure::threads::Threads;
use measure::{Arm, Side, line_bytes};
use ring_shm::Pages;
use serde::{Deserialize, Serialize};

pub(crate) use kernel::Channel;
pub(crate) use notify::Way;
pub(crate) use spsc::Change;

use super::memory::{Kind, Memory};
use kernel::Ends;

/// Our rings beside spsc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ring {
    /// Messages of any length.
    Bytes,
    /// Many producers and consumers.
    Mpmc,
    /// A producer that never waits.
    Broadcast,
}

/// One side of an arm, and what the other side needs.
pub(crate) struct LeadSide {
    /// The lead's.
    pub(crate) arm: Box<dyn Arm>,
    /// What the peer makes its own of.
    pub(crate) for_peer: Vec<OwnedFd>,
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
    /// Two of our rings, one each way, each in a segment of its own, with claimed roles.
    Shm {
        /// Slots of each.
        depth: u64,
    },
    /// Two rings of our own of another kind, one each way.
    Other {
        /// Which kind.
        ring: Ring,
        /// Messages of 56 bytes that each holds, about.
        depth: u64,
    },
    /// A byte ring with messages of 1 KiB, one way.
    LongBytes,
    /// Copies of 1 KiB with no ring around them, one way.
    Copies,
    /// An mpmc ring with as many producers as consumers, one way.
    Many {
        /// Slots.
        depth: u64,
        /// Producers; consumers.
        threads: usize,
    },
    /// Two rings of the classic design, one each way.
    Index {
        /// Slots of each.
        depth: u64,
    },
    /// What the kernel offers.
    Kernel(Channel),
    /// Messages one way, to a receiver that waits.
    Notify(Way),
    /// Pushes into a ring whose lines no other core wants.
    PushAlone {
        /// Slots.
        depth: u64,
    },
    /// One system call.
    Syscall,
    /// Two threads of another program, beside the arms of other crates.
    Threads(Threads),
}

impl Spec {
    /// Where the arm lies and how long its parts are, in the order of cutting.
    pub(crate) fn parts(&self) -> Vec<(Kind, usize)> {
        match *self {
            Self::SameLine { kind } => vec![(kind, line_bytes(1))],
            Self::Rotating { kind, lines } => vec![(kind, line_bytes(lines)); 2],
            Self::Spsc { kind, depth, change } => vec![(kind, spsc::bytes(depth, change)); 2],
            Self::Index { depth } => vec![(Kind::Usual, index::bytes(depth)); 2],
            Self::Kernel(Channel::Eventfd) => {
                vec![(Kind::Usual, spsc::bytes(kernel::DEPTH, Change::None)); 2]
            }
            Self::Notify(way) => way.parts().into_iter().map(|bytes| (Kind::Usual, bytes)).collect(),
            Self::Shm { .. } | Self::Kernel(_) | Self::Syscall | Self::Threads(_) => vec![],
            Self::Other { ring, depth } => {
                let bytes = match ring {
                    Ring::Bytes => rings::bytes_bytes(depth),
                    Ring::Mpmc => rings::mpmc_bytes(depth),
                    Ring::Broadcast => rings::broadcast_bytes(depth),
                };
                vec![(Kind::Usual, bytes); 2]
            }
            Self::LongBytes => vec![(Kind::Usual, rings::long_bytes())],
            Self::Copies => vec![(Kind::Usual, copies::BYTES)],
            Self::Many { depth, .. } => vec![(Kind::Usual, rings::mpmc_bytes(depth))],
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

    /// Makes the lead's side. A segment that only this arm has is made of `pages`.
    pub(crate) fn lead(&self, memory: &mut Memory, pages: Pages) -> Result<LeadSide> {
        if let Self::Shm { depth } = *self {
            return shm::create(pages, depth).context("cannot make a ring in a segment of its own");
        }
        let opened = match *self {
            Self::Notify(way) => way.open(),
            _ => self.channel().map_or(Ok(Ends::default()), Channel::open),
        };
        let ends = opened.context("cannot open what an arm needs of the kernel")?;
        Ok(LeadSide { arm: self.make(Side::Lead, memory, ends.lead)?, for_peer: ends.peer })
    }

    /// Makes the peer's side, of the descriptors that the lead has for it.
    pub(crate) fn peer(&self, memory: &mut Memory, descriptors: Vec<OwnedFd>) -> Result<Box<dyn Arm>> {
        self.make(Side::Peer, memory, descriptors)
    }

    fn make(&self, side: Side, memory: &mut Memory, descriptors: Vec<OwnedFd>) -> Result<Box<dyn Arm>> {
        let parts = self
            .parts()
            .into_iter()
            .map(|(kind, bytes)| memory.cut(kind, bytes))
            .collect::<Result<Vec<_>>>()?;
        Ok(match *self {
            Self::SameLine { .. } => Box::new(measure::same_line(parts)?),
            Self::Rotating { lines, .. } => Box::new(measure::floor(side, parts, lines)?),
            Self::Spsc { depth, change, .. } => spsc::make(side, parts, depth, change, descriptors)?,
            Self::Shm { .. } => shm::attach(descriptors)?,
            Self::Other { ring: Ring::Bytes, depth } => Box::new(rings::bytes(side, parts, depth)?),
            Self::Other { ring: Ring::Mpmc, depth } => Box::new(rings::mpmc(side, parts, depth)?),
            Self::Other { ring: Ring::Broadcast, depth } => Box::new(rings::broadcast(side, parts, depth)?),
            Self::LongBytes => rings::long(side, parts)?,
            Self::Copies => Box::new(copies::Copies::new(parts)?),
            Self::Many { depth, threads } => rings::mpmc_many(side, parts, depth, threads)?,
            Self::Index { depth } => Box::new(index::make(side, parts, depth)?),
            Self::Kernel(channel) => kernel::make(side, channel, parts, descriptors)?,
            Self::Notify(way) => notify::make(side, way, memory, parts, descriptors)?,
            Self::PushAlone { depth } => alone::push_alone(side, parts, depth)?,
            Self::Syscall => Box::new(alone::Syscall),
            Self::Threads(_) => Box::new(alone::Absent),
        })
    }
}
