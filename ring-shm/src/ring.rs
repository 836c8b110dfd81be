//! A ring in a segment of its own, in one call for each side.

use alloc::sync::Arc;
use core::time::Duration;

use ring_core::{Inspector, Kind, Message, Role, broadcast, bytes, mpmc, spsc};

use crate::claim::role_taken;
use crate::wait::Wait;
use crate::{Claim, Descriptor, Error, Locks, NewSegment, Options, Segment, lock};

/// A side of a ring in a segment: a handle of ring-core whose role is claimed.
///
/// | handle | its region |
/// |---|---|
/// | `spsc::Producer<T, Claim>`, `spsc::Consumer<T, Claim>` | [`Claim`] |
/// | `bytes::Producer<Claim>`, `bytes::Consumer<Claim>` | [`Claim`] |
/// | `mpmc::Producer<T, Claim>`, `mpmc::Consumer<T, Claim>` | [`Claim`], of any free place |
/// | `broadcast::Producer<T, Claim>` | [`Claim`] |
/// | `broadcast::Consumer<T, Arc<Segment>>`, which joins at the newest message | `Arc<`[`Segment`]`>`, since it has no role |
///
/// `handle.region()` leads to the segment: to its [`report`](Segment::report), to whether the other side is
/// [present](Segment::presence), to [`unlink`](Segment::unlink).
pub trait Side: sealed::Side<Shape = Self::Layout> {
    /// The shape of the ring, such as [`spsc::Layout`].
    type Layout: sealed::Shape;
}

impl<S: sealed::Side> Side for S {
    type Layout = S::Shape;
}

impl Options {
    /// Makes a named segment with a ring in it, and takes a side of the ring.
    ///
    /// The segment stays when its users are gone, for who comes later: see [`Segment::unlink`] and the command
    /// `ring-shm clean`.
    ///
    /// ```
    /// use core::time::Duration;
    /// use ring_core::spsc;
    /// use ring_shm::{Options, Presence};
    ///
    /// # let name = format!("doc-create-ring-{}", std::process::id());
    /// // One process:
    /// let layout = spsc::Layout::new(1024)?;
    /// let mut quotes: spsc::Producer<u64, _> = Options::new().create_ring(&name, &layout)?;
    /// quotes.try_push(7).unwrap();
    ///
    /// // Another:
    /// let mut consumer: spsc::Consumer<u64, _> = Options::new().attach_ring(&name, Duration::from_secs(5))?;
    /// assert_eq!(consumer.try_pop(), Ok(7));
    /// consumer.region().unlink()?;
    /// # Ok::<(), ring_shm::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create), [`Error::Ring`].
    pub fn create_ring<S: Side>(&self, name: &str, layout: &S::Layout) -> Result<S, Error> {
        make(self.create(name, bytes_of::<S>(layout))?, layout)
    }

    /// The same in an anonymous segment. Others reach it through its descriptor ([`Segment::inheritable`]) or from a
    /// [`Server`](crate::Server).
    ///
    /// # Errors
    ///
    /// As for [`create_anonymous`](Self::create_anonymous), [`Error::Ring`], [`Error::NoProc`].
    pub fn create_anonymous_ring<S: Side>(&self, layout: &S::Layout) -> Result<S, Error> {
        make(self.create_anonymous(bytes_of::<S>(layout))?, layout)
    }

    /// Takes a side of the ring in a named segment: of one who is gone too, and goes on where that one stopped.
    ///
    /// Waits up to `timeout` until the segment is published, and the role is free. With a time-out of zero it looks once.
    ///
    /// # Errors
    ///
    /// As for [`attach`](Self::attach). At the time-out also [`Error::RoleTaken`], and [`Error::Ring`] with
    /// `TooManyParticipants` or `Taken`; at once with any other error of the ring.
    pub fn attach_ring<S: Side>(&self, name: &str, timeout: Duration) -> Result<S, Error> {
        let mut wait = Wait::new(timeout);
        take_side(Arc::new(self.attach(name, timeout)?), &mut wait)
    }

    /// The same with the segment behind a descriptor, which a child inherited.
    ///
    /// # Errors
    ///
    /// As for [`attach_fd`](Self::attach_fd), [`Error::NoProc`], and those of [`attach_ring`](Self::attach_ring).
    pub fn attach_ring_fd<S: Side>(
        &self,
        descriptor: impl Into<Descriptor>,
        timeout: Duration,
    ) -> Result<S, Error> {
        let mut wait = Wait::new(timeout);
        take_side(Arc::new(self.attach_fd(descriptor, timeout)?), &mut wait)
    }

