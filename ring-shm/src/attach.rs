//! Attaching: nothing that the file says is believed before it was checked.

use core::time::Duration;

use crate::header::Header;
use crate::mapping::Mapping;
use crate::name::Name;
use crate::place;
use crate::sys::{self, FileSystemKind, Status};
use crate::wait::Wait;
use crate::{Descriptor, Error, Options, Segment, lock};

pub(crate) fn named(options: &Options, name: &str, timeout: Duration) -> Result<Segment, Error> {
    let name = Name::new(name)?;
    let check_owner = |status: &Status| check_owner(options, status.owner);
    let mut wait = Wait::new(timeout);
    loop {
        // Opened anew each time, since a creator that gave up may be followed by another.
        let not_yet = match place::find(&name)? {
            None => Error::Missing,
            Some(descriptor) => match Candidate::look(&descriptor, check_owner)? {
                None => Error::NotReady { timeout },
                Some(_) if !join_users(&descriptor)? => Error::Missing,
                Some(candidate) => return candidate.take(options, descriptor, Some(name)),
            },
        };
        if !wait.again() {
            return Err(not_yet);
        }
    }
}

pub(crate) fn descriptor(
    options: &Options,
    descriptor: Descriptor,
    timeout: Duration,
) -> Result<Segment, Error> {
    sys::close_on_exec(&descriptor).map_err(|error| Error::os("use the descriptor", error))?;
    // Seals are final and are asked for first: the length that is seen after them stays. A sender who truncates and
    // seals in between gains nothing.
    let sealed = sys::is_sealed(&descriptor);
    let check_seals = |_: &Status| if sealed { Ok(()) } else { Err(Error::NotSealed) };
    let mut wait = Wait::new(timeout);
    loop {
        if let Some(candidate) = Candidate::look(&descriptor, check_seals)? {
            return candidate.take(options, descriptor, None);
        }
        if !wait.again() {
            return Err(Error::NotReady { timeout });
        }
    }
}

/// Maps an open file for who looks and is no user: it neither keeps others from removing the segment nor waits.
pub(crate) fn observe(options: &Options, descriptor: Descriptor, name: Name) -> Result<Segment, Error> {
    match Candidate::look(&descriptor, |status| check_owner(options, status.owner))? {
        Some(candidate) => candidate.take(options, descriptor, Some(name)),
        None => Err(Error::NotReady { timeout: Duration::ZERO }),
    }
}

/// Joins the users of a named segment. False: it was removed because it had none, or is being removed.
fn join_users(descriptor: &Descriptor) -> Result<bool, Error> {
    lock::join_users(descriptor).map_err(|error| Error::os("lock the segment as its user", error))
}

/// Whoever owns a file can truncate it, whatever its mode says, and anybody can make one in /dev/shm first.
fn check_owner(options: &Options, owner: u32) -> Result<(), Error> {
    const ROOT: u32 = 0;
    match owner == ROOT || owner == sys::effective_user() || options.trusted_owner == Some(owner) {
        true => Ok(()),
        false => Err(Error::ForeignOwner { uid: owner }),
    }
}

/// Checks the header of a file that has holes, and so is not to be touched in a mapping.
fn check_header(descriptor: &Descriptor, file_bytes: usize, page_bytes: usize) -> Result<(), Error> {
    let header = Header::of_file(descriptor).map_err(|error| Error::os("read the header", error))?;
    header.read(file_bytes, page_bytes).map(drop)
}

/// A published segment, mapped and checked.
struct Candidate {
    mapping: Mapping,
    layout: crate::header::Layout,
}

impl Candidate {
    /// Looks at an open file; `None` if it may yet become a segment. `check_trust` refuses what somebody who is
    /// not trusted could truncate.
    fn look(
        descriptor: &Descriptor,
        check_trust: impl FnOnce(&Status) -> Result<(), Error>,
    ) -> Result<Option<Self>, Error> {
        const HEADER_BYTES: u64 = size_of::<Header>() as u64;
        let status = sys::status(descriptor).map_err(|error| Error::os("examine the segment", error))?;
        let found = sys::file_system(descriptor).map_err(|error| Error::os("examine the segment", error))?;
        if !status.is_regular || found.kind == FileSystemKind::Other {
            return Err(Error::NotSharedMemory);
        }
        check_trust(&status)?;
        let page_bytes = usize::try_from(found.page_bytes).unwrap_or(0);
        let file_bytes = match status.file_bytes {
            file_bytes if file_bytes < HEADER_BYTES => {
                return Err(Error::TooSmall { file_bytes, needed_bytes: HEADER_BYTES });
            }
            file_bytes => usize::try_from(file_bytes)
                .map_err(|_| Error::NoSpace { bytes: file_bytes, source: crate::Errno::NOMEM })?,
        };
        if status.has_holes() {
            check_header(descriptor, file_bytes, page_bytes)?;
            // A creator reserves all memory before it writes anything: somebody has enlarged the file since, or made
            // the holes.
            return Err(Error::Corrupted { field: "reserved memory", found: status.reserved_bytes });
        }
        let mapping =
            Mapping::new(descriptor, file_bytes).map_err(|error| Error::os("map the segment", error))?;
        let layout = mapping.header().read(file_bytes, page_bytes)?;
        Ok(layout.map(|layout| Self { mapping, layout }))
    }

    fn take(self, options: &Options, descriptor: Descriptor, name: Option<Name>) -> Result<Segment, Error> {
        Segment::new(options, descriptor, self.mapping, self.layout, name)
    }
}
