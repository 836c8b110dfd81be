//! Creating: exclusive, reserved to the last byte, and undone if anything fails.

use core::ffi::c_int;

use crate::available::available_bytes;
use crate::header::Layout;
use crate::mapping::Mapping;
use crate::name::Name;
use crate::options::Pages;
use crate::place::{Directory, HUGE_PAGE_BYTES, Places};
use crate::segment::{NewSegment, Segment};
use crate::sys::{self, FileSystemKind, Identity};
use crate::{Descriptor, Errno, Error, Options};

/// What the kernel shows for a segment without a name, in /proc/PID/maps say.
const ANONYMOUS: &core::ffi::CStr = c"ring-shm";

/// The file of a segment that nobody else can use yet. Its name is removed on drop, by the process that made
/// it.
#[derive(Debug)]
pub(crate) struct Unpublished {
    directory: Directory,
    name: Name,
    identity: Identity,
    creator: c_int,
}

impl Unpublished {
    fn new(directory: Directory, name: Name, descriptor: &Descriptor) -> Result<Self, Error> {
        match sys::status(descriptor) {
            Ok(status) => Ok(Self { directory, name, identity: status.identity, creator: sys::process_id() }),
            Err(error) => {
                let _ = directory.unlink(&name);
                Err(Error::os("examine the new segment", error))
            }
        }
    }

    /// Leaves the name to whoever attaches.
    pub(crate) fn keep(mut self) {
        // No process has this number.
        self.creator = 0;
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        if self.creator == sys::process_id() && self.directory.identity(&self.name) == Some(self.identity) {
            // A name that cannot be removed is found by the next creator, who can tell the user.
            let _ = self.directory.unlink(&self.name);
        }
    }
}

pub(crate) fn named(options: &Options, name: &str, bytes: usize) -> Result<NewSegment, Error> {
    let name = Name::new(name)?;
    with_fall_back(options, |huge| {
        let places = Places::open()?;
        let (descriptor, guard) = create_file(options, places, name, bytes, huge)?;
        fill(options, descriptor, Some((name, guard)), bytes, huge)
    })
}

pub(crate) fn anonymous(options: &Options, bytes: usize) -> Result<NewSegment, Error> {
    with_fall_back(options, |huge| {
        let descriptor = sys::anonymous_file(ANONYMOUS, huge).map_err(|error| match error {
            Errno::MFILE | Errno::NFILE => Error::os("make an anonymous file", error),
            source if huge => Error::NoHugePages { bytes: bytes as u64, source },
            error => Error::os("make an anonymous file", error),
        })?;
        fill(options, descriptor, None, bytes, huge)
    })
}

/// Tries with huge pages if they are asked for, then without if that is allowed.
fn with_fall_back(
    options: &Options,
    mut make: impl FnMut(bool) -> Result<NewSegment, Error>,
) -> Result<NewSegment, Error> {
    match options.pages {
        Pages::Base => make(false),
        Pages::Huge2MiBRequired => make(true),
        Pages::Huge2MiBIfAvailable => match make(true) {
            Err(Error::NoHugePages { source, .. }) => make(false).map(|new| new.fallen_back(source)),
            result => result,
        },
    }
}

fn create_file(
    options: &Options,
    places: Places,
    name: Name,
    bytes: usize,
    huge: bool,
) -> Result<(Descriptor, Unpublished), Error> {
    let sort = |error| match error {
        Errno::EXIST => Error::Exists,
        Errno::ACCES | Errno::PERM | Errno::ROFS if huge => {
            Error::NoHugePages { bytes: bytes as u64, source: error }
        }
        Errno::NOSPC | Errno::NOMEM => Error::NoSpace { bytes: bytes as u64, source: error },
        error => Error::os("create a file for the segment", error),
    };
    let directory = match (&places.huge, huge) {
        (Some(directory), true) => directory,
        (None, true) => return Err(Error::NoHugePages { bytes: bytes as u64, source: Errno::NODEV }),
        (_, false) => &places.shm,
    };
    let descriptor = directory.create(&name, options.mode).map_err(sort)?;
    // Looked at after the file was made: of two creators in different places at least one sees the other.
    let is_ambiguous = places.is_ambiguous(&name);
    let directory = if huge { places.huge.unwrap_or(places.shm) } else { places.shm };
    let guard = Unpublished::new(directory, name, &descriptor)?;
    if is_ambiguous {
        return Err(Error::Exists);
    }
    Ok((descriptor, guard))
}