    /// Takes a side of the ring in a named segment, and makes both where there is no such name: for programs that start in
    /// any order, and again after a crash.
    ///
    /// The layout counts where the ring is made. One that is there keeps its depth; messages of another size are an error.
    ///
    /// ```
    /// use core::time::Duration;
    /// use ring_core::{Role, spsc};
    /// use ring_shm::Options;
    ///
    /// # let name = format!("doc-open-ring-{}", std::process::id());
    /// let layout = spsc::Layout::new(1024)?;
    /// for incarnation in 1..=3 {
    ///     let quotes: spsc::Producer<u64, _> = Options::new().open_ring(&name, &layout, Duration::ZERO)?;
    ///     assert_eq!(quotes.region().owner(Role::Producer)?.incarnation, incarnation);
    /// }
    /// ring_shm::unlink(&name)?;
    /// # Ok::<(), ring_shm::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`create_ring`](Self::create_ring) and [`attach_ring`](Self::attach_ring), but for [`Error::Exists`].
    pub fn open_ring<S: Side>(&self, name: &str, layout: &S::Layout, timeout: Duration) -> Result<S, Error> {
        let mut wait = Wait::new(timeout);
        loop {
            match self.create_ring(name, layout) {
                Err(Error::Exists) => {}
                result => return result,
            }
            // Looked at once a round: the name may go, and is made then.
            match self.attach(name, Duration::ZERO) {
                Err(Error::Missing | Error::NotReady { .. }) if wait.again() => {}
                Err(Error::NotReady { .. }) => return Err(Error::NotReady { timeout }),
                result => return take_side(Arc::new(result?), &mut wait),
            }
        }
    }
}

fn bytes_of<S: Side>(layout: &S::Layout) -> usize {
    sealed::Shape::bytes(layout)
}

fn make<S: Side>(new: NewSegment, layout: &S::Layout) -> Result<S, Error> {
    sealed::Shape::init(layout, &new)?;
    new.publish_after(|segment| S::attach(segment, &mut |role| segment.claim(role)))
}

/// The kind of the ring that a side is of.
#[cfg(feature = "std")]
pub(crate) fn kind_of<S: Side>() -> Kind {
    <S::Layout as sealed::Shape>::KIND
}

/// Whether the ring is one for this side, before it waits for a role of another one.
pub(crate) fn check_ring<S: Side>(segment: &Segment) -> Result<(), Error> {
    let inspector = Inspector::new(segment)?;
    let kind = <S::Layout as sealed::Shape>::KIND;
    let (bytes, align) = <S::Layout as sealed::Shape>::ELEMENT;
    let wrong = match (inspector.kind() as u64, inspector.element_bytes(), inspector.element_align()) {
        (found, _, _) if found != kind as u64 => ring_core::Error::WrongKind { found, expected: kind as u64 },
        (_, found, _) if found != bytes as u64 => {
            ring_core::Error::WrongElementSize { found, expected: bytes as u64 }
        }
        (_, _, found) if found != align as u64 => {
            ring_core::Error::WrongElementAlign { found, expected: align as u64 }
        }
        _ => return Ok(()),
    };
    Err(wrong.into())
}

/// Takes a side once it is free.
fn take_side<S: Side>(segment: Arc<Segment>, wait: &mut Wait) -> Result<S, Error> {
    check_ring::<S>(&segment)?;
    loop {
        match S::attach(&segment, &mut |role| claim_if_free(&segment, role)) {
            Err(error) if error.is_occupied() && wait.again() => {}
            result => return result,
        }
    }
}

/// As [`Segment::claim`], and cheap where the role is taken: an mpmc ring has a thousand.
fn claim_if_free(segment: &Arc<Segment>, role: Role) -> Result<Claim, Error> {
    match lock::is_role_taken(segment.descriptor(), role) {
        Ok(true) => Err(role_taken(role, segment.owner(role)?)),
        _ => segment.claim(role),
    }
}

/// What a side does with the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Push,
    Pop,
}

impl Wish {
    /// The role where there are two.
    pub(crate) fn role(self) -> Role {
        match self {
            Self::Push => Role::Producer,
            Self::Pop => Role::Consumer,
        }
    }
}

/// How a handle gets the claim for a role.
type ClaimRole<'a> = dyn FnMut(Role) -> Result<Claim, Error> + 'a;

mod sealed {
    use super::{Arc, ClaimRole, Error, Kind, NewSegment, Segment, Wish};

    pub trait Side: Sized {
        type Shape: Shape;

        const WISH: Wish;

        /// Claims the role and attaches.
        fn attach(segment: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error>;
    }

    pub trait Shape {
        const KIND: Kind;

        /// Size and alignment of a message, as the ring's header has them.
        const ELEMENT: (usize, usize);

        fn bytes(&self) -> usize;

        fn init(&self, segment: &NewSegment) -> Result<(), Error>;
    }
}

impl<T: Message> sealed::Side for spsc::Producer<T, Claim> {
    type Shape = spsc::Layout<T>;

