//! The lines before a ring of one producer and one consumer, and how its two roles are taken.
//!
//! # Safety
//!
//! References are made to a [`Header`] only, in a region that was found to be long enough. A header consists of
//! atomics, so it can be shared with whoever else writes there.
#![allow(unsafe_code)]

use crate::header::{Guard, Shape};
use crate::liveness::OwnerWord;
use crate::region::{check_room, start_of};
use crate::sync::{self, AtomicU64, Ordering};
use crate::{Error, Liveness, Region, Role};

/// The lines before the messages. Each has one writer; hot and cold words are 128 bytes apart.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) guard: Guard,
    /// Written by the producer, seldom.
    pub(crate) producer: ProducerLine,
    /// Written by the consumer while messages flow.
    pub(crate) credit: CreditLine,
    /// Written by the consumer, seldom.
    pub(crate) consumer: ConsumerLine,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct ProducerLine {
    pub(crate) owner: OwnerWord,
    /// 1 once the producer has closed the ring.
    pub(crate) closed: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct CreditLine {
    /// Positions below it are free to be written again, a lap later. In a byte ring always where a frame begins.
    pub(crate) credit: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct ConsumerLine {
    pub(crate) owner: OwnerWord,
}

/// The owner words of a ring that is made anew, as they say that its maker has both roles.
type Roles = Option<(u64, u64)>;

impl Header {
    fn new() -> Self {
        Self {
            guard: Guard::new(),
            producer: ProducerLine { owner: OwnerWord::new(), closed: AtomicU64::new(0) },
            credit: CreditLine { credit: AtomicU64::new(0) },
            consumer: ConsumerLine { owner: OwnerWord::new() },
        }
    }

    /// Makes an empty ring of `bytes` bytes whose first position is `start`. `fill` writes what is behind the header,
    /// while nobody else uses the region.
    pub(crate) fn create(
        region: &impl Region,
        bytes: usize,
        shape: &Shape,
        start: u64,
        liveness: &impl Liveness,
        fill: impl FnOnce(),
    ) -> Result<(), Error> {
        check_room(region, bytes)?;
        // SAFETY: the region is that long, and aligned and initialised by its contract.
        let header = unsafe { sync::place(region.base().cast::<Self>(), Self::new) };
        let roles = header.seize(shape.kind, region, liveness)?;

        // ORDERING: Relaxed: the magic word publishes the ring (R4).
        header.producer.closed.store(0, Ordering::Relaxed);
        // ORDERING: Relaxed: as above.
        header.credit.credit.store(start, Ordering::Relaxed);
        fill();
        header.guard.describe(shape);
        header.guard.publish();
        if let Some((producer, consumer)) = roles {
            header.producer.owner.release(producer);
            header.consumer.owner.release(consumer);
        }
        Ok(())
    }

    /// Makes sure that nobody uses the region and that nobody can begin to. Of a ring that is there it takes both
    /// roles, which are to be released once it is made anew.
    fn seize(&self, kind: u64, region: &impl Region, liveness: &impl Liveness) -> Result<Roles, Error> {
        let (producer, consumer) = (&self.producer.owner, &self.consumer.owner);
        if self.guard.begin()? {
            producer.reset();
            consumer.reset();
            return Ok(None);
        }
        // Where the owner words lie depends on the kind, which stays what it is as long as there is a ring.
        self.guard.check_kind(kind)?;
        let as_producer = producer.claim(Role::Producer, region, liveness)?;
        match consumer.claim(Role::Consumer, region, liveness) {
            Ok(as_consumer) => {
                self.guard.begin_anew();
                Ok(Some((as_producer, as_consumer)))
            }
            Err(error) => {
                producer.release(as_producer);
                Err(error)
            }
        }
    }

    /// Compares the guards in the region with what the caller expects, as [`Guard::check`] does.
    pub(crate) fn check(
        region: &impl Region,
        kind: u64,
        element_bytes: usize,
        element_align: usize,
    ) -> Result<Shape, Error> {
        Self::of(region)?.guard.check(kind, element_bytes, element_align)
    }

    /// Takes a role of the ring in the region and then has `read` look at its layout. The word says that the caller
    /// owns the role.
    pub(crate) fn attach<L>(
        region: &impl Region,
        kind: u64,
        role: Role,
        liveness: &impl Liveness,
        read: impl FnOnce() -> Result<L, Error>,
    ) -> Result<(L, u64), Error> {
        let header = Self::of(region)?;
        header.guard.check_ready(kind)?;
        let owner = header.owner(role).claim(role, region, liveness)?;
        // Only now that it has a role can nobody make the ring anew, in another shape.
        match read() {
            Ok(layout) => Ok((layout, owner)),
            Err(error) => {
                header.owner(role).release(owner);
                Err(error)
            }
        }
    }

    pub(crate) fn owner(&self, role: Role) -> &OwnerWord {
        match role {
            Role::Producer => &self.producer.owner,
            Role::Consumer => &self.consumer.owner,
            Role::Participant(_) => unreachable!("the roles of this ring are two"),
        }
    }

    pub(crate) fn of<R: Region>(region: &R) -> Result<&Self, Error> {
        // SAFETY: a header is atomics.
        unsafe { start_of(region) }
    }
}

#[cfg(not(loom))]
const _: () = {
    use memoffset::offset_of;
    use static_assertions::const_assert_eq;

    const_assert_eq!(offset_of!(Header, guard), 0);
    const_assert_eq!(offset_of!(Header, producer), 128);
    const_assert_eq!(offset_of!(ProducerLine, owner), 0);
    const_assert_eq!(offset_of!(ProducerLine, closed), 8);
    const_assert_eq!(offset_of!(Header, credit), 256);
    const_assert_eq!(offset_of!(CreditLine, credit), 0);
    const_assert_eq!(offset_of!(Header, consumer), 384);
    const_assert_eq!(offset_of!(ConsumerLine, owner), 0);
    const_assert_eq!(size_of::<Header>(), 512);
};
