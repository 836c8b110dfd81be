//! The segment: a mapping with a header in front and the caller's data behind.
//!
//! # Safety
//!
//! The data lie inside a mapping that the [`Segment`] owns, from `DATA_OFFSET` on for `layout.data_bytes`:
//! the creator reserved them, and an attacher checked them against the length of the file.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use ring_core::Region;

use crate::create::Unpublished;
use crate::header::Layout;
use crate::mapping::Mapping;
use crate::name::Name;
use crate::options::Lock;
use crate::place::Places;
use crate::report::{Locked, Report};
use crate::{Descriptor, Errno, Error, Options, sys};

/// Shared memory that is ready: a region for a ring whose other side is in another process.
///
/// Dropping it ends this process's mapping. A named segment stays, for others and for later, until somebody
/// [`unlink`](Self::unlink)s it; an anonymous one goes with its last user.
///
/// After a `fork` the child has the mapping too, at the same address, without the lock in memory, unless
/// [`across_forks`](Options::across_forks) says otherwise. Of a ring
/// in it, the handles that the child got a copy of are still the parent's: the child must leave them alone.
///
/// # Who can spoil it
///
/// An anonymous segment is sealed: nobody can truncate it, whoever has its descriptor. A named one can be
/// truncated by its owner and by whoever else can write to its file; then the kernel kills whoever touches what
/// is gone (SIGBUS). Attaching looks at the owner; whom the mode lets in is up to him.
///
/// No seal keeps a peer from punching holes (`fallocate` with FALLOC_FL_PUNCH_HOLE, or MADV_REMOVE). What was
/// there then reads as zero: a ring's handles find it corrupted, empty or full, or find messages of zeros, as
/// a peer could have written them. Pages of the system's own size come back when they are touched. A page of
/// 2 MiB comes back from the pool, and where that is empty the kernel kills who touches it (SIGBUS): let a peer
/// that is not trusted have no huge pages.
#[derive(Debug)]
pub struct Segment {
    mapping: Mapping,
    layout: Layout,
    descriptor: Descriptor,
    name: Option<Name>,
    locked: Locked,
    sealed: bool,
    reserved_bytes: u64,
    fall_back: Option<Errno>,
}

impl Segment {
    /// Prefaults, and locks as the options say.
    pub(crate) fn new(
        options: &Options,
        descriptor: Descriptor,
        mapping: Mapping,
        layout: Layout,
        name: Option<Name>,
    ) -> Result<Self, Error> {
        mapping.populate(layout.page_bytes).map_err(|error| Error::os("prefault the segment", error))?;
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
        let locked = lock(options.lock, &mapping)?;
        let status = sys::status(&descriptor).map_err(|error| Error::os("examine the segment", error))?;
        let reserved_bytes = status.reserved_bytes;
        let sealed = sys::is_sealed(&descriptor);
        Ok(Self { mapping, layout, descriptor, name, locked, sealed, reserved_bytes, fall_back: None })
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
            locked: self.locked,
            sealed: self.sealed,
        }
    }

    /// Removes the name, if it still is this segment's. Of an anonymous segment there is nothing to remove.
    ///
    /// Whoever has the segment mapped keeps it; nobody else can attach any more, so what is in its ring is lost with those
    /// who have. Somebody who removes the name and makes another segment just
    /// between the check and the removal is not noticed: the kernel has no call that does both.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if the name is gone, [`Error::Replaced`] if it belongs to another segment,
    /// [`Error::NoPermission`], [`Error::Os`].
    pub fn unlink(&self) -> Result<(), Error> {
        let Some(name) = &self.name else { return Ok(()) };
        let own = sys::status(&self.descriptor).map_err(|error| Error::os("examine the segment", error))?;
        let mut result = Err(Error::Missing);
        for directory in Places::open()?.all() {
            match directory.identity(name) {
                Some(found) if found == own.identity => return directory.unlink(name),
                Some(_) => result = Err(Error::Replaced),
                None => {}
            }
        }
        result
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

fn lock(choice: Lock, mapping: &Mapping) -> Result<Locked, Error> {
    if choice == Lock::Never {
        return Ok(Locked::NotAsked);
    }
    match mapping.lock() {
        Ok(()) => Ok(Locked::Yes),
        Err(error) if choice == Lock::IfAllowed => Ok(Locked::Refused(error)),
        Err(source) if source.is_lock_limit() => {
            Err(Error::LockedMemoryLimit { bytes: mapping.bytes() as u64, source })
        }
        Err(error) => Err(Error::os("lock the segment in memory", error)),
    }
}

/// A segment that nobody can attach to yet: make a ring in it, then [`publish`](Self::publish) it.
///
/// Dropping it instead removes its name: nothing is left behind. (A forked child that drops its copy removes
/// nothing.) A creator that is killed leaves the name; whoever attaches then gets [`Error::NotReady`].
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
    segment: Segment,
    guard: Option<Unpublished>,
}

impl NewSegment {
    pub(crate) fn new(segment: Segment, guard: Option<Unpublished>) -> Self {
        Self { segment, guard }
    }

    /// Remembers why the pages are not those asked for.
    pub(crate) fn fallen_back(mut self, reason: Errno) -> Self {
        self.segment.fall_back = Some(reason);
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
        self.segment.mapping.header().publish();
        if let Some(guard) = self.guard {
            guard.keep();
        }
        self.segment
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
