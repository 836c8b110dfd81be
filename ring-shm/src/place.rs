//! Where named segments live: /dev/shm, and every hugetlbfs mount with pages that a segment can have.

use core::ffi::CStr;

use crate::header::Header;
use crate::sys::{self, FileSystemKind, Identity, Status};
use crate::{Descriptor, Errno, Error, rest};

mod mounts;

use crate::name::Name;
use crate::pages::PageSize;

const SHM: &CStr = c"/dev/shm";

/// A directory of segments.
#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: Descriptor,
    pages: PageSize,
}

impl Directory {
    /// The mount point of a hugetlbfs, unless this user cannot reach it, or it has pages of another size.
    fn huge(path: &CStr) -> Result<Option<Self>, Errno> {
        let descriptor = match sys::open_directory(path) {
            Err(error) if error.is_exhaustion() => return Err(error),
            result => result.ok(),
        };
        Ok(descriptor.and_then(|descriptor| {
            let found = sys::file_system(&descriptor).ok()?;
            let pages = PageSize::huge(found.page_bytes)?;
            (found.kind == FileSystemKind::Hugetlbfs).then_some(Self { descriptor, pages })
        }))
    }

    /// Size of the pages of what is in it, bytes.
    pub(crate) fn page_bytes(&self) -> u64 {
        sys::file_system(&self.descriptor).map_or(0, |found| found.page_bytes)
    }

    /// What the kernel says of the file of this name.
    pub(crate) fn status(&self, name: &Name) -> Result<Status, Errno> {
        sys::status_in(&self.descriptor, name.as_c_str())
    }

    /// Opens a file to look at it.
    pub(crate) fn open_to_read(&self, name: &Name) -> Result<Descriptor, Errno> {
        sys::open_in_to_read(&self.descriptor, name.as_c_str())
    }

    /// What segments in it are made of.
    pub(crate) fn pages(&self) -> PageSize {
        self.pages
    }

    /// Opens a segment for reading and writing, if there is one.
    pub(crate) fn open(&self, name: &Name) -> Result<Option<Descriptor>, Error> {
        match sys::open_in(&self.descriptor, name.as_c_str()) {
            Ok(descriptor) => Ok(Some(descriptor)),
            Err(Errno::NOENT) => Ok(None),
            // A directory that this user may not look into has no segments for him.
            Err(Errno::ACCES) if self.identity(name).is_none() => Ok(None),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => Err(Error::NotSharedMemory),
            Err(error) => Err(Error::os("open the segment for reading and writing", error)),
        }
    }

    /// Makes a file that must not exist yet.
    pub(crate) fn create(&self, name: &Name, mode: u32) -> Result<Descriptor, Errno> {
        sys::create_in(&self.descriptor, name.as_c_str(), mode)
    }

    /// Gives a file another name, which must not exist yet.
    pub(crate) fn rename(&self, from: &Name, to: &Name) -> Result<(), Errno> {
        sys::rename_in(&self.descriptor, from.as_c_str(), to.as_c_str())
    }

    /// Shows `see` every name in it that a segment can have.
    pub(crate) fn each_name(&self, mut see: impl FnMut(&Name)) -> Result<(), Errno> {
        sys::each_name(&self.descriptor, |name| {
            if let Some(name) = name.to_str().ok().and_then(|name| Name::of_file(name).ok()) {
                see(&name);
            }
        })
    }

    /// Which file has the name, if any.
    pub(crate) fn identity(&self, name: &Name) -> Option<Identity> {
        sys::status_in(&self.descriptor, name.as_c_str()).map(|status| status.identity).ok()
    }

    pub(crate) fn unlink(&self, name: &Name) -> Result<(), Error> {
        sys::unlink_in(&self.descriptor, name.as_c_str()).map_err(|error| match error {
            Errno::NOENT => Error::Missing,
            error => Error::os("unlink the segment", error),
        })
    }
}

/// Shows `accept` every directory that a name may be in, until it takes one.
///
/// One after another, so that there may be any number of them. The same one may come twice.
pub(crate) fn visit<T>(mut accept: impl FnMut(Directory) -> Option<T>) -> Result<Option<T>, Error> {
    let shm = sys::open_directory(SHM).map_err(|error| Error::os("open /dev/shm", error))?;
    if let Some(taken) = accept(Directory { descriptor: shm, pages: PageSize::Base }) {
        return Ok(Some(taken));
    }
    let taken = mounts::find_mount(b"hugetlbfs", |path| match Directory::huge(path) {
        Ok(directory) => directory.and_then(&mut accept).map(Ok),
        Err(error) => Some(Err(error)),
    });
    taken.and_then(Option::transpose).map_err(|error| Error::os("look for hugetlbfs mounts", error))
}

/// Opens a segment wherever it is.
pub(crate) fn find(name: &Name) -> Result<Option<Descriptor>, Error> {
    visit(|directory| directory.open(name).transpose())?.transpose()
}

/// Whether something other than `own` has the name, anywhere. What a killed creator left is removed.
pub(crate) fn is_taken(name: &Name, own: Option<Identity>) -> Result<bool, Error> {
    let taken = visit(|directory| {
        let is_other = directory.identity(name).is_some_and(|found| Some(found) != own);
        (is_other && !rest::remove(&directory, name)).then_some(())
    })?;
    Ok(taken.is_some())
}

/// Removes the name of a segment, whoever uses it.
///
/// Whoever has the segment mapped keeps it; the memory is freed when the last of them is gone. A program that wants its own
/// segment gone and no newer one uses [`Segment::unlink`]; one that wants gone what nobody uses, [`Listed::clean`].
/// A file that is no segment stays.
///
/// # Errors
///
/// [`Error::BadName`], [`Error::Missing`], [`Error::WrongMagic`] or [`Error::NotSharedMemory`] if the file is no segment,
/// [`Error::NoPermission`] if this user may not look at the file, or the directory does not let him remove it (in
/// /dev/shm: unless it is his own), [`Error::Os`].
///
/// ```
/// use ring_shm::{Error, Options, unlink};
///
/// # let name = format!("doc-unlink-{}", std::process::id());
/// let segment = Options::new().create(&name, 4096)?.publish();
/// unlink(&name)?;
/// assert_eq!(unlink(&name), Err(Error::Missing));
/// # Ok::<(), Error>(())
/// ```
///
/// [`Segment::unlink`]: crate::Segment::unlink
/// [`Listed::clean`]: crate::Listed::clean
pub fn unlink(name: &str) -> Result<(), Error> {
    let name = Name::new(name)?;
    let mut result = Err(Error::Missing);
    let failed = visit(|directory| {
        directory.identity(&name)?;
        result = check_magic(&directory, &name).and_then(|()| directory.unlink(&name));
        result.err()
    })?;
    failed.map_or(result, Err)
}

/// Whether a file begins as a segment does.
fn check_magic(directory: &Directory, name: &Name) -> Result<(), Error> {
    let descriptor = directory.open_to_read(name).map_err(|error| match error {
        Errno::NOENT => Error::Missing,
        Errno::LOOP | Errno::ISDIR | Errno::NXIO => Error::NotSharedMemory,
        error => Error::os("open the segment to look at it", error),
    })?;
    let header = Header::of_file(&descriptor).map_err(|error| match error {
        Errno::ISDIR => Error::NotSharedMemory,
        error => Error::os("read the header", error),
    })?;
    header.check_magic().map_err(|found| Error::WrongMagic { found })
}
