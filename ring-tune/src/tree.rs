//! The files in which a kernel tells about its machine, below a root: this machine's own, or a saved copy's.
//!
//! # Safety
//!
//! The unsafe block calls `openat2` with a path and a structure that live on the stack, and owns the descriptor
//! that comes back.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use crate::Errno;

/// No file that is read here is longer on the largest machines: `/proc/interrupts` has 11 bytes for each interrupt and
/// CPU, some 40 MiB for 5,000 and 768 of them.
const LONGEST_BYTES: u64 = 64 << 20;

/// More files than the largest folder holds, that of processes.
const MOST_ENTRIES: usize = 1 << 20;

/// A root folder with `proc`, `sys` and `dev` below it.
///
/// Paths are written without the root and without a slash at the front: `sys/devices/system/cpu/online`. Links and `..`
/// are followed, but never lead out of the root: the copy of another machine's files is asked, not this machine.
/// Whatever lies below the root, a read ends: what is too long, no text, or no regular file is an error.
///
/// ```
/// use ring_tune::Tree;
///
/// let version = Tree::live().text("proc/version")?;
/// assert!(version.starts_with("Linux version"));
/// # Ok::<(), ring_tune::Unread>(())
/// ```
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// Of a saved tree; this machine's own needs no descriptor to stay below `/`.
    folder: Option<OwnedFd>,
}

/// Why something was not read from a [`Tree`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unread {
    /// There is no such file: this machine does not have what it tells about.
    #[error("{path} does not exist")]
    Absent {
        /// The path below the root.
        path: String,
    },
    /// The file is there, but not for this user.
    #[error("{path} may not be read by this user: try as root")]
    Denied {
        /// The path below the root.
        path: String,
    },
    /// The file is there, and cannot be read or understood.
    #[error("{path} {why}")]
    Strange {
        /// The path below the root.
        path: String,
        /// What is strange about it, in words that follow the path.
        why: String,
    },
}

impl Unread {
    fn of(path: &str, error: &io::Error) -> Self {
        let path = path.into();
        match error.raw_os_error() {
            // A device that has gone, or that answers that it does not support the file, is absent too.
            Some(
                libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ENXIO | libc::ESRCH | libc::EOPNOTSUPP,
            ) => Self::Absent { path },
            Some(libc::EACCES | libc::EPERM) => Self::Denied { path },
            Some(errno) => Self::Strange { path, why: format!("cannot be read: {}", Errno(errno)) },
            None => Self::Strange { path, why: format!("cannot be read: {error}") },
        }
    }

    /// The file at `path` says something that its reader does not understand; `what` it was to be, as in "no
    /// number".
    #[must_use]
    pub fn strange(path: &str, what: &str) -> Self {
        Self::Strange { path: path.into(), why: what.into() }
    }

    /// Whether there is no such file.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

impl Tree {
    /// The files of this machine.
    #[must_use]
    pub fn live() -> Self {
        Self { root: "/".into(), folder: None }
    }

    /// The files below a folder.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be opened.
    ///
    /// ```
    /// let nowhere = ring_tune::Tree::below("/no/such/folder");
    /// assert!(nowhere.unwrap_err().is_absent());
    /// ```
    pub fn below(root: impl Into<PathBuf>) -> Result<Self, Unread> {
        let root = root.into();
        let failed = |error: io::Error| Unread::of(&root.display().to_string(), &error);
        let root = fs::canonicalize(&root).map_err(failed)?;
        let folder = File::open(&root).map_err(failed)?;
        if !folder.metadata().map_err(failed)?.is_dir() {
            return Err(Unread::strange(&root.display().to_string(), "is no folder"));
        }
        Ok(Self { root, folder: Some(folder.into()) })
    }

    /// Whether these are the files of this machine, and not a copy.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.folder.is_none()
    }

    /// Where the file is on this machine, for those who read or write it themselves.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// What a file says, without the white space around it.
    ///
    /// # Errors
    ///
    /// [`Unread`].
    pub fn text(&self, path: &str) -> Result<String, Unread> {
        let bytes = self.bytes(path)?;
        let text = core::str::from_utf8(&bytes).map_err(|_| Unread::strange(path, "is no text"))?;
        if text.contains('\0') {
            return Err(Unread::strange(path, "is no text"));
        }
        Ok(text.trim().into())
    }

