//! Numbers of errors, as the C library has them.

use core::ffi::c_int;
use core::fmt;

/// Why the system or the driver refuses something.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub c_int);

impl Errno {
    /// What a function that returns -1 or NULL left for this thread.
    pub(crate) fn last() -> Self {
        Self(crate::system::errno())
    }

    /// What a verb returned that returns 0, an error number, a negative error number, or -1 and leaves `errno`:
    /// libraries and drivers differ.
    pub(crate) fn check(returned: c_int) -> Result<(), Self> {
        match returned {
            0 => Ok(()),
            -1 => Err(Self::last()),
            number => Err(Self(number.saturating_abs())),
        }
    }

    /// Its name in `errno.h`, of those that verbs return.
    pub fn name(self) -> Option<&'static str> {
        let name = match self.0 {
            libc::EPERM => "EPERM",
            libc::ENOENT => "ENOENT",
            libc::EINTR => "EINTR",
            libc::EIO => "EIO",
            libc::EBADF => "EBADF",
            libc::EAGAIN => "EAGAIN",
            libc::ENOMEM => "ENOMEM",
            libc::EACCES => "EACCES",
            libc::EFAULT => "EFAULT",
            libc::EBUSY => "EBUSY",
            libc::ENODEV => "ENODEV",
            libc::EINVAL => "EINVAL",
            libc::EMFILE => "EMFILE",
            libc::ENFILE => "ENFILE",
            libc::ENOSPC => "ENOSPC",
            libc::ENOSYS => "ENOSYS",
            libc::EPROTONOSUPPORT => "EPROTONOSUPPORT",
            libc::EOPNOTSUPP => "EOPNOTSUPP",
            libc::ENETUNREACH => "ENETUNREACH",
            libc::ETIMEDOUT => "ETIMEDOUT",
            libc::EHOSTUNREACH => "EHOSTUNREACH",
            _ => return None,
        };
        Some(name)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => to.write_str(name),
            None => write!(to, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

impl core::error::Error for Errno {}
