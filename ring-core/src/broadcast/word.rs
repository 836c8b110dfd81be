//! What a slot's word means: whose message the slot holds.

/// What a slot's word says to whoever is at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The message of this position is there.
    Published,
    /// It is not there yet.
    Pending,
    /// The slot is a lap or more ahead: it holds the message of position `at`, or waits for that.
    Later { at: u64, is_published: bool },
    /// No producer writes this.
    Impossible,
}

/// The word of a slot that holds the message of `position`.
#[inline(always)]
pub(super) const fn published(position: u64) -> u64 {
    position << 1
}

/// The word of a slot in which the message of `position` is being written, or will be.
#[inline(always)]
pub(super) const fn pending(position: u64) -> u64 {
    position << 1 | 1
}

/// Whether the word of a slot says that the message of `position`, one of that slot's, is not there yet: it is being
/// written, or the slot holds that of the lap before.
#[inline(always)]
pub(super) const fn is_pending(position: u64, word: u64, depth: u64) -> bool {
    word == pending(position) || word == published(position.wrapping_sub(depth))
}

impl Word {
    /// What the word of a slot says to whoever is at `position`, one of that slot's.
    pub(super) const fn at(position: u64, word: u64, depth: u64) -> Self {
        if word == published(position) {
            return Self::Published;
        }
        if is_pending(position, word, depth) {
            return Self::Pending;
        }
        // Positions of words are known modulo 2^63; up to half of that is ahead, and beyond it behind.
        let ahead = (word >> 1).wrapping_sub(position) & (u64::MAX >> 1);
        if ahead == 0 || ahead > u64::MAX >> 2 || ahead & (depth - 1) != 0 {
            return Self::Impossible;
        }
        Self::Later { at: position.wrapping_add(ahead), is_published: word & 1 == 0 }
    }
}
