//! Why a request was not posted.

use crate::{Errno, Error};

/// A request that was not posted. The buffer comes back.
///
/// Where nothing is to be done with the buffer, `?` makes an [`Error`] of it, which drops the buffer.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct Rejected<B> {
    /// As it was.
    pub buffer: B,
    /// Why.
    pub reason: Rejection,
}

impl<B> From<Rejected<B>> for Error {
    fn from(rejected: Rejected<B>) -> Self {
        Self::Rejected(rejected.reason)
    }
}

/// Why a request was not posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// As many are in flight as the queue holds.
    #[error("the queue is full: poll the completion queue first")]
    Full,
    /// A batch of as many requests as the queue pair was made for.
    #[error(
        "the batch is full: post it, and begin another, or make the queue pair for larger ones (`batch`)"
    )]
    BatchFull,
    /// A buffer of more pieces than the queue pair was made for.
    #[error("the buffer has {pieces} pieces, the queue pair was made for {most}")]
    TooManyPieces {
        /// How many it has.
        pieces: usize,
        /// How many it may have.
        most: usize,
    },
    /// More bytes than the request can carry itself.
    #[error("{bytes} bytes are more than the {most} that a request can carry itself: use a buffer")]
    TooLong {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        most: u32,
    },
    /// A read or an atomic, which has nothing to carry.
    #[error("a read or an atomic brings bytes, and carries none: post it with a buffer")]
    NeedsBuffer,
    /// An atomic brings one word.
    #[error("the result of an atomic needs a buffer of one piece with at least 8 bytes")]
    NeedsWord,
    /// The address handle was made with another opening of a device, whose driver's handles may be unlike this one's.
    #[error("the address handle belongs to another device, or to another opening of it")]
    OtherDevice,
    /// The queue pair has no receives of its own.
    #[error("the queue pair shares its receives with others: post to the shared receive queue")]
    Shared,
    /// The driver does not take it.
    #[error("the driver refuses the request: {0}")]
    Driver(Errno),
}
