//! What can go wrong when a ring is made or attached to.

use crate::{Kind, Role};

/// Why a ring could not be made or attached to. No message was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The depth asked for is not a power of two from 1 to 2^31.
    #[error("a depth of {depth} slots: ask for a power of two from 1 to 2^31")]
    BadDepth {
        /// What was asked for.
        depth: u64,
    },
    /// The slot size asked for is not a multiple of 64 bytes that holds message and sequence word.
    #[error("slots of {slot_bytes} bytes: ask for a multiple of 64, {needed} or more for this message type")]
    BadSlotSize {
        /// What was asked for.
        slot_bytes: usize,
        /// The smallest that would do.
        needed: usize,
    },
    /// The size asked for is none that a byte ring can have.
    #[error("a byte ring of {ring_bytes} bytes: ask for a power of two of 64 or more")]
    BadRingBytes {
        /// What was asked for.
        ring_bytes: usize,
    },
    /// The number of participants asked for is none that an mpmc ring can have.
    #[error("a ring for {participants} participants: ask for 1 to 1,023")]
    BadParticipants {
        /// What was asked for.
        participants: u16,
    },
    /// The ring is larger than the address space.
    #[error("the ring is larger than the address space: ask for less")]
    TooLarge,
    /// The region is too short for the ring.
    #[error("the region has {available} bytes and the ring needs {needed}: lend a larger one")]
    RegionTooSmall {
        /// Bytes that the ring needs.
        needed: u64,
        /// Bytes that the region has.
        available: u64,
    },
    /// Nobody has finished making a ring here yet.
    #[error(
        "no ring is ready in this region: have `Layout::init` make one, or wait for whoever does; if that was killed, use \
         another region"
    )]
    NotReady,
    /// The region holds something that is not a ring.
    #[error("the region begins with {found:#018x}, which is not a ring: check what it was made for")]
    WrongMagic {
        /// The first word.
        found: u64,
    },
    /// The ring was made by an incompatible version of this crate.
    #[error("the ring has layout version {found}, this program knows {expected}: build both sides alike")]
    WrongVersion {
        /// In the header.
        found: u64,
        /// What this program writes.
        expected: u64,
    },
    /// The ring was made on another architecture (byte order, pointer width, line size).
    #[error(
        "the ring was made for architecture {found:#x}, this program runs on {expected:#x}: make it on this one"
    )]
    WrongArchitecture {
        /// In the header.
        found: u64,
        /// Of this program.
        expected: u64,
    },
    /// The ring is of another kind.
    #[error("the ring is {}, not {}: attach with the type that made it", kind(*found), expected_kind(*expected))]
    WrongKind {
        /// In the header.
        found: u64,
        /// Of the type that attaches; 0 where any kind would do that this program knows.
        expected: u64,
    },
    /// Messages in the ring have another size.
    #[error("messages in the ring have {found} bytes, yours {expected}: use one message type on both sides")]
    WrongElementSize {
        /// In the header, bytes.
        found: u64,
        /// Of the type that attaches, bytes.
        expected: u64,
    },
    /// Messages in the ring have another alignment.
    #[error("messages in the ring are aligned to {found}, yours to {expected}: use one type on both sides")]
    WrongElementAlign {
        /// In the header, bytes.
        found: u64,
        /// Of the type that attaches, bytes.
        expected: u64,
    },
    /// The header's slot size cannot hold the message.
    #[error("the header says slots of {found} bytes, which no ring of these messages has: make it anew")]
    WrongSlotSize {
        /// In the header, bytes.
        found: u64,
    },
    /// The header's depth is none that a ring can have.
    #[error("the header says a depth of {found}, which no ring has: make it anew")]
    WrongDepth {
        /// In the header.
        found: u64,
    },
    /// The ring is for another number of participants, or the header says one that no ring has.
    #[error(
        "the header says {found} participants: ask for as many when making a ring anew (or use another region); \
         where nobody can have asked for that, a peer spoiled it"
    )]
    WrongParticipants {
        /// In the header.
        found: u64,
    },
    /// The ring has no such place.
    #[error("there is no participant {id} in this ring: ask for 1 to {participants}")]
    NoSuchParticipant {
        /// What was asked for.
        id: u16,
        /// Places that the ring has.
        participants: u16,
    },
    /// The role has an owner that is not known to be gone.
    #[error(
        "the {role} of this ring is taken: only one at a time; if its owner is dead, use `take_over` (to make the \
         ring anew `init_over`) with a `Liveness` that knows it, such as `AssumeGone::of` that role"
    )]
    Taken {
        /// Which one.
        role: Role,
    },
    /// Every participant's place in the ring is taken.
    #[error(
        "all {participants} places of this ring are taken: drop a handle, recover the dead, or make a ring for more"
    )]
    TooManyParticipants {
        /// Places that the ring has.
        participants: u16,
    },
    /// The ring was closed for good.
    #[error(
        "the ring was closed: once it is empty, remove the segment that it is in, or take another region, and make a new one"
    )]
    Closed,
    /// A ring of another shape was made in the region since somebody first looked at it.
    #[error("the ring was made anew, in another shape: look at it anew")]
    MadeAnew,
    /// The words in the region contradict each other.
    #[error("the ring's words contradict each other: a peer spoiled it, make it anew")]
    Corrupted,
}

/// What kind of ring a number in the header stands for.
fn kind(number: u64) -> &'static str {
    match Kind::of(number) {
        Some(Kind::Spsc) => "one of `spsc`",
        Some(Kind::Bytes) => "one of `bytes`",
        Some(Kind::Mpmc) => "one of `mpmc`",
        Some(Kind::Broadcast) => "one of `broadcast`",
        None => "of a kind that this program does not know",
    }
}

/// What kind of ring whoever attaches asked for.
fn expected_kind(number: u64) -> &'static str {
    if number == 0 { "of one that it does" } else { kind(number) }
}
