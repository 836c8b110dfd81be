//! What segments there are on this machine, and removing those that nobody uses.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::header::Header;
use crate::name::Name;
use crate::pages::PageSize;
use crate::place::{self, Directory};
use crate::sys::{self, Status};
use crate::{Descriptor, Errno, Error, Lock, Options, Segment, attach, lock};

/// A segment's name, and what is known of its file without mapping it.
///
/// All of it is as it was when the file was looked at.
#[derive(Debug, Clone)]
pub struct Listed {
    name: Name,
    directory: Arc<Directory>,
    page_bytes: u64,
    status: Status,
    contents: Result<Contents, Error>,
}

#[derive(Debug, Clone)]
struct Contents {
    is_published: bool,
    is_used: Result<bool, Error>,
    created: Option<Duration>,
}

impl Listed {
    /// Looks at a file in a directory. [`Error::WrongMagic`], [`Error::NotSharedMemory`] or [`Error::Missing`] when it is
    /// no segment.
    fn look(directory: &Arc<Directory>, name: Name) -> Result<Self, Error> {
        let missing_or = |operation| {
            move |error| match error {
                Errno::NOENT => Error::Missing,
                error => Error::os(operation, error),
            }
        };
        let mut status = directory.status(&name).map_err(missing_or("examine the segment"))?;
        if !status.is_regular {
            return Err(Error::NotSharedMemory);
        }
        let contents = match directory
            .open_to_read(&name)
            .map_err(missing_or("open the segment to look at it"))
        {
            Err(Error::Missing) => return Err(Error::Missing),
            Err(error) => Err(error),
            Ok(descriptor) => {
                // Of this very file: another may have the name by now.
                status = sys::status(&descriptor).map_err(|error| Error::os("examine the segment", error))?;
                let header = header_of(&descriptor, &name)?;
                let is_used = lock::has_users(&descriptor).map_err(|error| Error::os("ask for users", error));
                Ok(Contents { is_published: header.is_published(), is_used, created: header.created() })
            }
        };
        let page_bytes = directory.page_bytes();
        Ok(Self { name, directory: Arc::clone(directory), page_bytes, status, contents })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Why the file may not be opened, if so. Then it is not even known to be a segment.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        self.contents.as_ref().err()
    }

    /// Whether the segment was published. If not, its creator is still at work, or was killed.
    ///
    /// # Errors
    ///
    /// As [`error`](Self::error).
    pub fn is_published(&self) -> Result<bool, Error> {
        self.contents.clone().map(|contents| contents.is_published)
    }

    /// Whether a process uses the segment: has it mapped, and not only to [`observe`](Self::observe) it.
    ///
    /// # Errors
    ///
    /// As [`error`](Self::error), and [`Error::Os`] if the kernel does not tell.
    pub fn is_used(&self) -> Result<bool, Error> {
        self.contents.clone()?.is_used
    }

    /// Length of the file: header and data in whole pages, bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.status.file_bytes
    }

    /// Size of its pages, bytes.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The user who owns it.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.status.owner
    }

    /// When it was made, since 1970, as its creator said. Of a file that may not be opened: when it was changed last.
    #[must_use]
    pub fn created(&self) -> Duration {
        let told = self.contents.as_ref().ok().and_then(|contents| contents.created);
        told.unwrap_or(self.status.modified)
    }

    /// Maps the segment to look at it: without locking memory or making pages present, and without becoming one of its
    /// users, so that [`clean`](Self::clean) may remove it meanwhile. Whoever wants a role attaches with
    /// [`Options::attach`] instead.
    ///
    /// With `trust_owner` whoever owns it is trusted not to truncate it, which would kill this process.
    ///
    /// # Errors
    ///
    /// As [`Options::attach`], which does not wait; [`Error::Replaced`] if another segment has the name by now.
    pub fn observe(&self, trust_owner: bool) -> Result<Segment, Error> {
        let options = Options::new().lock(Lock::Never).prefault(false);
        let options = if trust_owner { options.trust_owner(self.uid()) } else { options };
        attach::observe(&options, self.open()?, self.name)
    }

    /// Opens the file for reading and writing.
    fn open(&self) -> Result<Descriptor, Error> {
        let descriptor = self.directory.open(&self.name)?.ok_or(Error::Missing)?;
        let found = sys::status(&descriptor).map_err(|error| Error::os("examine the segment", error))?;
        if found.identity == self.status.identity { Ok(descriptor) } else { Err(Error::Replaced) }
    }

    /// Removes the name of the segment unless somebody uses it: false if so. What a killed creator left unpublished goes,
    /// too. Nobody can attach while this looks and removes, so no user is overlooked.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if it is gone already, [`Error::Replaced`] if another file has the name by now, which stays;
    /// [`Error::WrongMagic`] if it is no segment any more; [`Error::NoPermission`], [`Error::Os`].
    pub fn clean(&self) -> Result<bool, Error> {
        let own = self.open()?;
        header_of(&own, &self.name)?;
        if !lock::exclude_users(&own).map_err(|error| Error::os("lock the segment", error))? {
            return Ok(false);
        }
        match self.directory.identity(&self.name) {
            Some(found) if found == self.status.identity => self.directory.unlink(&self.name).map(|()| true),
            Some(_) => Err(Error::Replaced),
            None => Err(Error::Missing),
        }
    }
}

