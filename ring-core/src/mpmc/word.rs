//! The word at the end of a slot, and what a position has to do with it.
//!
//! `lap << 12 | owner << 2 | state`. The lap is that of the position whose message the slot waits for or carries;
//! the owner is who claimed the slot, 0 where nobody has.

/// Largest number of participants, and largest owner.
pub(super) const OWNER_MAX: u16 = (1 << OWNER_BITS) - 1;

const OWNER_BITS: u32 = 10;
const STATE_BITS: u32 = 2;
const LAP_SHIFT: u32 = OWNER_BITS + STATE_BITS;

/// What a slot is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for a message.
    Free,
    /// A producer fills it.
    Writing(u16),
    /// Carries a message.
    Full,
    /// A consumer reads it.
    Reading(u16),
    /// Waits for no message any more: the ring is closed, and this is its end.
    Closed,
    /// What no participant writes.
    Odd,
}

impl State {
    pub(super) fn of(word: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "masked")]
        let owner = (word >> STATE_BITS) as u16 & OWNER_MAX;
        match (word & 3, owner) {
            (0, 0) => Self::Free,
            (0, OWNER_MAX) => Self::Closed,
            (1, owner @ 1..) => Self::Writing(owner),
            (2, 0) => Self::Full,
            (3, owner @ 1..) => Self::Reading(owner),
            _ => Self::Odd,
        }
    }

    #[inline(always)]
    const fn bits(self) -> u64 {
        match self {
            Self::Free => 0,
            Self::Writing(owner) => (owner as u64) << STATE_BITS | 1,
            Self::Full => 2,
            Self::Reading(owner) => (owner as u64) << STATE_BITS | 3,
            Self::Closed => (OWNER_MAX as u64) << STATE_BITS,
            Self::Odd => unreachable!(),
        }
    }
}

/// Turns positions into laps. Positions wrap at 2^64 and laps where their bits end, both without a jump.
#[derive(Debug, Clone, Copy)]
pub(super) struct Laps {
    /// Binary logarithm of the depth.
    shift: u32,
    /// Bits of a word that are no lap: in a ring of more than 2^12 slots, a lap needs fewer than it may have.
    spare: u32,
}

impl Laps {
    /// For a depth that is a power of two.
    pub(super) fn new(depth: u64) -> Self {
        let shift = depth.trailing_zeros();
        Self { shift, spare: shift.max(LAP_SHIFT) }
    }

    /// The word of the slot of `position` in `state`.
    #[inline(always)]
    pub(super) fn word(self, position: u64, state: State) -> u64 {
        (position >> self.shift) << self.spare >> (self.spare - LAP_SHIFT) | state.bits()
    }

    /// How many laps `word` is ahead of `position`.
    pub(super) fn ahead(self, word: u64, position: u64) -> i64 {
        let laps = (word >> LAP_SHIFT).wrapping_sub(position >> self.shift);
        (laps << self.spare) as i64 >> self.spare
    }

    /// The position in the slot of `near` that `word` speaks of.
    pub(super) fn position(self, word: u64, near: u64) -> u64 {
        near.wrapping_add_signed(self.ahead(word, near) << self.shift)
    }

    /// Up to which position, behind `position`, all were claimed for writing, as far as the word of its slot tells, which
    /// says `state`. None: it does not say that `position` was.
    pub(super) fn claimed_up_to(self, position: u64, word: u64, state: State) -> Option<u64> {
        let behind_there = self.position(word, position).wrapping_add(1);
        match (self.ahead(word, position), state) {
            // A lap later than a slot that carried a message, all before that are claimed.
            (1.., State::Free | State::Closed) => Some(behind_there.wrapping_sub(1 << self.shift)),
            (0.., State::Writing(_) | State::Full | State::Reading(_)) => Some(behind_there),
            _ => None,
        }
    }

    /// Up to which position, behind `position`, all were claimed for reading or given up, as far as the word of its slot
    /// tells, which says `state`. None: it does not say that `position` was.
    pub(super) fn done_up_to(self, position: u64, word: u64, state: State) -> Option<u64> {
        let behind_there = self.position(word, position).wrapping_add(1);
        match (self.ahead(word, position), state) {
            (0.., State::Reading(_)) => Some(behind_there),
            // Claimed by a producer, which gets no further than a lap beyond the first message that waits.
            (1.., State::Writing(_) | State::Full) => Some(behind_there.wrapping_sub(1 << self.shift)),
            // The same for the position a lap before, which may have been given up and never carried a message. The
            // slot at `position` is done with in any case.
            (ahead @ 1.., State::Free | State::Closed) => {
                let laps = ahead.saturating_sub(2).max(0) as u64;
                Some(position.wrapping_add(1).wrapping_add(laps << self.shift))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 7] = [
        State::Free,
        State::Writing(1),
        State::Writing(OWNER_MAX),
        State::Full,
        State::Reading(1),
        State::Reading(OWNER_MAX),
        State::Closed,
    ];

    #[test]
    fn a_word_says_what_went_into_it() {
        for shift in [0, 1, 4, 11, 12, 13, 20, 31] {
            let laps = Laps::new(1 << shift);
            for start in [0, 1 << 12, 1 << 32, 1 << 51, 1 << 52, 1 << 63, u64::MAX - 3] {
                for position in (0..8).map(|offset: u64| start.wrapping_add(offset)) {
                    for state in STATES {
                        let word = laps.word(position, state);
                        assert_eq!(State::of(word), state);
                        for ahead in [-2_i64, -1, 0, 1, 2, 1000] {
                            let other = position.wrapping_add_signed(-ahead << shift);
                            assert_eq!(laps.ahead(word, other), ahead);
                            assert_eq!(laps.position(word, other), position);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_nobody_writes_is_odd() {
        for word in [1 << 2, (1 << 2) | 2, 1, 3] {
            assert_eq!(State::of(word), State::Odd);
        }
    }
}
