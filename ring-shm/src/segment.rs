//! The segment: a mapping with a header in front and the caller's data behind.
//!
//! # Safety
//!
//! The data lie inside a mapping that the [`Segment`] owns, from `DATA_OFFSET` on for `layout.data_bytes`:
//! the creator reserved them, and an attacher checked them against the length of the file.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ptr::NonNull;

use ring_core::{Inspector, Owner, Region, Role};

use crate::claim::{self, Claim, Locks, Presence};
use crate::create::Unpublished;
use crate::header::Layout;
use crate::mapping::Mapping;
use crate::name::Name;
use crate::options::Lock;
use crate::place;
use crate::report::{FallBack, Locked, Nodes, Report};
use crate::{Descriptor, Errno, Error, Options, sys};

/// Shared memory that is ready: a region for a ring whose other side is in another process.
///
/// Dropping it ends this process's mapping. A named segment stays, for others and for later, until somebody
/// [`unlink`](Self::unlink)s it; an anonymous one goes with its last user.
///
/// After a `fork` the child has the mapping too, at the same address, without the lock in memory, unless
/// [`across_forks`](Options::across_forks) says otherwise. Of a ring in it, the handles that the child got a copy of are
/// still the parent's: the child must leave them alone.
///
/// # Who can spoil it
///
/// An anonymous segment is sealed: nobody can truncate it, whoever has its descriptor. A named one can be
/// truncated by its owner and by whoever else can write to its file; then the kernel kills whoever touches what
/// is gone (SIGBUS). Attaching looks at the owner; whom the mode lets in is up to him.
///
/// No seal keeps a peer from punching holes (`fallocate` with FALLOC_FL_PUNCH_HOLE, or MADV_REMOVE). What was
/// there then reads as zero: a ring's handles find it corrupted, empty or full, or find messages of zeros, as
/// a peer could have written them. Pages of the system's own size come back when they are touched. A huge page
/// comes back from the pool, and where that is empty the kernel kills who touches it (SIGBUS): let a peer
/// that is not trusted have no huge pages.
#[derive(Debug)]
pub struct Segment {
    mapping: Mapping,
    layout: Layout,
    descriptor: Descriptor,
    name: Option<Name>,
    /// What was asked for.
    options: Options,
    locked: Locked,
    sealed: bool,
    reserved_bytes: u64,
    fall_back: FallBack,
}

impl Segment {
    /// Prefaults and locks as the options say.
    pub(crate) fn new(
        options: &Options,
        descriptor: Descriptor,
        mapping: Mapping,
        layout: Layout,
        name: Option<Name>,
    ) -> Result<Self, Error> {
        if options.prefault {
            mapping.populate(layout.page_bytes).map_err(|error| Error::os("prefault the segment", error))?;
        }
        if !options.in_core_dumps {
            mapping
                .leave_out_of_core_dumps()
                .map_err(|error| Error::os("leave the segment out of core dumps", error))?;
        }
        if !options.across_forks {
            mapping
                .leave_out_of_forks()
                .map_err(|error| Error::os("keep the segment from children", error))?;
        }
        let locked = lock(options, &mapping)?;
        let status = sys::status(&descriptor).map_err(|error| Error::os("examine the segment", error))?;
        let reserved_bytes = status.reserved_bytes;
        let sealed = sys::is_sealed(&descriptor);
        let (options, fall_back) = (*options, FallBack::default());
        Ok(Self { mapping, layout, descriptor, name, options, locked, sealed, reserved_bytes, fall_back })
    }

