//! The arms: each is one way to pass messages between the two processes.
//!
//! Both processes make the same arms in the same order. The *lead* makes what is shared, measures, and is the
//! process that the user started; its *peer* answers.

mod alone;
mod index;
mod kernel;
mod spsc;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;

use anyhow::Result;
use measure::threads::Threads;
use measure::{Arm, Side, line_bytes};
use serde::{Deserialize, Serialize};

pub(crate) use kernel::Channel;
pub(crate) use spsc::Change;

use super::memory::{Kind, Memory};

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
            Self::Kernel(_) | Self::Syscall | Self::Threads(_) => vec![],
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
            Self::SameLine { .. } => Box::new(measure::same_line(parts)?),
            Self::Rotating { lines, .. } => Box::new(measure::floor(side, parts, lines)?),
            Self::Spsc { depth, change, .. } => spsc::make(side, parts, depth, change, descriptors)?,
            Self::Index { depth } => Box::new(index::make(side, parts, depth)?),
            Self::Kernel(channel) => kernel::make(side, channel, parts, descriptors)?,
            Self::PushAlone { depth } => alone::push_alone(side, parts, depth)?,
            Self::Syscall => Box::new(alone::Syscall),
            Self::Threads(_) => Box::new(alone::Absent),
        })
    }
}
