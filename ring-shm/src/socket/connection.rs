//! One end of a connection.

use std::path::Path;

use super::{Credentials, MAX_DESCRIPTORS, Place, UNFINISHED_MODE, when_ready};
use crate::fork::{NoForks, Unforked};
use crate::sys;
use crate::sys::socket::{self, Event, Received};
use crate::wait::{Deadline, Wait};
use crate::{Descriptor, Errno, Error};

/// A connection to one other process, which a forked child does not keep: what is on its way to this process, roles
/// among it, would live on with the child.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Unforked,
    peer: Credentials,
}

impl Connection {
    pub(super) fn new(socket: Unforked) -> Result<Self, Error> {
        let peer =
            socket::peer(own(&socket)?).map_err(|error| Error::os("ask who the other side is", error))?;
        Ok(Self { socket, peer })
    }

    /// [`Error::Disconnected`] in a forked child.
    pub(super) fn socket(&self) -> Result<&Descriptor, Error> {
        own(&self.socket)
    }

    /// Connects to the server at a path. Waits for one that has not started yet, and for one whose clients queue
    /// up. The server need not have accepted when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`], [`Error::SocketPathTooLong`], [`Error::TimedOut`]; [`Error::NoPermission`] at once if
    /// the server does not let this user in; [`Error::Os`].
    pub(crate) fn connect(path: &Path, deadline: Deadline) -> Result<Self, Error> {
        const OPERATION: &str = "connect to the server";
        let place = Place::new(path)?;
        let mut no_forks = NoForks::begin()?;
        let socket = no_forks.adopt(socket::open().map_err(|error| Error::os("make a socket", error))?);
        drop(no_forks);
        let mut wait = Wait::until(deadline);
        let mut is_refused = false;
        loop {
            let source = match socket::connect(own(&socket)?, &place.address) {
                Ok(()) => return Self::new(socket),
                // A full queue: there is no event to wait for.
                Err(error @ (Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN)) => error,
                Err(Errno::ACCES) if is_unfinished(&place) => Errno::ACCES,
                // The mode may have been set between the two looks.
                Err(Errno::ACCES) if !is_refused => {
                    is_refused = true;
                    continue;
                }
                Err(error) => return Err(Error::os(OPERATION, error)),
            };
            if !wait.again() {
                return Err(Error::TimedOut { operation: OPERATION, source });
            }
        }
    }

    /// Who is at the other end: to a server the process that connected, to a client the one that listened, as
    /// they were then. Both may have passed their end on since.
    pub(crate) fn peer(&self) -> Credentials {
        self.peer
    }

    /// Sends a message with copies of descriptors, all or nothing.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] if the other side does not read what was sent before, [`Error::Disconnected`],
    /// [`Error::Os`].
    ///
    /// # Panics
    ///
    /// If the message is empty, or has more than [`MAX_DESCRIPTORS`].
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        descriptors: &[&Descriptor],
        deadline: Deadline,
    ) -> Result<(), Error> {
        assert!(!bytes.is_empty(), "an empty message looks like the end of the connection");
        assert!(descriptors.len() <= MAX_DESCRIPTORS, "a message takes {MAX_DESCRIPTORS} descriptors");
        let socket = self.socket()?;
        let attempt = || socket::send(socket, bytes, descriptors);
        when_ready(socket, Event::Output, "send a message", deadline, attempt)
    }

    /// Waits until a message can be received, or the other side is gone.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], [`Error::Os`].
    pub(crate) fn wait_for_message(&self, deadline: Deadline) -> Result<(), Error> {
        let socket = self.socket()?;
        let attempt = || socket::has_input(socket);
        when_ready(socket, Event::Input, "wait for a message", deadline, attempt)
    }

    /// Receives a message, whose length it returns, and the descriptors that came with it. These fill
    /// `descriptors` from the front and are closed on exec; what was there before is dropped. After an error none
    /// is left open.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`]; [`Error::Disconnected`] at the end of the connection; [`Error::BadMessage`] if there
    /// is more of anything than the caller has room for, or something that was not asked for; [`Error::Os`] with
    /// [`Errno::MFILE`] if this process may not have so many descriptors.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        descriptors: &mut [Option<Descriptor>],
        deadline: Deadline,
    ) -> Result<usize, Error> {
        const OPERATION: &str = "receive a message";
        descriptors.fill_with(|| None);
        let socket = self.socket()?;
        let attempt = || socket::receive(socket, buffer);
        let received = when_ready(socket, Event::Input, OPERATION, deadline, attempt)?;
        let count = received.descriptors.iter().flatten().count();
        check(&received, count, descriptors.len(), OPERATION)?;
        for (place, descriptor) in descriptors.iter_mut().zip(received.descriptors) {
            *place = descriptor;
        }
        Ok(received.bytes)
    }
}

fn own(socket: &Unforked) -> Result<&Descriptor, Error> {
    socket.get().ok_or(Error::Disconnected)
}

/// Whether a message is whole and `count` descriptors fit.
fn check(received: &Received, count: usize, room: usize, operation: &'static str) -> Result<(), Error> {
    let bad = |fault| Err(Error::BadMessage { fault });
    match received {
        Received { is_foreign: true, .. } => bad("a control message without descriptors"),
        Received { is_control_cut: true, .. } if count < MAX_DESCRIPTORS => {
            // Those that are missing had room: the limit was reached, or else a security module kept them back.
            Err(Error::os(operation, Errno::MFILE))
        }
        Received { is_control_cut: true, .. } => bad("too many descriptors"),
        _ if count > room => bad("too many descriptors"),
        Received { is_cut: true, .. } => bad("too long a message"),
        Received { bytes: 0, .. } => Err(Error::Disconnected),
        _ => Ok(()),
    }
}

/// Whether the file at a path, which did not let this user in, is gone or will have another mode.
fn is_unfinished(place: &Place) -> bool {
    let look = || sys::status_in(&sys::open_directory(&place.directory)?, &place.name);
    match look() {
        Ok(status) => status.mode & !UNFINISHED_MODE == 0,
        Err(error) => error == Errno::NOENT,
    }
}