    /// The name, without a slash; `None` for an anonymous segment.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// What was obtained.
    ///
    /// ```
    /// use ring_shm::{Locked, Lock, Options};
    ///
    /// let segment = Options::new().lock(Lock::Never).create_anonymous(10_000)?.publish();
    /// let report = segment.report();
    /// assert_eq!(report.data_bytes, 10_000);
    /// assert_eq!(report.mapped_bytes, 10_128_u64.next_multiple_of(report.page_bytes));
    /// assert_eq!(report.locked, Locked::NotAsked);
    /// println!("{report}");
    /// # Ok::<(), ring_shm::Error>(())
    /// ```
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            name: self.name,
            address: self.base().as_ptr().addr(),
            data_bytes: self.layout.data_bytes as u64,
            mapped_bytes: self.mapping.bytes() as u64,
            reserved_bytes: self.reserved_bytes,
            page_bytes: self.layout.page_bytes as u64,
            fall_back: self.fall_back,
            nodes: self.nodes(),
            prefaulted: self.options.prefault,
            locked: self.locked,
            in_core_dumps: self.options.in_core_dumps,
            across_forks: self.options.across_forks,
            sealed: self.sealed,
        }
    }

    #[cfg(feature = "std")]
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed
    }

    fn nodes(&self) -> Nodes {
        let Some(node) = self.options.numa_node else { return Nodes::NotAsked };
        let (mut there, mut elsewhere, mut absent) = (0, 0, 0);
        let count = |found| match found {
            Some(found) if found == node => there += 1,
            Some(_) => elsewhere += 1,
            None => absent += 1,
        };
        match self.mapping.locate(self.layout.page_bytes, count) {
            Ok(()) => Nodes::Counted { node, there, elsewhere, absent },
            Err(error) => Nodes::Unknown(error),
        }
    }

    /// Removes the name, if it still is this segment's. Of an anonymous segment there is nothing to remove.
    ///
    /// Whoever has the segment mapped keeps it; nobody else can attach any more, so what is in its ring is lost with those
    /// who have. Somebody who removes the name and makes another segment just between the check and the removal is not
    /// noticed: the kernel has no call that does both.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if the name is gone, [`Error::Replaced`] if it belongs to another segment,
    /// [`Error::NoPermission`], [`Error::Os`].
    pub fn unlink(&self) -> Result<(), Error> {
        let Some(name) = &self.name else { return Ok(()) };
        let own = sys::status(&self.descriptor).map_err(|error| Error::os("examine the segment", error))?;
        let mut missing = Error::Missing;
        let removed = place::visit(|directory| match directory.identity(name)? {
            found if found == own.identity => Some(directory.unlink(name)),
            _ => {
                missing = Error::Replaced;
                None
            }
        })?;
        removed.unwrap_or(Err(missing))
    }

    /// A descriptor of this segment that a program started by `exec` keeps, and, if the segment is anonymous,
    /// can attach to.
    ///
    /// The segment's own descriptor is close-on-exec. This one is inherited by *every* program that the
    /// process starts while it is open: make it just before, drop it just after. The child learns its number
    /// as an argument and takes it with [`Descriptor::from_raw`]. With `std`, giving it to the child as
    /// standard input does without unsafe code:
    ///
    /// ```no_run
    /// # #[cfg(feature = "std")] {
    /// use core::time::Duration;
    /// use ring_shm::Options;
    /// use std::os::fd::{AsFd, OwnedFd};
    /// use std::process::Command;
    ///
    /// // The parent:
    /// let segment = Options::new().create_anonymous(1 << 20)?.publish();
    /// let child = Command::new("child").stdin(OwnedFd::from(segment.inheritable()?)).spawn()?;
    ///
    /// // The child:
    /// let descriptor = std::io::stdin().as_fd().try_clone_to_owned()?;
    /// let segment = Options::new().attach_fd(descriptor, Duration::from_secs(1))?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Os`] if the process has no free descriptor.
    pub fn inheritable(&self) -> Result<Descriptor, Error> {
        sys::duplicate_for_child(&self.descriptor)
            .map_err(|error| Error::os("duplicate the descriptor", error))
    }

    /// The segment's own descriptor, close-on-exec.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Claims a role of the ring in the segment, to take it through the [`Claim`].
    ///
    /// # Errors
    ///
    /// [`Error::RoleTaken`], [`Error::NoSuchRole`], [`Error::Ring`] if there is no ring, [`Error::NoPermission`] if the
    /// segment's mode does not let this user open it once more, [`Error::Os`]. Without /proc [`Error::NoProc`] if the
    /// segment is anonymous, else [`Error::Missing`] or [`Error::Replaced`] if it has lost its name.
    pub fn claim(self: &Arc<Self>, role: Role) -> Result<Claim, Error> {
        Claim::new(self, role)
    }

    /// What the word of a role's owner says: how often a handle took the role, and whose that was last.
    ///
    /// The incarnation rises each time: of two looks between which it has changed the other side has restarted.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRole`], [`Error::Ring`] if there is no ring.
    pub fn owner(&self, role: Role) -> Result<Owner, Error> {
        Inspector::new(self)?.owner(role).ok_or(Error::NoSuchRole { role })
    }

    /// Whether the owner of a role is alive.
    ///
    /// # Errors
    ///
    /// As for [`owner`](Self::owner).
    pub fn presence(&self, role: Role) -> Result<Presence, Error> {
        Ok(claim::presence(self, role, self.owner(role)?))
    }

    /// Who is gone of the owners of roles, for who has none itself.
    #[must_use]
    pub fn liveness(self: &Arc<Self>) -> Locks {
        Locks::of(self)
    }

    /// The file once more, on a description of its own.
    pub(crate) fn open_again(&self) -> Result<Descriptor, Error> {
        let source = match sys::open_again(&self.descriptor) {
            Ok(descriptor) => return Ok(descriptor),
            Err(error @ Errno::NOENT) => error,
            Err(error) => return Err(Error::os("open the segment once more", error)),
        };
        let Some(name) = &self.name else { return Err(Error::NoProc { source }) };
        let Some(descriptor) = place::find(name)? else { return Err(Error::Missing) };
        let examine =
            |descriptor| sys::status(descriptor).map_err(|error| Error::os("examine the segment", error));
        match examine(&descriptor)?.identity == examine(&self.descriptor)?.identity {
            true => Ok(descriptor),
            false => Err(Error::Replaced),
        }
    }
}