    /// What a file holds.
    ///
    /// # Errors
    ///
    /// [`Unread`].
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, Unread> {
        let file = self.file(path)?;
        let failed = |error: io::Error| Unread::of(path, &error);
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Unread::strange(path, "is no regular file"));
        }
        let mut bytes = vec![];
        file.take(LONGEST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LONGEST_BYTES {
            return Err(Unread::strange(path, "is longer than 64 MiB"));
        }
        Ok(bytes)
    }

    /// The first bytes that a character device gives, or what was saved of them; nothing else is read from devices.
    ///
    /// # Errors
    ///
    /// [`Unread`], also where there are fewer bytes.
    pub fn device<const BYTES: usize>(&self, path: &str) -> Result<[u8; BYTES], Unread> {
        let mut bytes = [0; BYTES];
        let mut file = self.file(path)?;
        let kind = file.metadata().map_err(|error| Unread::of(path, &error))?.file_type();
        if !kind.is_file() && !kind.is_char_device() {
            return Err(Unread::strange(path, "is no device"));
        }
        file.read_exact(&mut bytes).map_err(|error| Unread::of(path, &error))?;
        Ok(bytes)
    }

    /// A pipe without a writer does not make the caller wait.
    fn file(&self, path: &str) -> Result<File, Unread> {
        let file = self.open(path, libc::O_RDONLY | libc::O_NONBLOCK).map(File::from);
        let file = file.map_err(|error| Unread::of(path, &error))?;
        match file.metadata() {
            Ok(metadata) if metadata.is_dir() => Err(Unread::strange(path, "is a folder")),
            // So are those saved that their reader was denied; root would read nothing, and take it for what they say.
            Ok(metadata) if !self.is_live() && metadata.mode() & 0o444 == 0 => {
                Err(Unread::Denied { path: path.into() })
            }
            Ok(_) => Ok(file),
            Err(error) => Err(Unread::of(path, &error)),
        }
    }

    /// The number that a file says, in decimal notation.
    ///
    /// # Errors
    ///
    /// [`Unread`].
    pub fn number(&self, path: &str) -> Result<i64, Unread> {
        let text = self.text(path)?;
        text.parse()
            .map_err(|_| Unread::strange(path, &format!("says {}, which is no number", quoted(&text))))
    }

    /// The CPUs that a file lists.
    ///
    /// # Errors
    ///
    /// [`Unread`].
    pub fn cpus(&self, path: &str) -> Result<crate::CpuSet, Unread> {
        let text = self.text(path)?;
        text.parse()
            .map_err(|_| Unread::strange(path, &format!("says {}, which is no list of CPUs", quoted(&text))))
    }

    /// The names in a folder, in order: numbers within them by their value, so that cpu2 comes before cpu10.
    ///
    /// # Errors
    ///
    /// [`Unread`].
    pub fn names(&self, path: &str) -> Result<Vec<String>, Unread> {
        self.entries(path, |_| true)
    }

    /// The names of the folders in a folder, links left out, in the order of [`Tree::names`].
    ///
    /// # Errors
    ///
    /// [`Unread`].
    ///
    /// ```
    /// let folders = ring_tune::Tree::live().folders("proc/self")?;
    /// assert!(folders.contains(&"task".into()) && !folders.contains(&"stat".into()));
    /// # Ok::<(), ring_tune::Unread>(())
    /// ```
    pub fn folders(&self, path: &str) -> Result<Vec<String>, Unread> {
        self.entries(path, |entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    }

    fn entries(&self, path: &str, is_meant: impl Fn(&fs::DirEntry) -> bool) -> Result<Vec<String>, Unread> {
        let failed = |error: io::Error| Unread::of(path, &error);
        let folder = self.open(path, libc::O_RDONLY | libc::O_DIRECTORY).map_err(failed)?;
        let mut names = vec![];
        for entry in fs::read_dir(of_descriptor(&folder)).map_err(failed)?.take(MOST_ENTRIES) {
            let entry = entry.map_err(failed)?;
            if is_meant(&entry) {
                // What is no text is named nowhere.
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort_by_cached_key(|name| by_number(name));
        Ok(names)
    }

    /// The paths that fit a pattern in which `*` stands for any characters within one name, in order; none where a
    /// folder on the way does not exist.
    ///
    /// # Errors
    ///
    /// [`Unread`] where a folder on the way is there and cannot be read.
    ///
    /// ```
    /// let cpus = ring_tune::Tree::live().find("sys/devices/system/cpu/cpu*/topology")?;
    /// assert!(cpus.iter().all(|path| path.starts_with("sys/devices/system/cpu/cpu")));
    /// # Ok::<(), ring_tune::Unread>(())
    /// ```
    pub fn find(&self, pattern: &str) -> Result<Vec<String>, Unread> {
        let mut found = vec![String::new()];
        for part in pattern.split('/') {
            let mut next = vec![];
            for base in found {
                let join = |name: &str| if base.is_empty() { name.into() } else { format!("{base}/{name}") };
                if !part.contains('*') {
                    next.push(join(part));
                    continue;
                }
                match self.names(if base.is_empty() { "." } else { &base }) {
                    Ok(names) => {
                        next.extend(names.iter().filter(|name| fits(name, part)).map(|name| join(name)))
                    }
                    Err(Unread::Absent { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if next.len() > MOST_ENTRIES {
                return Err(Unread::strange(pattern, "fits more files than any machine has"));
            }
            found = next;
        }
        Ok(found.into_iter().filter(|path| self.exists(path)).collect())
    }

    /// Whether something is there, readable or not.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.open(path, libc::O_PATH).is_ok()
    }

    /// The path below the root to which links on the way lead: what a device's folder is really called.
    ///
    /// # Errors
    ///
    /// [`Unread`].
    pub fn resolve(&self, path: &str) -> Result<String, Unread> {
        let failed = |error: io::Error| Unread::of(path, &error);
        let place = self.open(path, libc::O_PATH).map_err(failed)?;
        let place = fs::read_link(of_descriptor(&place)).map_err(failed)?;
        let below = place.strip_prefix(&self.root).ok().and_then(Path::to_str);
        below.map(Into::into).ok_or_else(|| Unread::strange(path, "was moved out of the root"))
    }

    fn open(&self, path: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
        let flags = flags | libc::O_CLOEXEC;
        let (folder, resolve) = match &self.folder {
            Some(folder) => (folder.as_raw_fd(), libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS),
            None => (libc::AT_FDCWD, 0),
        };
        let path = if self.is_live() { self.path(path) } else { path.into() };
        let path = CString::new(path.as_os_str().as_bytes())?;
        if self.is_live() {
            // SAFETY: the path ends in a zero byte and outlives the call.
            let descriptor = unsafe { libc::open(path.as_ptr(), flags) };
            return owned(descriptor.into());
        }
        let how = OpenHow { flags: u64::try_from(flags).expect("no flag is the sign"), mode: 0, resolve };
        // SAFETY: the kernel reads the path up to its zero byte, and `how` in the size that is passed along.
        let descriptor = unsafe {
            libc::syscall(libc::SYS_openat2, folder, path.as_ptr(), &raw const how, size_of::<OpenHow>())
        };
        owned(descriptor)
    }
}

/// `struct open_how` of openat2(2), whose libc twin cannot be made outside of libc.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(descriptor) {
        // SAFETY: the kernel has just opened it for this call alone.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn of_descriptor(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// The beginning of a text, as people may see it.
fn quoted(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    format!("{start:?}{}", if start.len() < text.len() { "…" } else { "" })
}

/// Whether a name fits a pattern with stars.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(name) = name.strip_prefix(start) else { return false };
    name.char_indices().map(|(place, _)| &name[place..]).chain([""]).any(|tail| fits(tail, rest))
}

/// A key that sorts numbers within names by value: digits of equal length, their number in front.
fn by_number(name: &str) -> String {
    let mut key = String::new();
    let mut rest = name;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let digits = rest[at..].find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len() - at);
        let number = rest[at..at + digits].trim_start_matches('0');
        key.push_str(&rest[..at]);
        key.push_str(&format!("{:03}{number}", number.len()));
        rest = &rest[at + digits..];
    }
    key.push_str(rest);
    key + "\0" + name
}
