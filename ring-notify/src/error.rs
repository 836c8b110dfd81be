//! Why a wait ended, and why a handle cannot be made.

/// Why a handle or an event cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The strategy sleeps on an event, and the options have none for this direction.
    #[error(
        "nothing to sleep on: a receiver that waits by an event needs `messages_event`, a sender `room_event`"
    )]
    EventMissing,
    /// An event was asked for, and the kernel refuses eventfds and pipes.
    #[error("the kernel opens neither an eventfd nor a pipe (errno {errno}): wait by futex instead")]
    NoEvent {
        /// Why not the pipe.
        errno: core::ffi::c_int,
    },
    /// The descriptor is neither an eventfd nor a pipe.
    #[error("this descriptor is neither an eventfd nor a pipe: pass that of the other side's `Event`")]
    NotAnEvent,
    /// There is no runtime of tokio, it has no I/O, or it does not take the event's descriptor.
    #[error(
        "there is no runtime of tokio here that takes the event: make the handle inside one, with I/O enabled (errno {errno})"
    )]
    Runtime {
        /// What it said, or 0.
        errno: core::ffi::c_int,
    },
}

/// Why nothing was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecvError<E> {
    /// What the ring says; never that it is empty.
    #[error(transparent)]
    Ring(E),
    /// The time is over, and no message is there.
    #[error("no message came in time")]
    TimedOut,
    /// No message is there, and nobody is on the other side any more: it has died, or has left without closing the ring. A
    /// successor may take its place: to wait again is no mistake.
    #[error("no message is there, and the other side is dead or has left: wait for a successor, or give up")]
    PeerGone,
}

/// Why nothing was sent. The message comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<E, M> {
    /// What the ring says; never that it is full.
    #[error(transparent)]
    Ring(E),
    /// The time is over, and there is no room.
    #[error("there was no room in time")]
    TimedOut(M),
    /// There is no room, and nobody is on the other side any more: it has died, or has left without closing the ring. A
    /// successor may take its place: to wait again is no mistake.
    #[error("there is no room, and the other side is dead or has left: wait for a successor, or give up")]
    PeerGone(M),
}

/// Why a wait ended without what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error("nothing happened in time")]
    TimedOut,
    /// Nobody is on the other side any more: it has died, or has left without closing the ring. A successor may take its
    /// place: to wait again is no mistake.
    #[error("the other side is dead or has left: wait for a successor, or give up")]
    PeerGone,
}

/// Why a wait for several handles ended without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitAnyError {
    /// The time is over.
    #[error("nothing happened in time")]
    TimedOut,
    /// The other side of one of them has died. A successor may take its place.
    #[error("the other side of handle {index} is dead or has left: wait for a successor, or leave it out")]
    PeerGone {
        /// Which one.
        index: usize,
    },
}

impl<E> From<WaitError> for RecvError<E> {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::TimedOut => Self::TimedOut,
            WaitError::PeerGone => Self::PeerGone,
        }
    }
}

impl<E, M> SendError<E, M> {
    pub(crate) fn over(error: WaitError, message: M) -> Self {
        match error {
            WaitError::TimedOut => Self::TimedOut(message),
            WaitError::PeerGone => Self::PeerGone(message),
        }
    }
}
