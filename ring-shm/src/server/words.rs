//! The messages between a server and its clients.

use ring_core::{Kind, Role};

use crate::Error;
use crate::ring::{Side, Wish, kind_of};

const ASK: u64 = u64::from_ne_bytes(*b"ring-ask");
const ANSWER: u64 = u64::from_ne_bytes(*b"ring-ans");
const VERSION: u64 = 1;
const WORDS: usize = 4;

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) wish: Wish,
}

impl Request {
    pub(super) const BYTES: usize = 8 * WORDS;

    pub(super) fn of<S: Side>() -> Self {
        Self { kind: kind_of::<S>(), wish: S::WISH }
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        bytes([ASK, VERSION, self.kind as u64, code(Some(self.wish.role()))])
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let [kind, wish] = words(bytes, ASK)?;
        let kind = Kind::of(kind);
        let wish = [Wish::Push, Wish::Pop].into_iter().find(|known| code(Some(known.role())) == wish);
        match (kind, wish) {
            (Some(kind), Some(wish)) => Ok(Self { kind, wish }),
            _ => Err(Error::BadMessage { fault: "a request for what there is not" }),
        }
    }
}

/// What a server says to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Granted(Option<Role>),
    /// By this process, or 0.
    Taken {
        process: u32,
    },
    /// All of so many places are.
    Full {
        participants: u16,
    },
    OtherKind {
        found: Kind,
    },
}

impl Answer {
    pub(super) const BYTES: usize = 8 * WORDS;

    /// What to say about an error; nothing where it is none of the client's business.
    pub(super) fn to(error: &Error) -> Option<Self> {
        match error {
            Error::RoleTaken { process, .. } => Some(Self::Taken { process: *process }),
            Error::Ring(ring_core::Error::TooManyParticipants { participants }) => {
                Some(Self::Full { participants: *participants })
            }
            Error::OtherRing { found } => Some(Self::OtherKind { found: *found }),
            _ => None,
        }
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let [outcome, detail] = match self {
            Self::Granted(role) => [0, code(role)],
            Self::Taken { process } => [1, process.into()],
            Self::Full { participants } => [2, participants.into()],
            Self::OtherKind { found } => [3, found as u64],
        };
        bytes([ANSWER, VERSION, outcome, detail])
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let bad = Error::BadMessage { fault: "an answer that does not exist" };
        let [outcome, detail] = words(bytes, ANSWER)?;
        match outcome {
            0 => role(detail).map(Self::Granted).ok_or(bad),
            1 => u32::try_from(detail).map(|process| Self::Taken { process }).map_err(|_| bad),
            2 => u16::try_from(detail).map(|participants| Self::Full { participants }).map_err(|_| bad),
            3 => Kind::of(detail).map(|found| Self::OtherKind { found }).ok_or(bad),
            _ => Err(bad),
        }
    }
}

fn code(role: Option<Role>) -> u64 {
    match role {
        Some(Role::Producer) => 1,
        Some(Role::Consumer) => 2,
        Some(Role::Participant(number)) => 2 + u64::from(number),
        _ => 0,
    }
}

fn role(code: u64) -> Option<Option<Role>> {
    match code {
        0 => Some(None),
        1 => Some(Some(Role::Producer)),
        2 => Some(Some(Role::Consumer)),
        _ => u16::try_from(code - 2).ok().map(|number| Some(Role::Participant(number))),
    }
}

fn bytes(words: [u64; WORDS]) -> [u8; 8 * WORDS] {
    let mut bytes = [0; 8 * WORDS];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The words behind the magic and the version.
fn words(bytes: &[u8], magic: u64) -> Result<[u64; WORDS - 2], Error> {
    let bytes: &[u8; 8 * WORDS] =
        bytes.try_into().map_err(|_| Error::BadMessage { fault: "a message of another length" })?;
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    match words {
        [found, VERSION, one, other] if found == magic => Ok([one, other]),
        [found, ..] if found == magic => Err(Error::BadMessage { fault: "a message of another version" }),
        _ => Err(Error::BadMessage { fault: "a message of another program" }),
    }
}
