//! Creating: exclusive, reserved to the last byte, and undone if anything fails.

use core::ffi::c_int;

use crate::available::{available_bytes, available_on_node_bytes};
use crate::header::Layout;
use crate::mapping::Mapping;
use crate::name::Name;
use crate::pages::PageSize;
use crate::place::{self, Directory};
use crate::report::FallBack;
use crate::segment::{NewSegment, Segment};
use crate::sys::{self, FileSystemKind, Identity};
use crate::{Descriptor, Errno, Error, Options, lock, rest};

/// What the kernel shows for a segment without a name, in /proc/PID/maps say.
const ANONYMOUS: &core::ffi::CStr = c"ring-shm";

/// The file of a segment that nobody else can use yet. Its name is removed on drop, by the process that made
/// it.
#[derive(Debug)]
pub(crate) struct Unpublished {
    directory: Directory,
    name: Name,
    /// None: there is nothing to remove.
    identity: Option<Identity>,
    /// Keeps the user lock until the name is removed, whatever has become of the segment: who takes the file for a rest
    /// removes the name, and the next creator's file may have it by the time that it is removed here.
    user: Option<Descriptor>,
    creator: c_int,
}

impl Unpublished {
    /// Makes a file under a temporary name, and is its user.
    fn new(directory: Directory, mode: u32) -> Result<(Descriptor, Self), Errno> {
        let creator = sys::process_id();
        let mut this =
            Self { directory, name: Name::temporary(creator, 0), identity: None, user: None, creator };
        for number in 0..u32::MAX {
            this.name = Name::temporary(creator, number);
            let descriptor = match this.directory.create(&this.name, mode) {
                Err(Errno::EXIST) => continue,
                result => result?,
            };
            this.identity = Some(sys::status(&descriptor)?.identity);
            // Until then it looks like what a killed creator left, and may be removed.
            if lock::join_users(&descriptor)? {
                this.user = Some(sys::duplicate(&descriptor)?);
                return Ok((descriptor, this));
            }
        }
        Err(Errno::EXIST)
    }

    /// Gives the file its own name.
    fn rename(&mut self, name: Name) -> Result<(), Error> {
        while let Err(error) = self.directory.rename(&self.name, &name) {
            match error {
                Errno::EXIST if rest::remove(&self.directory, &name) => {}
                Errno::EXIST => return Err(Error::Exists),
                error => return Err(Error::os("name the new segment", error)),
            }
        }
        self.name = name;
        // Looked at afterwards: of two creators in different places at least one sees the other.
        if place::is_taken(&name, self.identity)? {
            return Err(Error::Exists);
        }
        // From here on the segment is dropped after this.
        self.user = None;
        Ok(())
    }

    /// Leaves the name to whoever attaches.
    pub(crate) fn keep(mut self) {
        self.identity = None;
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        let is_own = self.identity.is_some() && self.directory.identity(&self.name) == self.identity;
        if is_own && self.creator == sys::process_id() {
            // A name that cannot be removed is found by the next creator.
            let _ = self.directory.unlink(&self.name);
        }
    }
}

pub(crate) fn named(options: &Options, name: &str, bytes: usize) -> Result<NewSegment, Error> {
    let name = Name::new(name)?;
    // Looked at before as well: memory for a segment that cannot get its name may be what others lack.
    if place::is_taken(&name, None)? {
        return Err(Error::Exists);
    }
    with_fall_back(options, |pages| {
        let (descriptor, mut file) = create_file(options, bytes, pages)?;
        let segment = fill(options, descriptor, Some(name), bytes, pages)?;
        file.rename(name)?;
        Ok(NewSegment::new(segment, Some(file)))
    })
}

pub(crate) fn anonymous(options: &Options, bytes: usize) -> Result<NewSegment, Error> {
    with_fall_back(options, |pages| {
        let descriptor = sys::anonymous_file(ANONYMOUS, pages).map_err(|error| match error {
            Errno::MFILE | Errno::NFILE => Error::os("make an anonymous file", error),
            source if pages != PageSize::Base => no_room(bytes, pages, source),
            error => Error::os("make an anonymous file", error),
        })?;
        Ok(NewSegment::new(fill(options, descriptor, None, bytes, pages)?, None))
    })
}

/// Tries with the pages that are asked for, then with smaller ones if that is allowed.
fn with_fall_back(
    options: &Options,
    mut make: impl FnMut(PageSize) -> Result<NewSegment, Error>,
) -> Result<NewSegment, Error> {
    let mut reasons = FallBack::default();
    let (preferred, last) = options.pages.sizes();
    for &pages in preferred {
        match make(pages) {
            Err(Error::NoHugePages { source, .. }) => reasons.note(pages, source),
            result => return result.map(|new| new.fallen_back(reasons)),
        }
    }
    make(last).map(|new| new.fallen_back(reasons))
}

