//! The files in which a kernel tells about its machine, below a root: this machine's own, or a saved copy's.

mod names;
mod open;
#[cfg(test)]
mod tests;
mod unread;

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use crate::CpuSet;
use names::{by_number, fits};
pub use unread::Unread;

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
/// let tree = Tree::live();
/// assert!(tree.text("proc/version")?.starts_with("Linux version"));
/// assert!(tree.number("proc/sys/kernel/pid_max")? > 0);
/// assert!(tree.cpus("sys/devices/system/cpu/online")?.len() > 0);
/// assert!(tree.names("proc/self")?.contains(&"stat".into()));
/// assert!(tree.exists("proc/self/stat") && tree.text("no/such/file").unwrap_err().is_absent());
/// # Ok::<(), ring_tune::Unread>(())
/// ```
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// Of a saved tree; this machine's own needs no descriptor to stay below `/`.
    folder: Option<OwnedFd>,
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
        if !fs::metadata(&root).map_err(failed)?.is_dir() {
            return Err(Unread::strange(&root.display().to_string(), "is no folder"));
        }
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY);
        let folder = options.open(&root).map_err(failed)?;
        Ok(Self { root, folder: Some(folder.into()) })
    }

    /// Whether these are the files of this machine, and not a copy.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.folder.is_none()
    }

    /// Where the file is on this machine, for those who read or write it themselves. A link on the way may lead them out
    /// of the root.
    ///
    /// ```
    /// let path = ring_tune::Tree::live().path("proc/version");
    /// assert_eq!(path, std::path::Path::new("/proc/version"));
    /// ```
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        // A path from the root would take its place.
        self.root.join(path.trim_start_matches('/'))
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
        let file = self.file(path, "is no regular file", FileType::is_file)?;
        let mut bytes = vec![];
        let read = file.take(LONGEST_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| Unread::of(path, &error))?;
        if bytes.len() as u64 > LONGEST_BYTES {
            return Err(Unread::strange(path, "is longer than 64 MiB"));
        }
        Ok(bytes)
    }

    /// The first bytes that a character device of this machine gives, or what was saved of them; nothing else is read from
    /// devices.
    ///
    /// # Errors
    ///
    /// [`Unread`], also where there are fewer bytes.
    ///
    /// ```
    /// assert_eq!(ring_tune::Tree::live().device("dev/zero"), Ok([0; 4]));
    /// ```
    pub fn device<const BYTES: usize>(&self, path: &str) -> Result<[u8; BYTES], Unread> {
        let mut bytes = [0; BYTES];
        let is_meant = |kind: &FileType| kind.is_file() || self.is_live() && kind.is_char_device();
        let mut file = self.file(path, "is no device", is_meant)?;
        file.read_exact(&mut bytes).map_err(|error| Unread::of(path, &error))?;
        Ok(bytes)
    }

    /// Looks at what is there before it opens it: to open a device may set it in motion, and a copy may hold any.
    fn file(
        &self,
        path: &str,
        otherwise: &str,
        is_meant: impl Fn(&FileType) -> bool,
    ) -> Result<File, Unread> {
        let failed = |error: io::Error| Unread::of(path, &error);
        let place = self.open(path, libc::O_PATH).map(File::from).map_err(failed)?;
        let metadata = place.metadata().map_err(failed)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            return Err(Unread::strange(path, "is a folder"));
        }
        if !is_meant(&kind) {
            return Err(Unread::strange(path, otherwise));
        }
        // So are those saved that their reader was denied; root would read nothing, and take it for what they say.
        if !self.is_live() && metadata.mode() & 0o444 == 0 {
            return Err(Unread::Denied { path: path.into() });
        }
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK).open(of_descriptor(&place)).map_err(failed)
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
    pub fn cpus(&self, path: &str) -> Result<CpuSet, Unread> {
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
    ///
    /// ```
    /// let place = ring_tune::Tree::live().resolve("proc/self")?;
    /// assert_eq!(place, format!("proc/{}", std::process::id()));
    /// # Ok::<(), ring_tune::Unread>(())
    /// ```
    pub fn resolve(&self, path: &str) -> Result<String, Unread> {
        let failed = |error: io::Error| Unread::of(path, &error);
        let place = self.open(path, libc::O_PATH).map_err(failed)?;
        let place = fs::read_link(of_descriptor(&place)).map_err(failed)?;
        let below = place.strip_prefix(&self.root).ok().and_then(Path::to_str);
        below.map(Into::into).ok_or_else(|| Unread::strange(path, "was moved out of the root"))
    }
}

fn of_descriptor(descriptor: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// The beginning of a text, as people may see it.
fn quoted(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    format!("{start:?}{}", if start.len() < text.len() { "…" } else { "" })
}
