//! The lines and the table before the slots.

use super::layout::UnfinishedPops;
use super::word::OWNER_MAX;
use crate::Error;
use crate::header::Guard;
use crate::liveness::OwnerWord;
use crate::sync::{AtomicU64, Ordering};

/// The lines before the table of participants. What is written while messages flow is 128 bytes apart.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Header {
    pub(super) guard: Guard,
    /// Written seldom.
    pub(super) state: StateLine,
    /// Written by producers while messages flow.
    pub(super) tail: HintLine,
    /// Written by consumers while messages flow.
    pub(super) head: HintLine,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct StateLine {
    participants: AtomicU64,
    /// 0 for [`UnfinishedPops::Redeliver`], 1 for [`UnfinishedPops::Skip`].
    pub(super) unfinished: AtomicU64,
    /// 1 once somebody has closed the ring.
    pub(super) closed: AtomicU64,
    /// Changes whenever a message may have been put back, so that consumers look behind them.
    pub(super) put_back: AtomicU64,
}

/// A position up to which all are claimed: a place to begin to look at. It may be behind, and is never ahead.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct HintLine {
    pub(super) position: AtomicU64,
}

/// A participant's words.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) owner: OwnerWord,
    /// Who alone may touch what the owner left behind: see [`keeper`](super::keeper).
    pub(super) keeper: AtomicU64,
}

impl Entry {
    pub(super) fn new() -> Self {
        Self { owner: OwnerWord::new(), keeper: AtomicU64::new(0) }
    }

    pub(super) fn reset(&self) {
        self.owner.reset();
        // ORDERING: Relaxed: the magic word publishes it (R4).
        self.keeper.store(0, Ordering::Relaxed);
    }
}

/// Bytes of the table, so that the slots behind it begin on a pair of lines.
pub(super) const fn table_bytes(participants: u16) -> usize {
    (participants as usize * size_of::<Entry>()).next_multiple_of(crate::REGION_ALIGN)
}

impl Header {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            guard: Guard::new(),
            state: StateLine { participants: zero(), unfinished: zero(), closed: zero(), put_back: zero() },
            tail: HintLine { position: zero() },
            head: HintLine { position: zero() },
        }
    }

    /// The number of participants, a private copy. It stays the same as long as there is a ring.
    pub(super) fn participants(&self) -> Result<u16, Error> {
        // ORDERING: Relaxed: the magic word was read before, which brought it.
        let found = self.state.participants.load(Ordering::Relaxed);
        match u16::try_from(found) {
            Ok(participants @ 1..=OWNER_MAX) => Ok(participants),
            _ => Err(Error::WrongParticipants { found }),
        }
    }

    pub(super) fn set(&self, participants: u16, unfinished: UnfinishedPops, start: u64) {
        for (word, value) in [
            (&self.state.participants, u64::from(participants)),
            (&self.state.unfinished, (unfinished == UnfinishedPops::Skip).into()),
            (&self.state.closed, 0),
            (&self.state.put_back, 0),
            (&self.tail.position, start),
            (&self.head.position, start),
        ] {
            // ORDERING: Relaxed: the magic word publishes the ring (R4).
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(not(loom))]
const _: () = {
    use memoffset::offset_of;
    use static_assertions::const_assert_eq;

    const_assert_eq!(offset_of!(Header, guard), 0);
    const_assert_eq!(offset_of!(Header, state), 128);
    const_assert_eq!(offset_of!(StateLine, participants), 0);
    const_assert_eq!(offset_of!(StateLine, unfinished), 8);
    const_assert_eq!(offset_of!(StateLine, closed), 16);
    const_assert_eq!(offset_of!(StateLine, put_back), 24);
    const_assert_eq!(offset_of!(Header, tail), 256);
    const_assert_eq!(offset_of!(Header, head), 384);
    const_assert_eq!(offset_of!(HintLine, position), 0);
    const_assert_eq!(size_of::<Header>(), 512);
    const_assert_eq!(size_of::<Entry>(), 16);
    const_assert_eq!(offset_of!(Entry, owner), 0);
    const_assert_eq!(offset_of!(Entry, keeper), 8);
};
