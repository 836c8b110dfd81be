//! Roles in a segment's ring, which their owners give back at the latest when they die.
//!
//! # Safety
//!
//! [`Locks`] declares an owner gone only if its ring is the one in the segment that the value keeps, so that nothing else
//! begins at that address; if the owner's word was written through a [`Claim`] (it names a process); and if nobody has the
//! role's lock any more, or this is the owner that was there when the asker's own claim took the lock. A claim has the
//! lock for as long as it lives, and a ring's handle keeps its claim, so the handle is gone too. What it wrote happened
//! before: the kernel gives a lock back once the last thread of a process has stopped, and gives and takes locks of a file
//! under one lock of its own.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ops::Deref;
use core::ptr::NonNull;

use ring_core::{Liveness, Owner, Region, Role};

use crate::fork::{NoForks, Unforked};
use crate::{Error, Segment, lock, sys};

/// A role in the ring of a segment, and the region to take it through. Nobody else can claim the role meanwhile.
///
/// [`Options::create_ring`](crate::Options::create_ring) and its companions make the claim and the ring's handle in one
/// call. It is a lock that the kernel takes back when the process dies, however it does; a process that is stopped keeps
/// it. Dropping the claim gives the role back.
///
/// A forked child has no part in it: it does not keep the role when its parent dies. The handles that it got a copy of are
/// still the parent's, and it must leave them alone.
///
/// The lock is on a descriptor of this process. A program that closes descriptors which are not its own loses its
/// roles without a sign, and others can take them over while it goes on.
///
/// ```
/// use std::sync::Arc;
/// use ring_core::{Role, spsc};
/// use ring_shm::{Error, Options, Presence};
///
/// let layout = spsc::Layout::<u64>::new(8)?;
/// let new = Options::new().create_anonymous(layout.bytes())?;
/// layout.init(&new)?;
/// let segment = Arc::new(new.publish());
///
/// let claim = segment.claim(Role::Producer)?;
/// assert!(matches!(segment.claim(Role::Producer), Err(Error::RoleTaken { .. })));
/// let liveness = claim.liveness();
/// let mut producer = spsc::Producer::<u64, _>::take_over(claim, &liveness)?;
/// producer.try_push(7).unwrap();
///
/// assert_eq!(segment.presence(Role::Producer)?, Presence::Alive);
/// assert_eq!(segment.owner(Role::Producer)?.process, std::process::id());
/// assert_eq!(segment.presence(Role::Consumer)?, Presence::NeverCame);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Claim {
    role: Role,
    /// Incarnation of the role's last owner before this claim.
    before: u64,
    lock: Unforked,
    segment: Arc<Segment>,
}

/// What is known of a role's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Somebody has claimed the role and lives. A stopped process does. Whoever may open the segment can pretend to.
    Alive,
    /// Who had the role last has given it back, or is dead.
    Gone,
    /// Nobody ever had the role.
    NeverCame,
    /// A handle has the role, or had it when its process was killed: it was attached without a claim, so there is no lock
    /// that would tell. Or the kernel does not tell of locks.
    Unknown,
}

impl Claim {
    pub(crate) fn new(segment: &Arc<Segment>, role: Role) -> Result<Self, Error> {
        Self::over(segment, role, |no_forks| Ok(no_forks.adopt(segment.open_again()?)))
    }

    /// Claims a role on the description that `open` makes, on which it may be claimed already.
    pub(crate) fn over(
        segment: &Arc<Segment>,
        role: Role,
        open: impl FnOnce(&mut NoForks) -> Result<Unforked, Error>,
    ) -> Result<Self, Error> {
        // Who has no such role is told so before anything is opened.
        segment.owner(role)?;
        let mut no_forks = NoForks::begin()?;
        let lock = open(&mut no_forks)?;
        drop(no_forks);
        let is_taken = match lock.get() {
            Some(own) => !lock::take_role(own, role).map_err(|error| Error::os("lock a role", error))?,
            None => true,
        };
        let owner = segment.owner(role)?;
        if is_taken {
            return Err(role_taken(role, owner));
        }
        Ok(Self { role, before: owner.incarnation, lock, segment: Arc::clone(segment) })
    }

    /// The role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The segment, to share it with another handle of this process.
    #[must_use]
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Who is gone, as the locks say it, and whoever had this role before. To take the role over, and for
    /// [`recover`](ring_core::mpmc::Producer::recover) and its companions.
    #[must_use]
    pub fn liveness(&self) -> Locks {
        Locks { segment: Arc::clone(&self.segment), own: Some((self.role, self.before)) }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // To close the descriptor would not do: a child that is being forked has a copy until it gets to run, and so has
        // the server that passed it.
        if let Some(own) = self.lock.get() {
            lock::leave_role(own, self.role);
        }
    }
}

impl Deref for Claim {
    type Target = Segment;

    fn deref(&self) -> &Segment {
        &self.segment
    }
}

// SAFETY: the segment's own bytes, which the claim keeps. It has the lock of its role, and `Locks` asks for that.
unsafe impl Region for Claim {
    fn base(&self) -> NonNull<u8> {
        self.segment.base()
    }

    fn bytes(&self) -> usize {
        self.segment.bytes()
    }

    fn owner_process(&self, role: Role) -> u32 {
        match self.lock.get() {
            Some(_) if role == self.role => sys::process_id().unsigned_abs(),
            _ => 0,
        }
    }
}

/// Who is gone, as the kernel's locks say it. It answers for the owners who came with a [`Claim`], and says no of others;
/// also of those of a ring that is not in the very [`Segment`] that it was got from.
///
/// A dead process is known to be gone 0.2 ms after its end on average and 5 ms at most where that was measured; where it
/// leaves a core dump, only once that is written.
#[derive(Debug, Clone)]
pub struct Locks {
    segment: Arc<Segment>,
    /// A claim, and the last incarnation before it, of which its own lock says nothing.
    own: Option<(Role, u64)>,
}

impl Locks {
    pub(crate) fn of(segment: &Arc<Segment>) -> Self {
        Self { segment: Arc::clone(segment), own: None }
    }
}

// SAFETY: see the top of this file.
unsafe impl Liveness for Locks {
    fn is_gone(&self, ring: NonNull<u8>, role: Role, owner: Owner) -> bool {
        ring == self.segment.base()
            && owner.process != 0
            && (self.own == Some((role, owner.incarnation))
                || lock::is_role_taken(self.segment.descriptor(), role) == Ok(false))
    }
}

/// That somebody has the lock of a role, whose word says this. Whoever has the lock and not attached yet has not written
/// the word.
pub(crate) fn role_taken(role: Role, owner: Owner) -> Error {
    Error::RoleTaken { role, process: if owner.held { owner.process } else { 0 } }
}

/// What is known of the owner of a role that its word speaks of.
pub(crate) fn presence(segment: &Segment, role: Role, owner: Owner) -> Presence {
    match lock::is_role_taken(segment.descriptor(), role) {
        Ok(true) => Presence::Alive,
        Ok(false) if owner.held && owner.process == 0 => Presence::Unknown,
        Ok(false) if owner.incarnation == 0 => Presence::NeverCame,
        Ok(false) => Presence::Gone,
        Err(_) => Presence::Unknown,
    }
}
