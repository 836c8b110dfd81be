//! Looking at a ring of any kind, without a role in it and without knowing its messages.
//!
//! # Safety
//!
//! A reference is made to the guards only, at the start of a region that is long enough for them.
#![allow(unsafe_code)]

#[cfg(all(test, feature = "alloc"))]
pub(crate) mod tests;

use core::fmt;

use crate::header::{Guard, Shape};
use crate::region::start_of;
use crate::{Error, Owner, Region, Role, broadcast, bytes, mpmc, pair, spsc};

/// Looks at the ring in a region, whatever kind it is of and whatever its messages are: for a monitor, say.
///
/// It takes no role, writes nothing, and can be made at any time beside whoever works with the ring; the lines that it
/// reads are on their way to and fro a little more often. What it keeps of the ring's shape are private copies, so it
/// never looks outside the region, whoever writes there.
///
/// ```
/// use std::sync::Arc;
/// use ring_core::{HeapRegion, Inspector, Kind, Role, spsc};
///
/// let layout = spsc::Layout::<[u64; 7]>::new(8)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (mut producer, _consumer) = spsc::create(Arc::clone(&region), &layout)?;
/// producer.push_slice(&[[1; 7]; 3]).unwrap();
///
/// let inspector = Inspector::new(region)?;
/// assert_eq!(inspector.kind(), Kind::Spsc);
/// assert_eq!(inspector.depth(), 8);
/// assert_eq!(inspector.element_bytes(), 56);
/// assert!(inspector.owner(Role::Producer).unwrap().held);
/// let progress = inspector.progress()?;
/// assert_eq!((progress.tail, progress.head, progress.fill), (3, Some(0), 3));
/// # Ok::<(), ring_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Inspector<R: Region> {
    shape: Shape,
    ring: Ring,
    /// Keeps the memory.
    region: R,
}

/// The layout of the ring, as it was found. Those of typed rings are of bytes instead, of which nobody looks at any.
#[derive(Debug)]
enum Ring {
    Spsc(spsc::Layout<u8>),
    Bytes(bytes::Layout),
    Mpmc(mpmc::Layout<u8>),
    Broadcast(broadcast::Layout<u8>),
}

impl<R: Region> Inspector<R> {
    /// Looks at what ring lies in `region`, and whether it is whole in it.
    ///
    /// # Errors
    ///
    /// [`Error::NotReady`], also while somebody makes the ring anew; [`Error::RegionTooSmall`]; one per guard of the
    /// header that says what no ring of its kind does. Their `expected` is then the next value that there can be, and 0
    /// in [`Error::WrongKind`].
    pub fn new(region: R) -> Result<Self, Error> {
        let shape = Self::guard(&region)?.look()?;
        let ring = match Kind::of(shape.kind) {
            Some(Kind::Spsc) => Ring::Spsc(spsc::Layout::untyped(&region, &shape)?),
            Some(Kind::Bytes) => Ring::Bytes(bytes::Layout::untyped(&region, &shape)?),
            Some(Kind::Mpmc) => Ring::Mpmc(mpmc::Layout::untyped(&region, &shape)?),
            Some(Kind::Broadcast) => Ring::Broadcast(broadcast::Layout::untyped(&region, &shape)?),
            None => return Err(Error::WrongKind { found: shape.kind, expected: 0 }),
        };
        Ok(Self { shape, ring, region })
    }

