//! The kernel's error numbers.

use core::ffi::c_int;
use core::fmt;

use crate::sys;

/// An error number of the operating system.
///
/// The constants name the numbers that the calls behind this crate return; others are possible, and print as
/// well.
///
/// ```
/// use ring_shm::Errno;
///
/// assert_eq!(Errno::NOSPC.to_string(), "No space left on device (errno 28)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub c_int);

impl Errno {
    /// The operation is not permitted to this user.
    pub const PERM: Self = Self(libc::EPERM);
    /// No such file.
    pub const NOENT: Self = Self(libc::ENOENT);
    /// A signal interrupted the call.
    pub const INTR: Self = Self(libc::EINTR);
    /// Try again later, or a limit on locked memory is reached.
    pub const AGAIN: Self = Self(libc::EAGAIN);
    /// No memory, or a limit on it is reached.
    pub const NOMEM: Self = Self(libc::ENOMEM);
    /// The file's mode does not give this user the access asked for.
    pub const ACCES: Self = Self(libc::EACCES);
    /// An address has no memory behind it, as after a file was truncated.
    pub const FAULT: Self = Self(libc::EFAULT);
    /// The file exists already.
    pub const EXIST: Self = Self(libc::EEXIST);
    /// No such device, such as a page size that the machine does not have.
    pub const NODEV: Self = Self(libc::ENODEV);
    /// An argument that the kernel does not know.
    pub const INVAL: Self = Self(libc::EINVAL);
    /// The system's table of open files is full.
    pub const NFILE: Self = Self(libc::ENFILE);
    /// The process has no free descriptor (RLIMIT_NOFILE).
    pub const MFILE: Self = Self(libc::EMFILE);
    /// The file would be larger than is allowed.
    pub const FBIG: Self = Self(libc::EFBIG);
    /// No space left in the file system, or no huge page in the pool.
    pub const NOSPC: Self = Self(libc::ENOSPC);
    /// The file system cannot be written.
    pub const ROFS: Self = Self(libc::EROFS);
    /// No such device behind a special file.
    pub const NXIO: Self = Self(libc::ENXIO);
    /// A directory where a file was expected.
    pub const ISDIR: Self = Self(libc::EISDIR);
    /// A system call that this kernel does not have, or a sandbox forbids.
    pub const NOSYS: Self = Self(libc::ENOSYS);
    /// A symbolic link where a file was expected.
    pub const LOOP: Self = Self(libc::ELOOP);
    /// The other side has closed the connection, and nothing can be sent any more.
    pub const PIPE: Self = Self(libc::EPIPE);
    /// The other side has closed the connection without having read all of it.
    pub const CONNRESET: Self = Self(libc::ECONNRESET);
    /// Nobody listens on the socket.
    pub const CONNREFUSED: Self = Self(libc::ECONNREFUSED);
    /// Something is at the socket's path already.
    pub const ADDRINUSE: Self = Self(libc::EADDRINUSE);
    /// Another kind of socket.
    pub const PROTOTYPE: Self = Self(libc::EPROTOTYPE);
    /// Too many descriptors are on their way over sockets (RLIMIT_NOFILE).
    pub const TOOMANYREFS: Self = Self(libc::ETOOMANYREFS);

    /// Whether the call might succeed if others had less open or in use.
    pub(crate) fn is_exhaustion(self) -> bool {
        matches!(self, Self::MFILE | Self::NFILE | Self::NOMEM)
    }

    /// Whether a call that locks memory returns this where the process has reached its limit.
    pub(crate) fn is_lock_limit(self) -> bool {
        matches!(self, Self::NOMEM | Self::PERM | Self::AGAIN)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = sys::error_message(*self, &mut [0; 128]).map(|message| write!(formatter, "{message} "));
        message.transpose()?;
        write!(formatter, "(errno {})", self.0)
    }
}

impl core::error::Error for Errno {}

#[cfg(feature = "std")]
impl From<Errno> for std::io::Error {
    fn from(error: Errno) -> Self {
        Self::from_raw_os_error(error.0)
    }
}
