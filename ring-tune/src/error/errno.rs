//! Error numbers of the operating system.
//!
//! # Safety
//!
//! The unsafe blocks read the thread's own error number, and have the C library write to a buffer on the stack whose length
//! it is told.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int};
use core::fmt;

/// An error number of the operating system; any number is valid. Displayed as the C library says it.
///
/// ```
/// use ring_tune::Errno;
///
/// assert_eq!(Errno::PERM.to_string(), "Operation not permitted (errno 1)");
/// assert_eq!(Errno(-7).to_string(), "(errno -7)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub c_int);

impl Errno {
    /// An argument that the kernel does not take.
    pub const INVAL: Self = Self(libc::EINVAL);
    /// A system call that this kernel does not have, or a sandbox forbids.
    pub const NOSYS: Self = Self(libc::ENOSYS);
    /// The operation is not permitted to this user, or in this sandbox.
    pub const PERM: Self = Self(libc::EPERM);

    /// What the last system call of this thread that failed left behind.
    pub(crate) fn last() -> Self {
        // SAFETY: takes no argument; the address that it returns is this thread's own, for as long as it lives.
        let location = unsafe { libc::__errno_location() };
        // SAFETY: see above; nothing else runs in this thread between the two.
        Self(unsafe { *location })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0_u8; 128];
        // SAFETY: the buffer is as long as is passed along.
        let status = unsafe { libc::strerror_r(self.0, buffer.as_mut_ptr().cast::<c_char>(), buffer.len()) };
        let message = CStr::from_bytes_until_nul(&buffer).ok().filter(|_| status == 0);
        if let Some(message) = message.and_then(|message| message.to_str().ok()) {
            write!(formatter, "{message} ")?;
        }
        write!(formatter, "(errno {})", self.0)
    }
}

impl core::error::Error for Errno {}