fn create_file(options: &Options, bytes: usize, pages: PageSize) -> Result<(Descriptor, Unpublished), Error> {
    // What is said if there is no directory of such pages, or none that this user may write.
    let mut refused = Errno::NODEV;
    let made = place::visit(|directory| {
        if directory.pages() != pages {
            return None;
        }
        rest::remove_temporary(&directory);
        match Unpublished::new(directory, options.mode) {
            Err(error @ (Errno::ACCES | Errno::PERM | Errno::ROFS)) if pages != PageSize::Base => {
                refused = error;
                None
            }
            result => Some(result),
        }
    })?;
    made.unwrap_or(Err(refused)).map_err(|error| match error {
        Errno::ACCES | Errno::PERM | Errno::ROFS | Errno::NODEV if pages != PageSize::Base => {
            no_room(bytes, pages, error)
        }
        Errno::NOSPC | Errno::NOMEM => no_room(bytes, pages, error),
        error => Error::os("create a file for the segment", error),
    })
}

/// There is not enough memory of this kind.
fn no_room(bytes: usize, pages: PageSize, source: Errno) -> Error {
    let bytes = bytes as u64;
    match pages.huge_bytes() {
        Some(page_bytes) => Error::NoHugePages { bytes, page_bytes, source },
        None => Error::NoSpace { bytes, source },
    }
}

/// Gives a new file its memory and its header.
fn fill(
    options: &Options,
    descriptor: Descriptor,
    name: Option<Name>,
    bytes: usize,
    pages: PageSize,
) -> Result<Segment, Error> {
    let found = sys::file_system(&descriptor).map_err(|error| Error::os("examine the new segment", error))?;
    let is_expected = match found.kind {
        FileSystemKind::Tmpfs => pages == PageSize::Base,
        FileSystemKind::Hugetlbfs => pages.huge_bytes() == Some(found.page_bytes),
        FileSystemKind::Other => false,
    };
    if !is_expected {
        return Err(Error::NotSharedMemory);
    }
    let layout = usize::try_from(found.page_bytes)
        .ok()
        .and_then(|page_bytes| Layout::new(bytes, page_bytes))
        .ok_or(no_room(bytes, pages, Errno::FBIG))?;
    if pages == PageSize::Base && !fits_memory(&layout, options.numa_node) {
        return Err(no_room(bytes, pages, Errno::NOSPC));
    }
    set_mode(options, &descriptor)?;
    let sort = |operation, error| match error {
        Errno::NOSPC | Errno::NOMEM | Errno::FBIG => no_room(bytes, pages, error),
        error => Error::os(operation, error),
    };
    // Mapped first: of huge pages that takes all from the pool or none, and not page by page till it is
    // empty.
    let mapping =
        Mapping::new(&descriptor, layout.file_bytes).map_err(|error| sort("map the new segment", error))?;
    check_file_limit(&layout).map_err(|error| sort("examine RLIMIT_FSIZE", error))?;
    let mut options = *options;
    if let Some(node) = options.numa_node {
        bind(&mapping, node, pages).map_err(|error| match error {
            Errno::INVAL => Error::NoSuchNode { node },
            Errno::NOSYS | Errno::PERM => Error::CannotBind { node, source: error },
            error => sort("bind memory to a node", error),
        })?;
        options.prefault |= pages != PageSize::Base;
    }
    sys::reserve(&descriptor, layout.file_bytes).map_err(|error| sort("reserve memory", error))?;
    if name.is_none() {
        sys::seal(&descriptor).map_err(|error| Error::os("seal the segment", error))?;
    }
    mapping.header().write(&layout);
    Segment::new(&options, descriptor, mapping, layout, name)
}

/// Has the memory of a new segment come from one node.
fn bind(mapping: &Mapping, node: u32, pages: PageSize) -> Result<(), Errno> {
    mapping.bind(node)?;
    if pages == PageSize::Base {
        return Ok(());
    }
    // A hugetlbfs does not keep what a mapping is bound to, and would reserve pages of any node: they are made present
    // here, each of them.
    mapping.allocate().map_err(|error| match error {
        // The node's pool is empty, whatever the others hold.
        Errno::FAULT => Errno::NOSPC,
        // Linux before 5.14 can only be made to by touching, which kills where the pool is empty.
        Errno::INVAL => Errno::NOSYS,
        error => error,
    })
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
fn check_file_limit(layout: &Layout) -> Result<(), Errno> {
    match layout.file_bytes as u64 <= sys::file_limit_bytes()? {
        true => Ok(()),
        false => Err(Errno::FBIG),
    }
}

/// Whether the machine, and the node asked for, have memory for it. Where they have not, the kernel would take every
/// page there is, also for a file system that claims to have room, and then kill processes that have nothing to do
/// with it.
fn fits_memory(layout: &Layout, node: Option<u32>) -> bool {
    let fits = |available_bytes| layout.file_bytes as u64 <= available_bytes;
    available_bytes().is_none_or(fits) && node.and_then(available_on_node_bytes).is_none_or(fits)
}
