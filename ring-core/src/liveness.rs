//! Who owns a role of a ring, and whether that owner is gone.
//!
//! Each role has one word in the region, `incarnation << 1 | held`. Claiming sets `held` and raises the
//! incarnation; dropping the handle clears `held`. A killed owner leaves it set, and then only a [`Liveness`]
//! can say that the role is free.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R5 → A5 | the owner word at release | the owner word at claim | all that the former owner wrote |
//!
//! # Safety
//!
//! [`Liveness`] is an unsafe trait: rings in trusted regions hand out `&mut T`, and two owners of one role would
//! alias them.
#![allow(unsafe_code)]

use core::fmt;

use crate::Error;
use crate::sync::{AtomicU64, Ordering};

/// A role in a ring that one owner has at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Pushes.
    Producer,
    /// Pops.
    Consumer,
    /// Pushes, pops, or both, as one of many. The number is from 1 on.
    Participant(u16),
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Producer => formatter.write_str("producer"),
            Self::Consumer => formatter.write_str("consumer"),
            Self::Participant(number) => write!(formatter, "place {number}"),
        }
    }
}

/// Tells whether a former owner of a role can still act.
///
/// # Safety
///
/// `is_gone` answers true only when the owner of that incarnation will never touch the region again, and when
/// all that it wrote there happened before the answer. A value answers for one ring: incarnations of another one are other
/// owners, so whoever asks it about another ring must know that those are gone, too.
pub unsafe trait Liveness {
    /// Whether the owner of `role` in this incarnation is gone for good. In doubt, and where the question fails: false.
    /// Should it panic, what its asker holds just then stays held.
    fn is_gone(&self, role: Role, incarnation: u64) -> bool;
}

/// Nobody is ever known to be gone: a role is free when its handle was dropped.
#[derive(Debug, Clone, Copy)]
pub struct AssumeAlive;

// SAFETY: it never answers true.
unsafe impl Liveness for AssumeAlive {
    fn is_gone(&self, _: Role, _: u64) -> bool {
        false
    }
}

/// Whoever held a role is gone, or whoever held any: the caller knows it, having waited for that process to end, say.
#[derive(Debug)]
pub struct AssumeGone {
    /// None: every role.
    role: Option<Role>,
}

impl AssumeGone {
    /// Takes the caller's word for one role: to take it over.
    ///
    /// # Safety
    ///
    /// Whoever holds this role in a ring that is given the value is gone, as [`Liveness`] defines it, and nobody else
    /// takes the role over at the same time: the value cannot tell a dead owner from its live successor.
    pub unsafe fn of(role: Role) -> Self {
        Self { role: Some(role) }
    }

    /// Takes the caller's word for every role: to make a ring anew, or when all its users have ended.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of), of each role that the ring asks about: the one that is taken over, all of a ring that is
    /// made anew, and in mpmc, whatever the value is given to, all but the caller's own, since it clears up after all who
    /// are gone.
    pub unsafe fn all() -> Self {
        Self { role: None }
    }
}

// SAFETY: whoever made the value promised it.
unsafe impl Liveness for AssumeGone {
    fn is_gone(&self, role: Role, _: u64) -> bool {
        self.role.is_none_or(|gone| gone == role)
    }
}

/// The word in the region that says who owns a role.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct OwnerWord(AtomicU64);

const HELD: u64 = 1;

impl OwnerWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes the role, and returns the word that says so.
    pub(crate) fn claim(&self, role: Role, liveness: &impl Liveness) -> Result<u64, Error> {
        // ORDERING: Relaxed: the exchange below decides, and it acquires.
        let found = self.0.load(Ordering::Relaxed);
        if found & HELD != 0 && !liveness.is_gone(role, found >> 1) {
            return Err(Error::Taken { role });
        }
        let mine = (found | HELD).wrapping_add(2);
        // ORDERING: Acquire (A5): what the former owner wrote; pairs with R5 in OwnerWord::release.
        // ORDERING: Relaxed on failure: another claimant was faster, and nothing is read.
        match self.0.compare_exchange(found, mine, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(mine),
            Err(_) => Err(Error::Taken { role }),
        }
    }

    /// Gives the role back, unless a successor has taken it over already.
    pub(crate) fn release(&self, mine: u64) {
        // ORDERING: Release (R5): all that this owner wrote to the ring; pairs with A5 in OwnerWord::claim
        // and OwnerWord::state.
        // ORDERING: Relaxed on failure: a successor owns the word, and there is nothing to hand over.
        let _ = self.0.compare_exchange(mine, mine & !HELD, Ordering::Release, Ordering::Relaxed);
    }

    /// Says that nobody ever had the role. Only while the ring is being made.
    pub(crate) fn reset(&self) {
        // ORDERING: Relaxed: the magic word publishes it (R4).
        self.0.store(0, Ordering::Relaxed);
    }

    /// How often the role was claimed, and whether it is held now.
    pub(crate) fn state(&self) -> Owner {
        // ORDERING: Acquire (A5): what an owner that left wrote, for who clears up; pairs with R5 in
        // OwnerWord::release.
        let word = self.0.load(Ordering::Acquire);
        Owner { incarnation: word >> 1, held: word & HELD != 0 }
    }
}

/// What the owner word of a role says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// How often the role was claimed. It rises when the other side restarts, and when somebody makes the ring
    /// anew or fails to attach half-way.
    pub incarnation: u64,
    /// Whether a handle has the role. A killed owner leaves it true.
    pub held: bool,
}