// SAFETY: the mapping neither moves nor shrinks while the segment lives (where a file was truncated, an access
// ends the process); the kernel zeroed it, it can be read and written, its data begin on a multiple of 128 (see
// the static assertions in header.rs), and apart from Region nothing hands out a pointer to them.
unsafe impl Region for Segment {
    fn base(&self) -> NonNull<u8> {
        self.mapping.data()
    }

    fn bytes(&self) -> usize {
        self.layout.data_bytes
    }
}

fn lock(options: &Options, mapping: &Mapping) -> Result<Locked, Error> {
    if options.lock == Lock::Never {
        return Ok(Locked::NotAsked);
    }
    // To lock all of it would prefault it.
    match mapping.lock(options.prefault) {
        Ok(()) => Ok(Locked::Yes),
        Err(error) if options.lock == Lock::IfAllowed => Ok(Locked::Refused(error)),
        Err(source) if source.is_lock_limit() => {
            Err(Error::LockedMemoryLimit { bytes: mapping.bytes() as u64, source })
        }
        Err(error) => Err(Error::os("lock the segment in memory", error)),
    }
}

/// A segment that nobody can attach to yet: make a ring in it, then [`publish`](Self::publish) it.
///
/// Dropping it instead removes its name: nothing is left behind. (A forked child that drops its copy removes
/// nothing.) What a killed creator leaves goes when somebody creates a segment again; whoever attaches to it gets
/// [`Error::NotReady`].
///
/// ```
/// use ring_shm::{Error, Options};
///
/// # let name = format!("doc-new-segment-{}", std::process::id());
/// let new = Options::new().create(&name, 4096)?;
/// assert_eq!(Options::new().create(&name, 4096).unwrap_err(), Error::Exists);
/// drop(new);
/// assert_eq!(ring_shm::unlink(&name), Err(Error::Missing));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct NewSegment {
    /// Dropped first: as long as the segment is used, nobody else takes its name for a rest.
    guard: Option<Unpublished>,
    segment: Segment,
}

impl NewSegment {
    pub(crate) fn new(segment: Segment, guard: Option<Unpublished>) -> Self {
        Self { guard, segment }
    }

    /// Remembers why the pages are not those asked for.
    pub(crate) fn fallen_back(mut self, reasons: FallBack) -> Self {
        self.segment.fall_back = reasons;
        self
    }

    /// What was obtained.
    #[must_use]
    pub fn report(&self) -> Report {
        self.segment.report()
    }

    /// Lets others attach. They see everything that was written to the data before.
    #[must_use]
    pub fn publish(self) -> Segment {
        open_up(&self.segment, self.guard);
        self.segment
    }

    /// As [`publish`](Self::publish), once `prepare` has succeeded.
    pub(crate) fn publish_after<T>(
        self,
        prepare: impl FnOnce(&Arc<Segment>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let segment = Arc::new(self.segment);
        // Declared last, so dropped first where this fails: as in the drop of `self`.
        let guard = self.guard;
        let prepared = prepare(&segment)?;
        open_up(&segment, guard);
        Ok(prepared)
    }
}

fn open_up(segment: &Segment, guard: Option<Unpublished>) {
    segment.mapping.header().publish();
    if let Some(guard) = guard {
        guard.keep();
    }
}

// SAFETY: the segment's own bytes.
unsafe impl Region for NewSegment {
    fn base(&self) -> NonNull<u8> {
        self.segment.base()
    }

    fn bytes(&self) -> usize {
        self.segment.bytes()
    }
}

#[cfg(feature = "std")]
impl std::os::fd::AsFd for Segment {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