    const WISH: Wish = Wish::Push;

    fn attach(_: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error> {
        at_role(Self::WISH, claim, Self::take_over)
    }
}

impl<T: Message> sealed::Side for spsc::Consumer<T, Claim> {
    type Shape = spsc::Layout<T>;

    const WISH: Wish = Wish::Pop;

    fn attach(_: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error> {
        at_role(Self::WISH, claim, Self::take_over)
    }
}

impl sealed::Side for bytes::Producer<Claim> {
    type Shape = bytes::Layout;

    const WISH: Wish = Wish::Push;

    fn attach(_: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error> {
        at_role(Self::WISH, claim, Self::take_over)
    }
}

impl sealed::Side for bytes::Consumer<Claim> {
    type Shape = bytes::Layout;

    const WISH: Wish = Wish::Pop;

    fn attach(_: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error> {
        at_role(Self::WISH, claim, Self::take_over)
    }
}

impl<T: Message> sealed::Side for broadcast::Producer<T, Claim> {
    type Shape = broadcast::Layout<T>;

    const WISH: Wish = Wish::Push;

    fn attach(_: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error> {
        at_role(Self::WISH, claim, Self::take_over)
    }
}

impl<T: Message> sealed::Side for broadcast::Consumer<T, Arc<Segment>> {
    type Shape = broadcast::Layout<T>;

    const WISH: Wish = Wish::Pop;

    fn attach(segment: &Arc<Segment>, _: &mut ClaimRole<'_>) -> Result<Self, Error> {
        Ok(Self::join(Arc::clone(segment))?)
    }
}

impl<T: Message> sealed::Side for mpmc::Producer<T, Claim> {
    type Shape = mpmc::Layout<T>;

    const WISH: Wish = Wish::Push;

    fn attach(segment: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error> {
        at_any_place(segment, claim, Self::take_over)
    }
}

impl<T: Message> sealed::Side for mpmc::Consumer<T, Claim> {
    type Shape = mpmc::Layout<T>;

    const WISH: Wish = Wish::Pop;

    fn attach(segment: &Arc<Segment>, claim: &mut ClaimRole<'_>) -> Result<Self, Error> {
        at_any_place(segment, claim, Self::take_over)
    }
}

/// Takes the one role of a ring that there is for a wish.
fn at_role<H>(
    wish: Wish,
    claim: &mut ClaimRole<'_>,
    take_over: impl FnOnce(Claim, &Locks) -> Result<H, ring_core::Error>,
) -> Result<H, Error> {
    let claim = claim(wish.role())?;
    let liveness = claim.liveness();
    Ok(take_over(claim, &liveness)?)
}

/// Takes the first place of an mpmc ring that nobody has.
fn at_any_place<H>(
    segment: &Arc<Segment>,
    claim: &mut ClaimRole<'_>,
    mut take_over: impl FnMut(Claim, u16, &Locks) -> Result<H, ring_core::Error>,
) -> Result<H, Error> {
    let participants = Inspector::new(&**segment)?.participants();
    for id in 1..=participants {
        match claim(Role::Participant(id)) {
            Err(Error::RoleTaken { .. }) => {}
            Err(error) => return Err(error),
            Ok(claim) => {
                let liveness = claim.liveness();
                match take_over(claim, id, &liveness) {
                    // By a handle without a claim, or somebody clears up there.
                    Err(ring_core::Error::Taken { .. }) => {}
                    result => return Ok(result?),
                }
            }
        }
    }
    Err(ring_core::Error::TooManyParticipants { participants }.into())
}

impl<T: Message> sealed::Shape for spsc::Layout<T> {
    const KIND: Kind = Kind::Spsc;
    const ELEMENT: (usize, usize) = (size_of::<T>(), align_of::<T>());

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn init(&self, segment: &NewSegment) -> Result<(), Error> {
        Ok(self.init(segment)?)
    }
}

impl sealed::Shape for bytes::Layout {
    const KIND: Kind = Kind::Bytes;
    const ELEMENT: (usize, usize) = (1, 8);

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn init(&self, segment: &NewSegment) -> Result<(), Error> {
        Ok(self.init(segment)?)
    }
}

impl<T: Message> sealed::Shape for mpmc::Layout<T> {
    const KIND: Kind = Kind::Mpmc;
    const ELEMENT: (usize, usize) = (size_of::<T>(), align_of::<T>());

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn init(&self, segment: &NewSegment) -> Result<(), Error> {
        Ok(self.init(segment)?)
    }
}

impl<T: Message> sealed::Shape for broadcast::Layout<T> {
    const KIND: Kind = Kind::Broadcast;
    const ELEMENT: (usize, usize) = (size_of::<T>(), align_of::<T>());

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn init(&self, segment: &NewSegment) -> Result<(), Error> {
        Ok(self.init(segment)?)
    }
}
