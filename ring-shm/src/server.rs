//! Roles of a ring, passed over a socket to whoever asks.
//!
//! A client needs neither the segment's name nor /proc. It gets a descriptor to map, and one of its own that is locked for
//! its role already, so that nobody else takes the role while both are on their way. Should the client die on the way, the
//! kernel drops what was sent to it, and the lock with it.
//!
//! Each message is a row of 64-bit words in the machine's byte order.
//!
//! | word | request | answer |
//! |---|---|---|
//! | 0 | "ring-ask" | "ring-ans" |
//! | 1 | version: 1 | version: 1 |
//! | 2 | kind of ring, as its header has it | 0 granted, 1 taken, 2 all places taken, 3 another kind of ring |
//! | 3 | 1 to push, 2 to pop | 0: 0 no role, 1 producer, 2 consumer, 2 + n place n; 1: by which process; 2: how many there are; 3: the kind |
//!
//! With an answer that grants come the segment's descriptor, if there is a role the one that is locked for it, and then
//! what the server adds.

#[cfg(test)]
mod tests;
mod words;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use ring_core::{Inspector, Kind, Role};

use self::words::{Answer, Request};
use crate::claim::{Claim, role_taken};
use crate::fork::{NoForks, Unforked};
use crate::ring::{Side, Wish, check_ring, kind_of};
use crate::socket::{Connection, Credentials, Listener, MAX_DESCRIPTORS};
use crate::wait::{Deadline, Wait};
use crate::{Descriptor, Error, Options, Segment, lock, sys};

/// How long a client may take in all, from when it is accepted until it has asked and there is room for the answer. It
/// asks as soon as it is connected.
const PATIENCE: Duration = Duration::from_secs(1);

/// Hands out roles of rings in anonymous segments, over a socket in the file system.
///
/// ```
/// use core::time::Duration;
/// use ring_core::spsc;
/// use ring_shm::{Claim, Options};
///
/// # let path = std::env::temp_dir().join(format!("ring-shm-doc-server-{}.sock", std::process::id()));
/// // One process:
/// let layout = spsc::Layout::new(1024)?;
/// let mut quotes: spsc::Producer<u64, _> = Options::new().create_anonymous_ring(&layout)?;
/// quotes.try_push(7).unwrap();
/// let server = Options::new().listen(&path)?;
///
/// // Another:
/// let client = std::thread::spawn(move || {
///     let mut quotes: spsc::Consumer<u64, _> = Options::new().connect_ring(&path, Duration::from_secs(5))?;
///     assert_eq!(quotes.try_pop(), Ok(7));
///     Ok::<(), ring_shm::Error>(())
/// });
///
/// let served = server.serve(quotes.region().segment(), Duration::from_secs(5))?.unwrap();
/// println!("{:?} went to process {}", served.role, served.process);
/// client.join().unwrap()?;
/// # Ok::<(), ring_shm::Error>(())
/// ```
///
/// Dropping it closes the socket and removes its file. A server that is killed leaves the file, which the next server at
/// the path replaces.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    peer_user: Option<u32>,
}

/// Whom a server has given a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// The role; none for a consumer of a broadcast ring.
    pub role: Option<Role>,
    /// The client's process; 0 if it is in a process namespace that this one cannot see.
    pub process: u32,
    /// Its effective user when it connected.
    pub user: u32,
    /// Its effective group.
    pub group: u32,
}

impl Options {
    /// Opens a socket at a path, to hand out roles over it. Its file gets the [`mode`](Self::mode) of these options:
    /// whoever may write to it can connect.
    ///
    /// The directory should be one in which nobody who is not trusted can make files, or a client connects to somebody
    /// else's socket: see [`peer_user`](Self::peer_user).
    ///
    /// # Errors
    ///
    /// [`Error::SocketInUse`] if a server listens there or something else is there, [`Error::SocketPathTooLong`],
    /// [`Error::BadName`], [`Error::NoPermission`], [`Error::TimedOut`] if another process keeps the directory locked,
    /// [`Error::Os`].
    pub fn listen(&self, path: impl AsRef<Path>) -> Result<Server, Error> {
        let listener = Listener::bind(path.as_ref(), self.mode)?;
        Ok(Server { listener, peer_user: self.peer_user })
    }

    /// Takes a side of the ring that a [`Server`] hands out at a path. Waits up to `timeout` until the server is there, it
    /// serves, and the role is free.
    ///
    /// The segment is checked before it is mapped, as by [`attach_fd`](Self::attach_fd).
    ///
    /// # Errors
    ///
    /// At the time-out: [`Error::TimedOut`], [`Error::RoleTaken`]. At once: [`Error::ForeignPeer`],
    /// [`Error::OtherRing`], [`Error::BadMessage`], [`Error::Disconnected`], [`Error::SocketPathTooLong`], and those of
    /// [`attach_fd`](Self::attach_fd), [`Error::Ring`].
    pub fn connect_ring<S: Side>(&self, path: impl AsRef<Path>, timeout: Duration) -> Result<S, Error> {
        self.connect_ring_with(path, timeout).map(|(side, _)| side)
    }

