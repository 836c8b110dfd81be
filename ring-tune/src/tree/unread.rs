//! What keeps a file from being read.

use std::format;
use std::io;
use std::string::String;

use crate::Errno;

/// Why something was not read from a [`Tree`](crate::Tree).
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
    pub(super) fn of(path: &str, error: &io::Error) -> Self {
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

    /// The file at `path` says something that its reader does not understand; `why`, in words that follow the path.
    ///
    /// ```
    /// let error = ring_tune::Unread::strange("sys/power/state", "names no state");
    /// assert_eq!(error.to_string(), "sys/power/state names no state");
    /// ```
    #[must_use]
    pub fn strange(path: &str, why: &str) -> Self {
        Self::Strange { path: path.into(), why: why.into() }
    }

    /// Whether there is no such file.
    ///
    /// ```
    /// assert!(ring_tune::Tree::live().text("no/such/file").unwrap_err().is_absent());
    /// ```
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}