/// Gives a new file its memory and its header.
fn fill(
    options: &Options,
    descriptor: Descriptor,
    named: Option<(Name, Unpublished)>,
    bytes: usize,
    huge: bool,
) -> Result<NewSegment, Error> {
    let (name, guard) = named.unzip();
    let found = sys::file_system(&descriptor).map_err(|error| Error::os("examine the new segment", error))?;
    let is_expected = match found.kind {
        FileSystemKind::Tmpfs => !huge,
        FileSystemKind::Hugetlbfs => huge && found.page_bytes == HUGE_PAGE_BYTES,
        FileSystemKind::Other => false,
    };
    if !is_expected {
        return Err(Error::NotSharedMemory);
    }
    let no_space = |source| match huge {
        true => Error::NoHugePages { bytes: bytes as u64, source },
        false => Error::NoSpace { bytes: bytes as u64, source },
    };
    let layout = usize::try_from(found.page_bytes)
        .ok()
        .and_then(|page_bytes| Layout::new(bytes, page_bytes))
        .ok_or(no_space(Errno::FBIG))?;
    if !huge && !fits_memory(&layout) {
        return Err(no_space(Errno::NOSPC));
    }
    set_mode(options, &descriptor)?;
    let sort = |operation, error| match error {
        Errno::NOSPC | Errno::NOMEM | Errno::FBIG => no_space(error),
        error => Error::os(operation, error),
    };
    // Mapped first: of huge pages that takes all from the pool or none, and not page by page till it is
    // empty.
    let mapping =
        Mapping::new(&descriptor, layout.file_bytes).map_err(|error| sort("map the new segment", error))?;
    check_file_limit(bytes, &layout)?;
    sys::reserve(&descriptor, layout.file_bytes).map_err(|error| sort("reserve memory", error))?;
    if name.is_none() {
        sys::seal(&descriptor).map_err(|error| Error::os("seal the segment", error))?;
    }
    mapping.header().write(&layout);
    let segment = Segment::new(options, descriptor, mapping, layout, name)?;
    Ok(NewSegment::new(segment, guard))
}

/// The mode asked for, without what the umask took away, or what the kernel gives a memfd.
fn set_mode(options: &Options, descriptor: &Descriptor) -> Result<(), Error> {
    let status = sys::status(descriptor).map_err(|error| Error::os("examine the new segment", error))?;
    if status.mode == options.mode {
        return Ok(());
    }
    sys::set_mode(descriptor, options.mode).map_err(|error| Error::os("set the segment's mode", error))
}

/// Whether this process may make the file so long. The kernel would say no by a signal that kills it, and the
/// name would stay.
fn check_file_limit(bytes: usize, layout: &Layout) -> Result<(), Error> {
    let limit_bytes = sys::file_limit_bytes().map_err(|error| Error::os("examine RLIMIT_FSIZE", error))?;
    match layout.file_bytes as u64 <= limit_bytes {
        true => Ok(()),
        false => Err(Error::NoSpace { bytes: bytes as u64, source: Errno::FBIG }),
    }
}

/// Whether the machine has memory for it. Where it has not, the kernel would take every page there is, also
/// for a file system that claims to have room, and then kill processes that have nothing to do with it.
fn fits_memory(layout: &Layout) -> bool {
    available_bytes().is_none_or(|available_bytes| layout.file_bytes as u64 <= available_bytes)
}
