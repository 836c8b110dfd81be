//! The server's side: a socket with a path.
//!
//! A server that is killed leaves the file of its socket behind, and the next one takes the path over. Of two that
//! start at once neither may take it from the other, and the kernel has no call that removes a file only if its
//! socket is dead. So whoever makes or takes over a path has the directory locked (`flock`), from before the look
//! at what is there until its own socket listens with its final mode. What follows:
//!
//! - Whoever has the lock sees no half-made socket of a server that lives: a file without a socket behind it is a
//!   rest. The look asks for any bound socket, so one of another program that does not listen yet counts as well.
//! - A rest stays one: no socket comes back to a file. Between the look and the removal nobody else who keeps to
//!   the lock puts another file there.
//! - A listener that is dropped removes its file while its socket is still bound, so that nobody takes the file for
//!   a rest meanwhile. It needs no lock: who has one leaves the path of a bound socket alone.
//!
//! Nothing is left behind but the socket's file, and the lock goes with its holder at any kind of death.
//!
//! It is not perfect. Programs that do not lock, `rm` among them, can interfere between look and removal. Whoever
//! may read the directory can hold its lock, and thereby starting servers up until they give up
//! ([`LOCK_TIMEOUT`]). A child that was forked while its parent had the lock, and outlives the parent that was
//! killed just then, holds it until it ends. A child that was forked later keeps the socket bound: while it runs, a
//! path whose server is gone looks like a live one. Network file systems may refuse to lock a directory.

use core::ffi::{CStr, c_int};
use core::time::Duration;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use super::{Connection, Place, UNFINISHED_MODE, when_ready};
use crate::fork::NoForks;
use crate::sys::socket::{self, Event};
use crate::sys::{self, Identity};
use crate::wait::{Deadline, Wait};
use crate::{Descriptor, Errno, Error};

/// How long to wait for other servers in the same directory, which take much less than a millisecond each.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A socket that clients connect to. Its file is removed on drop, by the process that made it, if no other file
/// has the path by then.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Descriptor,
    directory: Descriptor,
    name: CString,
    identity: Identity,
    pub(super) creator: c_int,
}

impl Listener {
    /// Listens at a path, with exactly this mode, whatever the umask; before, the file's mode gives less.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`], [`Error::SocketPathTooLong`]; [`Error::SocketInUse`] if something is there that is not
    /// the rest of a server; [`Error::TimedOut`] if another process keeps the directory locked;
    /// [`Error::NoPermission`], also where this user may not read the directory; [`Error::Os`].
    pub(crate) fn bind(path: &Path, mode: u32) -> Result<Self, Error> {
        let place = Place::new(path)?;
        let directory = socket::open_directory_to_lock(&place.directory)
            .map_err(|error| Error::os("open the socket's directory to lock it", error))?;
        let lock = DirectoryLock::take(&directory)?;
        remove_rest(&directory, &place)?;
        let (socket, identity) = listen(&directory, &place, mode)?;
        drop(lock);
        Ok(Self { socket, directory, name: place.name, identity, creator: sys::process_id() })
    }

    /// The next client, who may be gone already.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Os`].
    pub(crate) fn accept(&self, deadline: Deadline) -> Result<Connection, Error> {
        let attempt = || {
            // It fails for want of memory alone.
            let mut no_forks = NoForks::begin().map_err(|_| Errno::NOMEM)?;
            socket::accept(&self.socket).map(|socket| no_forks.adopt(socket))
        };
        let socket = when_ready(&self.socket, Event::Input, "accept a client", deadline, attempt)?;
        Connection::new(socket)
    }
}

/// Readable when a client can be accepted.
impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // While the socket is open, no other file can have its inode.
        if self.creator == sys::process_id() && identity(&self.directory, &self.name) == Some(self.identity) {
            // A file that cannot be removed is found by the next server.
            let _ = sys::unlink_in(&self.directory, &self.name);
        }
    }
}

fn identity(directory: &Descriptor, name: &CStr) -> Option<Identity> {
    sys::status_in(directory, name).map(|status| status.identity).ok()
}

/// Removes the file of a socket that is dead. The directory is locked.
fn remove_rest(directory: &Descriptor, place: &Place) -> Result<(), Error> {
    let status = match sys::status_in(directory, &place.name) {
        Err(Errno::NOENT) => return Ok(()),
        result => result.map_err(|error| Error::os("look at the socket's path", error))?,
    };
    // To the kernel, what is no socket and one that is dead are alike.
    if !status.is_socket {
        return Err(Error::SocketInUse);
    }
    match socket::is_bound(&place.address) {
        Ok(false) => {}
        Ok(true) => return Err(Error::SocketInUse),
        // Its server has removed it just now.
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(Error::os("see whether the socket's server still runs", error)),
    }
    // Only those who do not lock can have put another file there meanwhile.
    match identity(directory, &place.name) {
        None => Ok(()),
        Some(identity) if identity == status.identity => sys::unlink_in(directory, &place.name)
            .map_err(|error| Error::os("remove the socket that an ended server left", error)),
        Some(_) => Err(Error::SocketInUse),
    }
}

/// Makes a socket that listens, and its file. The directory is locked.
fn listen(directory: &Descriptor, place: &Place, mode: u32) -> Result<(Descriptor, Identity), Error> {
    let socket = socket::open().map_err(|error| Error::os("make a socket", error))?;
    // The file gets the mode of its socket, less the umask.
    sys::set_mode(&socket, mode & UNFINISHED_MODE)
        .map_err(|error| Error::os("set the socket's mode", error))?;
    socket::bind(&socket, &place.address).map_err(|error| match error {
        Errno::ADDRINUSE => Error::SocketInUse,
        error => Error::os("make the socket's file", error),
    })?;
    let open_up = || {
        let status = sys::status_in(directory, &place.name)?;
        socket::listen(&socket)?;
        // Last: whom the mode lets in finds a socket that listens.
        socket::set_mode_in(directory, &place.name, mode)?;
        Ok(status.identity)
    };
    match open_up() {
        Ok(identity) => Ok((socket, identity)),
        Err(error) => {
            let _ = sys::unlink_in(directory, &place.name);
            Err(Error::os("open the socket to clients", error))
        }
    }
}

/// Keeps other servers from making or removing sockets in a directory.
#[derive(Debug)]
struct DirectoryLock<'a>(&'a Descriptor);

impl<'a> DirectoryLock<'a> {
    fn take(directory: &'a Descriptor) -> Result<Self, Error> {
        const OPERATION: &str = "lock the socket's directory";
        let mut wait = Wait::new(LOCK_TIMEOUT);
        loop {
            match socket::try_lock(directory) {
                Ok(()) => return Ok(Self(directory)),
                Err(source @ Errno::AGAIN) if !wait.again() => {
                    return Err(Error::TimedOut { operation: OPERATION, source });
                }
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(Error::os(OPERATION, error)),
            }
        }
    }
}

impl Drop for DirectoryLock<'_> {
    fn drop(&mut self) {
        // Closing would not do: a child that was forked meanwhile has a copy.
        socket::unlock(self.0);
    }
}