/// A copy of the header of a segment.
fn header_of(descriptor: &Descriptor, name: &Name) -> Result<Header, Error> {
    let header = Header::of_file(descriptor).map_err(|error| Error::os("read the header", error))?;
    match header.check_magic() {
        // A creator that has not written it yet, or was killed before.
        Err(0) if name.is_temporary() => Ok(header),
        result => result.map(|()| header).map_err(|found| Error::WrongMagic { found }),
    }
}

/// Every segment that has a name on this machine, in /dev/shm and on hugetlbfs mounts, known by its first bytes. Other
/// files there are left out. Segments that are being made have a name that begins with `.ring-shm-`. Files that this user may not
/// open could be segments, and come with the reason ([`Listed::error`]). What comes or goes meanwhile may be listed or
/// not.
///
/// # Errors
///
/// [`Error::Os`] or [`Error::NoPermission`] if /dev/shm cannot be read.
///
/// ```
/// use ring_shm::{Error, Options, list};
///
/// # let name = format!("doc-list-{}", std::process::id());
/// let segment = Options::new().create(&name, 4096)?.publish();
/// let listed = list()?.find(|listed| listed.name() == name).expect("it is there");
/// assert_eq!(listed.is_used(), Ok(true));
/// assert_eq!(listed.clean(), Ok(false));
///
/// drop(segment);
/// assert_eq!(listed.clean(), Ok(true));
/// assert_eq!(listed.clean(), Err(Error::Missing));
/// # Ok::<(), Error>(())
/// ```
pub fn list() -> Result<impl Iterator<Item = Listed>, Error> {
    let mut found = Vec::new();
    let failed = place::visit(|directory| {
        let directory = Arc::new(directory);
        match directory.each_name(|name| found.push((Arc::clone(&directory), *name))) {
            Ok(()) => {}
            Err(error) if directory.pages() == PageSize::Base => return Some(error),
            // A mount that this user may not read is one that he has no segments in.
            Err(_) => {}
        }
        None
    })?;
    if let Some(error) = failed {
        return Err(Error::os("read /dev/shm", error));
    }
    // One directory may be mounted in several places.
    let mut seen = BTreeSet::new();
    Ok(found
        .into_iter()
        .filter_map(|(directory, name)| Listed::look(&directory, name).ok())
        .filter(move |listed| seen.insert(listed.status.identity)))
}

/// The segment of this name.
///
/// # Errors
///
/// [`Error::BadName`]; [`Error::Missing`]; [`Error::WrongMagic`] or [`Error::NotSharedMemory`] if a file has the name
/// that is no segment; [`Error::Os`].
pub fn find(name: &str) -> Result<Listed, Error> {
    let name = Name::of_file(name)?;
    let found = place::visit(|directory| match Listed::look(&Arc::new(directory), name) {
        Err(Error::Missing) => None,
        found => Some(found),
    })?;
    found.unwrap_or(Err(Error::Missing))
}
