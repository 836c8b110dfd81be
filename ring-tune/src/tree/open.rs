//! How a file below a root is opened.
//!
//! # Safety
//!
//! The unsafe blocks call `open` and `openat2` with a path and a structure that outlive the call, and own the descriptor
//! that comes back.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Tree;

/// The kernel refuses to go up a folder while anybody on the machine renames one, openat2(2): then it is asked again.
const ATTEMPTS: usize = 1_000;

/// `struct open_how` of openat2(2), whose libc twin cannot be made outside of libc.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

impl Tree {
    pub(super) fn open(&self, path: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
        match &self.folder {
            None => open(&self.path(path), flags),
            Some(folder) => open_below(folder, path, flags),
        }
    }
}

fn open(path: &Path, flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends in a zero byte and outlives the call.
    let descriptor = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    owned(descriptor.into())
}

/// Links that lead out of the folder lead to what has their name in it.
fn open_below(folder: &OwnedFd, path: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = CString::new(path)?;
    let how = OpenHow {
        flags: u64::try_from(flags | libc::O_CLOEXEC).expect("no flag is the sign"),
        mode: 0,
        resolve: libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS,
    };
    let (folder, bytes) = (folder.as_raw_fd(), size_of::<OpenHow>());
    let attempt = || {
        // SAFETY: the kernel reads the path up to its zero byte, and `how` in the size that is passed along.
        owned(unsafe { libc::syscall(libc::SYS_openat2, folder, path.as_ptr(), &raw const how, bytes) })
    };
    let is_final =
        |opened: &io::Result<_>| !opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    (1..ATTEMPTS).map(|_| attempt()).find(is_final).unwrap_or_else(attempt)
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(descriptor) {
        // SAFETY: the kernel has just opened it for this call alone.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