    /// As [`connect_ring`](Self::connect_ring), with the descriptors that the server added.
    ///
    /// # Errors
    ///
    /// As for `connect_ring`.
    pub fn connect_ring_with<S: Side>(
        &self,
        path: impl AsRef<Path>,
        timeout: Duration,
    ) -> Result<(S, Vec<Descriptor>), Error> {
        let deadline = Deadline::after(timeout);
        // Each look takes some of the server's time.
        let mut wait = Wait::until(deadline).patient();
        let mut occupied = None;
        loop {
            match (self.connect_once(path.as_ref(), deadline), occupied) {
                (Err(error), _) if error.is_occupied() && wait.again() => occupied = Some(error),
                // It serves others meanwhile, and what it has said tells more.
                (Err(Error::TimedOut { .. }), Some(error)) => return Err(error),
                (result, _) => return result,
            }
        }
    }

    fn connect_once<S: Side>(&self, path: &Path, deadline: Deadline) -> Result<(S, Vec<Descriptor>), Error> {
        let connection = Connection::connect(path, deadline)?;
        check_user(self.peer_user, connection.peer())?;
        connection.send(&Request::of::<S>().to_bytes(), &[], deadline)?;
        let Passed { role, segment, mut lock, added } = Passed::receive::<S>(&connection, deadline)?;
        if !fits::<S>(role) {
            return Err(Error::BadMessage { fault: "another role than the one that was asked for" });
        }
        // It is there at once: a server makes the ring before it hands it out.
        let segment = Arc::new(self.attach_fd(segment, Duration::ZERO)?);
        if let Some(lock) = lock.as_ref().and_then(Unforked::get) {
            check_same_file(&segment, lock)?;
        }
        check_ring::<S>(&segment)?;
        let side = S::attach(&segment, &mut |wanted| match lock.take_if(|_| Some(wanted) == role) {
            Some(lock) => claim_passed(&segment, wanted, lock),
            None => Err(Error::RoleTaken { role: wanted, process: 0 }),
        })?;
        Ok((side, added))
    }
}

impl Server {
    /// Waits up to `timeout` for a client and gives it the role that it asks for in the ring of `segment`. None: nobody
    /// came.
    ///
    /// Serves one client; it takes a second longer at most, if the client does not say what it wants. The client has the
    /// role when this returns, or is dead, and then the role is free.
    ///
    /// # Errors
    ///
    /// Of the client, and the next may fare better: [`Error::RoleTaken`], [`Error::OtherRing`], [`Error::ForeignPeer`],
    /// [`Error::TimedOut`], [`Error::Disconnected`], [`Error::BadMessage`]; [`Error::Ring`] with `TooManyParticipants`.
    /// Of this side: [`Error::NotSealed`] if the segment is a named one, [`Error::NoProc`], [`Error::NoPermission`] if
    /// the segment's mode does not let this user open it once more, [`Error::Ring`] if there is no ring, [`Error::Os`].
    pub fn serve(&self, segment: &Arc<Segment>, timeout: Duration) -> Result<Option<Served>, Error> {
        self.serve_with(segment, &[], timeout)
    }

    /// As [`serve`](Self::serve), with descriptors for the client beside those of the ring: eventfds, say.
    ///
    /// # Errors
    ///
    /// As for `serve`.
    ///
    /// # Panics
    ///
    /// If there are more than 14 descriptors.
    pub fn serve_with(
        &self,
        segment: &Arc<Segment>,
        descriptors: &[&Descriptor],
        timeout: Duration,
    ) -> Result<Option<Served>, Error> {
        assert!(
            descriptors.len() + 2 <= MAX_DESCRIPTORS,
            "a message takes 14 descriptors beside those of the ring"
        );
        if !segment.is_sealed() {
            return Err(Error::NotSealed);
        }
        let connection = match self.listener.accept(Deadline::after(timeout)) {
            Err(Error::TimedOut { .. }) => return Ok(None),
            result => result?,
        };
        check_user(self.peer_user, connection.peer())?;
        let deadline = Deadline::after(PATIENCE);
        let mut bytes = [0; Request::BYTES];
        let length = connection.receive(&mut bytes, &mut [], deadline)?;
        let request = Request::from_bytes(&bytes[..length])?;
        let lock = match choose(segment, &request) {
            Ok(lock) => lock,
            Err(error) => {
                if let Some(answer) = Answer::to(&error) {
                    connection.send(&answer.to_bytes(), &[], deadline)?;
                }
                return Err(error);
            }
        };
        let role = lock.as_ref().map(|(role, _)| *role);
        let own = lock.as_ref().and_then(|(_, lock)| lock.get());
        let all: Vec<&Descriptor> =
            [segment.descriptor()].into_iter().chain(own).chain(descriptors.iter().copied()).collect();
        connection.send(&Answer::Granted(role).to_bytes(), &all, deadline)?;
        let Credentials { process, user, group } = connection.peer();
        Ok(Some(Served { role, process: process.unsigned_abs(), user, group }))
    }
}

