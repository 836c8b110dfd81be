//! What is in a directory.
//!
//! # Safety
//!
//! As in the parent module: descriptors are open, names end in a zero byte. A stream is closed once, and an entry is used before the next one is read.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int};
use core::ptr::NonNull;

use super::{call, errno};
use crate::{Descriptor, Errno};

/// Gives a file another name, unless something has that name.
pub(crate) fn rename_in(directory: &Descriptor, from: &CStr, to: &CStr) -> Result<(), Errno> {
    let (number, from, to): (c_int, _, _) = (directory.raw(), from.as_ptr(), to.as_ptr());
    let flags = libc::RENAME_NOREPLACE;
    // SAFETY: the directory is open and both names end in a zero byte.
    match unsafe { libc::syscall(libc::SYS_renameat2, number, from, number, to, flags) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Opens an existing file in a directory for reading, without following a link or waiting for a pipe.
pub(crate) fn open_in_to_read(directory: &Descriptor, name: &CStr) -> Result<Descriptor, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // SAFETY: the directory is open and the name ends in a zero byte.
    call(|| unsafe { libc::openat(directory.raw(), name.as_ptr(), flags) }).map(Descriptor::owning)
}

/// Tells the name of everything in a directory, itself and its parent included. What comes or goes meanwhile may be told
/// or not.
pub(crate) fn each_name(directory: &Descriptor, mut tell: impl FnMut(&CStr)) -> Result<(), Errno> {
    let mut stream = Stream::open(directory)?;
    while let Some(name) = stream.next()? {
        tell(name);
    }
    Ok(())
}

/// A directory that is being read.
struct Stream(NonNull<libc::DIR>);

impl Stream {
    fn open(directory: &Descriptor) -> Result<Self, Errno> {
        // The directory itself is open for its path alone.
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_DIRECTORY;
        // SAFETY: the directory is open and the name ends in a zero byte.
        let number = call(|| unsafe { libc::openat(directory.raw(), c".".as_ptr(), flags) })?;
        // SAFETY: the number is open, and the stream takes it over.
        match NonNull::new(unsafe { libc::fdopendir(number) }) {
            Some(stream) => Ok(Self(stream)),
            None => {
                let error = errno();
                drop(Descriptor::owning(number));
                Err(error)
            }
        }
    }

    /// The next name; None at the end.
    fn next(&mut self) -> Result<Option<&CStr>, Errno> {
        // The end and an error look alike but for this.
        // SAFETY: the C library returns the address of this thread's own errno.
        let number = unsafe { libc::__errno_location() };
        // SAFETY: the address is valid for as long as the thread runs.
        unsafe { number.write(0) };
        // SAFETY: the stream is open.
        let entry = unsafe { libc::readdir64(self.0.as_ptr()) };
        let Some(entry) = NonNull::new(entry) else {
            return match errno() {
                Errno(0) => Ok(None),
                error => Err(error),
            };
        };
        // The entry may be shorter than its type, so no reference to all of it is made.
        // SAFETY: the field lies in the entry.
        let name = unsafe { &raw const (*entry.as_ptr()).d_name };
        // SAFETY: the name ends in a zero byte, and stays until the next one is read or the stream is closed.
        Ok(Some(unsafe { CStr::from_ptr(name.cast()) }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open, and nobody uses it again.
        let _ = unsafe { libc::closedir(self.0.as_ptr()) };
    }
}