    /// What kind of ring it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.ring {
            Ring::Spsc(_) => Kind::Spsc,
            Ring::Bytes(_) => Kind::Bytes,
            Ring::Mpmc(_) => Kind::Mpmc,
            Ring::Broadcast(_) => Kind::Broadcast,
        }
    }

    /// Number of slots; of a byte ring its bytes.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.shape.depth
    }

    /// Size of a message in bytes. 1 in a byte ring.
    #[must_use]
    pub fn element_bytes(&self) -> u64 {
        self.shape.element_bytes
    }

    /// Alignment of a message in bytes. 8 in a byte ring.
    #[must_use]
    pub fn element_align(&self) -> u64 {
        self.shape.element_align
    }

    /// Size of a slot in bytes. 8 in a byte ring, whose frames are multiples of that.
    #[must_use]
    pub fn slot_bytes(&self) -> u64 {
        self.shape.slot_bytes
    }

    /// Number of places of an mpmc ring, 0 of another one.
    #[must_use]
    pub fn participants(&self) -> u16 {
        match &self.ring {
            Ring::Mpmc(layout) => layout.places(),
            _ => 0,
        }
    }

    /// The roles that the ring has: a producer and a consumer, or only a producer (broadcast), or each place of an mpmc
    /// ring.
    pub fn roles(&self) -> impl Iterator<Item = Role> + use<R> {
        let pair: &[Role] = match self.ring {
            Ring::Spsc(_) | Ring::Bytes(_) => &[Role::Producer, Role::Consumer],
            Ring::Broadcast(_) => &[Role::Producer],
            Ring::Mpmc(_) => &[],
        };
        pair.iter().copied().chain((1..=self.participants()).map(Role::Participant))
    }

    /// What the owner word of a role says. None: the ring has no such role.
    #[must_use]
    pub fn owner(&self, role: Role) -> Option<Owner> {
        match (&self.ring, role) {
            (Ring::Spsc(_) | Ring::Bytes(_), Role::Producer | Role::Consumer) => {
                Some(pair::Header::of(&self.region).ok()?.owner(role).state())
            }
            (Ring::Broadcast(layout), Role::Producer) => Some(layout.owner(&self.region)),
            (Ring::Mpmc(layout), Role::Participant(id)) => layout.owner(&self.region, id),
            _ => None,
        }
    }

    /// How far the ring is now: see [`Progress`] for how exact that is.
    ///
    /// Looks at some 2 log2(depth) slots; in an mpmc ring at the word of each slot, to count the messages; in a byte ring
    /// at the header of each message that is there, or at one for each 16 bytes of the ring at most.
    ///
    /// # Errors
    ///
    /// [`Error::NotReady`] while the ring is being made anew; [`Error::MadeAnew`] when it has another shape since;
    /// [`Error::Corrupted`] when its words contradict each other.
    pub fn progress(&self) -> Result<Progress, Error> {
        self.check_same()?;
        let progress = match &self.ring {
            Ring::Spsc(layout) => layout.progress(&self.region),
            Ring::Bytes(layout) => layout.progress(&self.region),
            Ring::Mpmc(layout) => layout.progress(&self.region),
            Ring::Broadcast(layout) => layout.progress(&self.region),
        };
        // What was seen of a ring that is being made anew means nothing.
        self.check_same()?;
        progress
    }

    /// The region that the ring lies in.
    pub fn region(&self) -> &R {
        &self.region
    }

    fn check_same(&self) -> Result<(), Error> {
        if Self::guard(&self.region)?.look()? == self.shape { Ok(()) } else { Err(Error::MadeAnew) }
    }

    fn guard(region: &R) -> Result<&Guard, Error> {
        // SAFETY: a guard is atomics.
        unsafe { start_of(region) }
    }
}

/// How far a ring is.
///
/// In a ring at rest all is exact. Where others are at work, `tail` is a value between that at the call and that at the
/// return, `head` the one at the return, and they and `fill` miss what was pushed between two looks, as each says. Words
/// that a hostile process writes can make any of it wrong, and so can a ring that is made anew during the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Position behind the last message that was pushed; in an mpmc ring behind the last that a producer has claimed.
    /// Positions count messages, in a byte ring bytes with headers and padding, and wrap at 2^64.
    pub tail: u64,
    /// Position behind the last message that was popped, as the producer knows it: a consumer returns credit for several
    /// at a time, so it may be further. In an mpmc ring behind the last that a consumer has claimed. None in broadcast,
    /// where consumers leave no trace.
    pub head: Option<u64>,
    /// Position of the first message that the ring ever had, where the ring knows it: broadcast.
    pub first: Option<u64>,
    /// Messages that are there, in a byte ring bytes with headers and padding: those pushed and not credited. At least as
    /// many were there when `head` was looked at. In an mpmc ring the slots that carry a message, each as of when it was
    /// looked at; in broadcast the messages that can still be had, the one included that the producer may be writing over.
    pub fill: u64,
    /// Messages that can no longer be had since the producer wrote over them: broadcast. 0 elsewhere.
    pub overwritten: u64,
    /// Whether the ring was closed for good. Then `tail` is final; in an mpmc ring once those who push have noticed.
    pub closed: bool,
}

impl Progress {
    /// Of a ring of two roles, whose credit was looked at after its tail, and which holds `most` at most.
    pub(crate) fn of_pair(tail: u64, credit: u64, closed: bool, most: u64) -> Result<Self, Error> {
        // The consumer may be past the tail that was found meanwhile, and what it popped had been pushed.
        let fill = match tail.wrapping_sub(credit) {
            behind if behind > u64::MAX / 2 => 0,
            fill if fill > most => return Err(Error::Corrupted),
            fill => fill,
        };
        let tail = credit.wrapping_add(fill);
        Ok(Self { tail, head: Some(credit), first: None, fill, overwritten: 0, closed })
    }
}

/// A kind of ring. As a number it is what the header calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u64)]
pub enum Kind {
    /// [`spsc`].
    Spsc = spsc::KIND,
    /// [`bytes`].
    Bytes = bytes::KIND,
    /// [`mpmc`].
    Mpmc = mpmc::KIND,
    /// [`broadcast`].
    Broadcast = broadcast::KIND,
}

impl Kind {
    /// The kind that a header calls so.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        [Self::Spsc, Self::Bytes, Self::Mpmc, Self::Broadcast].into_iter().find(|kind| *kind as u64 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Spsc => "spsc",
            Self::Bytes => "bytes",
            Self::Mpmc => "mpmc",
            Self::Broadcast => "broadcast",
        })
    }
}