/// Readable when a client waits.
impl AsFd for Server {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Takes the role that a client asks for, on a description for it alone. None: it needs none.
fn choose(segment: &Arc<Segment>, request: &Request) -> Result<Option<(Role, Unforked)>, Error> {
    let inspector = Inspector::new(&**segment)?;
    if inspector.kind() != request.kind {
        return Err(Error::OtherRing { found: inspector.kind() });
    }
    if let (Kind::Broadcast, Wish::Pop) = (request.kind, request.wish) {
        return Ok(None);
    }
    let mut no_forks = NoForks::begin()?;
    let lock = no_forks.adopt(segment.open_again()?);
    drop(no_forks);
    let Some(own) = lock.get() else { return Ok(None) };
    let role = request.wish.role();
    // A place that somebody has without a lock is not worth a try where there are others.
    let is_bare = |role| inspector.owner(role).is_some_and(|owner| owner.held && owner.process == 0);
    let is_fit = |candidate: &Role| match request.kind {
        Kind::Mpmc => !is_bare(*candidate),
        _ => *candidate == role,
    };
    for role in inspector.roles().filter(is_fit) {
        // A handle without a claim: no lock would tell when it goes.
        if inspector.owner(role).is_some_and(|owner| owner.held && owner.process == 0) {
            continue;
        }
        if lock::take_role(own, role).map_err(|error| Error::os("lock a role", error))? {
            return Ok(Some((role, lock)));
        }
    }
    match request.kind {
        Kind::Mpmc => {
            Err(ring_core::Error::TooManyParticipants { participants: inspector.participants() }.into())
        }
        _ => Err(role_taken(role, segment.owner(role)?)),
    }
}

/// Whether a role is one for this side.
fn fits<S: Side>(role: Option<Role>) -> bool {
    match (kind_of::<S>(), S::WISH) {
        (Kind::Broadcast, Wish::Pop) => role.is_none(),
        (Kind::Mpmc, _) => matches!(role, Some(Role::Participant(_))),
        _ => role == Some(S::WISH.role()),
    }
}

fn check_user(required: Option<u32>, peer: Credentials) -> Result<(), Error> {
    match required {
        Some(user) if user != peer.user => Err(Error::ForeignPeer { uid: peer.user }),
        _ => Ok(()),
    }
}

/// Claims a role with the lock that was passed for it.
fn claim_passed(segment: &Arc<Segment>, role: Role, lock: Unforked) -> Result<Claim, Error> {
    let claim = Claim::over(segment, role, |_| Ok(lock))?;
    // To the description that is mapped and asked, its own lock would look like none.
    match lock::is_role_taken(segment.descriptor(), role) {
        Ok(true) => Ok(claim),
        Ok(false) => Err(Error::BadMessage { fault: "a role without a description of its own" }),
        Err(error) => Err(Error::os("ask for the role that was sent", error)),
    }
}

/// Whether a lock is one on the segment.
fn check_same_file(segment: &Segment, lock: &Descriptor) -> Result<(), Error> {
    let identity = |descriptor| {
        let status = sys::status(descriptor).map_err(|error| Error::os("examine what was sent", error))?;
        Ok::<_, Error>(status.identity)
    };
    match identity(segment.descriptor())? == identity(lock)? {
        true => Ok(()),
        false => Err(Error::BadMessage { fault: "a role of another segment" }),
    }
}

/// What a client got.
struct Passed {
    role: Option<Role>,
    segment: Descriptor,
    lock: Option<Unforked>,
    added: Vec<Descriptor>,
}

impl Passed {
    fn receive<S: Side>(connection: &Connection, deadline: Deadline) -> Result<Self, Error> {
        let mut bytes = [0; Answer::BYTES];
        let mut descriptors = [const { None }; MAX_DESCRIPTORS];
        connection.wait_for_message(deadline)?;
        // The lock is on its description already: a child that is forked from here on must not keep a copy.
        let mut no_forks = NoForks::begin()?;
        let length = connection.receive(&mut bytes, &mut descriptors, Deadline::after(Duration::ZERO))?;
        let role = match Answer::from_bytes(&bytes[..length])? {
            Answer::Granted(role) => role,
            Answer::Taken { process } => return Err(Error::RoleTaken { role: S::WISH.role(), process }),
            Answer::Full { participants } => {
                return Err(ring_core::Error::TooManyParticipants { participants }.into());
            }
            Answer::OtherKind { found } => return Err(Error::OtherRing { found }),
        };
        let mut descriptors = descriptors.into_iter().flatten();
        let mut next = || descriptors.next().ok_or(Error::BadMessage { fault: "too few descriptors" });
        let segment = next()?;
        let lock = role.map(|_| Ok::<_, Error>(no_forks.adopt(next()?))).transpose()?;
        Ok(Self { role, segment, lock, added: descriptors.collect() })
    }
}
