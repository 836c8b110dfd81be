//! Connections between processes of one machine, over which descriptors go.
//!
//! A server has a [`Listener`] at a path in the file system; a client connects to it. Each side of the
//! [`Connection`] then sends messages, each of which arrives whole or not at all, with descriptors if it has any.
//! What the messages mean is not known here.
//!
//! No call blocks beyond its deadline, whatever the other side does or fails to do. The kernel does the work at
//! once where it can, so a deadline that is over gives one attempt.

mod connection;
mod listener;
#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use connection::Connection;
pub(crate) use listener::Listener;

use crate::error::NameFault;
use crate::sys::socket::{self, Address, Event};
pub(crate) use crate::sys::socket::{Credentials, MAX_DESCRIPTORS};
use crate::wait::Deadline;
use crate::{Descriptor, Errno, Error};

/// The bits that the file of a socket has while its server does not listen yet.
///
/// A client of another user is refused then as it is by a server that does not want him. By this mode, which no
/// server is left with, he sees that he has to wait.
const UNFINISHED_MODE: u32 = 0o200;

/// A path that a socket can have.
#[derive(Debug)]
struct Place {
    directory: CString,
    name: CString,
    /// Both.
    address: Address,
}

impl Place {
    fn new(path: &Path) -> Result<Self, Error> {
        if path.as_os_str().is_empty() {
            return Err(NameFault::Empty.into());
        }
        let name = path.file_name().ok_or(NameFault::Dots)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        // A path that ends in a slash names what one without it does.
        let whole = c_string(&parent.join(name))?;
        let too_long = Error::SocketPathTooLong { bytes: whole.as_bytes().len() };
        let address = Address::new(&whole).ok_or(too_long)?;
        Ok(Self { directory: c_string(directory)?, name: c_string(Path::new(name))?, address })
    }
}

fn c_string(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| NameFault::Zero.into())
}

/// Attempts what does not block, again whenever the socket may be ready for it, until the deadline.
fn when_ready<T>(
    socket: &Descriptor,
    event: Event,
    operation: &'static str,
    deadline: Deadline,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Error> {
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(Errno::AGAIN) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(Error::Disconnected),
            Err(error) => return Err(Error::os(operation, error)),
        }
        let left = deadline.left();
        if left.is_zero() {
            return Err(Error::TimedOut { operation, source: Errno::AGAIN });
        }
        socket::wait(socket, event, left).map_err(|error| Error::os(operation, error))?;
    }
}
