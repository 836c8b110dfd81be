//! Who owns a role of a ring, and whether that owner is gone.
//!
//! Each role has one word in the region, `incarnation << 25 | process << 1 | held`. Claiming sets `held` and raises the
//! incarnation; dropping the handle clears `held`. A killed owner leaves it set, and then only a [`Liveness`]
//! can say that the role is free. The process is that of an owner whose death the system tells, else 0: see
//! [`Region::owner_process`].
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R5 → A5 | the owner word at release | the owner word at claim, or when somebody looks who has the role | all that the former owner wrote |
//!
//! # Safety
//!
//! [`Liveness`] is an unsafe trait: rings in trusted regions hand out `&mut T`, and two owners of one role would
//! alias them.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use crate::sync::{AtomicU64, Ordering};
use crate::{Error, Region};

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
/// `is_gone` answers true only when the owner that is asked about will never touch the region again, and when
/// all that it wrote there happened before the answer. Anybody may ask any value about any ring, and incarnations of
/// another ring are other owners: so a value that answers for one ring says no of all others.
pub unsafe trait Liveness {
    /// Whether this owner, which held `role` when its word was read, is gone for good. The ring lies in a region of this
    /// process that begins at `ring` ([`Region::base`]). In doubt, and where the question fails: false. Should it panic,
    /// what its asker holds just then stays held.
    fn is_gone(&self, ring: NonNull<u8>, role: Role, owner: Owner) -> bool;
}

/// Nobody is ever known to be gone: a role is free when its handle was dropped.
#[derive(Debug, Clone, Copy)]
pub struct AssumeAlive;

// SAFETY: it never answers true.
unsafe impl Liveness for AssumeAlive {
    fn is_gone(&self, _: NonNull<u8>, _: Role, _: Owner) -> bool {
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
    fn is_gone(&self, _: NonNull<u8>, role: Role, _: Owner) -> bool {
        self.role.is_none_or(|gone| gone == role)
    }
}

/// The word in the region that says who owns a role.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct OwnerWord(AtomicU64);

const HELD: u64 = 1;

/// Bits of an owner word that are the process. The kernel gives numbers below 2^22 (PID_MAX_LIMIT).
const PROCESS_BITS: u32 = 24;
const PROCESS_SHIFT: u32 = 1;
const PROCESS_MAX: u32 = (1 << PROCESS_BITS) - 1;

/// Bits before the incarnation.
const INCARNATION_SHIFT: u32 = PROCESS_SHIFT + PROCESS_BITS;

impl OwnerWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes the role for a handle in this region, and returns the word that says so.
    pub(crate) fn claim(
        &self,
        role: Role,
        region: &impl Region,
        liveness: &impl Liveness,
    ) -> Result<u64, Error> {
        // ORDERING: Relaxed: the exchange below decides, and it acquires.
        let found = self.0.load(Ordering::Relaxed);
        let owner = Owner::of(found);
        if owner.held && !liveness.is_gone(region.base(), role, owner) {
            return Err(Error::Taken { role });
        }
        let process = region.owner_process(role);
        let mine = Owner { incarnation: owner.incarnation.wrapping_add(1), held: true, process }.word();
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

    /// What the word says now.
    pub(crate) fn state(&self) -> Owner {
        // ORDERING: Acquire (A5): what an owner that left wrote, for who clears up; pairs with R5 in
        // OwnerWord::release.
        Owner::of(self.0.load(Ordering::Acquire))
    }
}

/// What the owner word of a role says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// How often the role was claimed, modulo 2^39. It rises when the other side restarts, and when somebody makes the
    /// ring anew or fails to attach half-way.
    pub incarnation: u64,
    /// Whether a handle has the role. A killed owner leaves it true.
    pub held: bool,
    /// The process of the last owner, if its death is known to the system, as [`Region::owner_process`] has it; else 0.
    /// A number of its own process namespace, written by who may be hostile: a hint for people.
    pub process: u32,
}

impl Owner {
    /// Bits of a word that an incarnation does not need.
    pub(crate) const UNUSED_BITS: u32 = INCARNATION_SHIFT;

    pub(crate) fn of(word: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "masked")]
        let process = (word >> PROCESS_SHIFT) as u32 & PROCESS_MAX;
        Self { incarnation: word >> INCARNATION_SHIFT, held: word & HELD != 0, process }
    }

    pub(crate) fn word(self) -> u64 {
        let process = u64::from(self.process & PROCESS_MAX) << PROCESS_SHIFT;
        self.incarnation << INCARNATION_SHIFT | process | u64::from(self.held)
    }
}
