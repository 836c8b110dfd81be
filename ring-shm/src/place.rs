//! Where named segments live: /dev/shm, and the first hugetlbfs mount with pages of 2 MiB.

use core::ffi::CStr;

use crate::sys::{self, FileSystemKind, Identity};
use crate::{Descriptor, Errno, Error};

mod mounts;

use crate::name::Name;

const SHM: &CStr = c"/dev/shm";
pub(crate) const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// What is there under a name.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    /// A file that this user may not open, or not yet: its creator is still to set its mode.
    Unfinished,
    File(Descriptor),
}

/// A directory of segments.
#[derive(Debug)]
pub(crate) struct Directory(Descriptor);

impl Directory {
    /// Opens a segment for reading and writing.
    pub(crate) fn open(&self, name: &Name) -> Result<Found, Error> {
        let open = || sys::open_in(&self.0, name.as_c_str());
        let result = match open() {
            Err(Errno::ACCES) => match sys::status_in(&self.0, name.as_c_str()) {
                // A directory that this user may not look into has no segments for him.
                Err(_) => return Ok(Found::Nothing),
                // A creator sets first the mode, then the length.
                Ok(status) if status.is_regular && status.file_bytes == 0 => return Ok(Found::Unfinished),
                // The mode may have been set between the two looks.
                Ok(_) => open(),
            },
            result => result,
        };
        match result {
            Ok(descriptor) => Ok(Found::File(descriptor)),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => Err(Error::NotSharedMemory),
            Err(error) => Err(Error::os("open the segment for reading and writing", error)),
        }
    }

    /// Makes a file that must not exist yet.
    pub(crate) fn create(&self, name: &Name, mode: u32) -> Result<Descriptor, Errno> {
        sys::create_in(&self.0, name.as_c_str(), mode)
    }

    /// Which file has the name, if any.
    pub(crate) fn identity(&self, name: &Name) -> Option<Identity> {
        sys::status_in(&self.0, name.as_c_str()).map(|status| status.identity).ok()
    }

    pub(crate) fn unlink(&self, name: &Name) -> Result<(), Error> {
        sys::unlink_in(&self.0, name.as_c_str()).map_err(|error| match error {
            Errno::NOENT => Error::Missing,
            error => Error::os("unlink the segment", error),
        })
    }
}

/// All directories that a name may be in.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) shm: Directory,
    pub(crate) huge: Option<Directory>,
}

impl Places {
    pub(crate) fn open() -> Result<Self, Error> {
        let shm = sys::open_directory(SHM).map_err(|error| Error::os("open /dev/shm", error))?;
        let huge = mounts::find_mount(b"hugetlbfs", |path| {
            let directory = sys::open_directory(path).ok()?;
            let found = sys::file_system(&directory).ok()?;
            let fits = found.kind == FileSystemKind::Hugetlbfs && found.page_bytes == HUGE_PAGE_BYTES;
            fits.then_some(Directory(directory))
        });
        Ok(Self { shm: Directory(shm), huge })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Directory> {
        [Some(&self.shm), self.huge.as_ref()].into_iter().flatten()
    }

    /// Opens a segment wherever it is.
    pub(crate) fn find(&self, name: &Name) -> Result<Found, Error> {
        for directory in self.all() {
            match directory.open(name)? {
                Found::Nothing => {}
                found => return Ok(found),
            }
        }
        Ok(Found::Nothing)
    }

    /// Whether both directories have the name.
    pub(crate) fn is_ambiguous(&self, name: &Name) -> bool {
        self.all().filter(|directory| directory.identity(name).is_some()).count() > 1
    }
}

/// Removes the name of a segment.
///
/// Whoever has the segment mapped keeps it; the memory is freed when the last of them is gone. This removes
/// whatever has the name: a program that wants its own segment gone and no newer one uses
/// [`Segment::unlink`].
///
/// # Errors
///
/// [`Error::BadName`], [`Error::Missing`], [`Error::NoPermission`] if the directory does not let this user
/// remove the file (in /dev/shm: unless it is his own), [`Error::Os`].
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
pub fn unlink(name: &str) -> Result<(), Error> {
    let name = Name::new(name)?;
    let mut result = Err(Error::Missing);
    for directory in Places::open()?.all() {
        if directory.identity(&name).is_some() {
            directory.unlink(&name)?;
            result = Ok(());
        }
    }
    result
}
