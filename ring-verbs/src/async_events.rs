//! What happens without having been asked for: a queue pair fails, a port goes down, a queue runs low.
//!
//! # Safety
//!
//! An object that an event is about is there until the event is acknowledged: destroying it waits for that. So each is
//! acknowledged as soon as its object's name was read.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ffi::c_int;
use core::fmt;
use core::time::Duration;

use crate::Errno;
use crate::buffer::Buffer;
use crate::completion_queue::CompletionQueue;
use crate::context::{Context, Open};
use crate::deadline::Deadline;
use crate::error::{Error, Operation};
use crate::shared_receive_queue::SharedReceiveQueue;
use crate::sys::{EventType, ibv_async_event};
use crate::system;

/// The asynchronous events of an open device, one after the other.
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// let mut events = ring_verbs::AsyncEvents::new(&context)?;
/// while let Some(event) = events.wait(None)? {
///     eprintln!("{event}");
/// }
/// # Ok::<(), ring_verbs::Error>(())
/// ```
#[derive(Debug)]
pub struct AsyncEvents {
    open: Arc<Open>,
}

/// Something that has happened, and to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What.
    pub kind: EventType,
    /// To what.
    pub source: EventSource,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventSource {
    /// The queue pair of a number.
    QueuePair(u32),
    /// The completion queue of an [`id`](CompletionQueue::id).
    CompletionQueue(ObjectId),
    /// The shared receive queue of an [`id`](SharedReceiveQueue::id).
    SharedReceiveQueue(ObjectId),
    /// A port.
    Port(u8),
    /// The device, or something that this crate does not make.
    Device,
}

/// Tells an object from others of its kind, as long as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId(usize);

impl AsyncEvents {
    /// Those of `context`. Each is given out once, however many of these there are.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the descriptor cannot be made to return at once.
    pub fn new(context: &Context) -> Result<Self, Error> {
        let events = Self { open: Arc::clone(&context.open) };
        system::set_nonblocking(events.fd()).map_err(|errno| Error::of(Operation::AsyncEvent, errno))?;
        Ok(events)
    }

    /// The next event, where one is there.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn try_next(&mut self) -> Result<Option<AsyncEvent>, Error> {
        let mut raw = ibv_async_event::default();
        // SAFETY: the context is open, and the event can be written.
        let returned =
            unsafe { (self.open.functions.ibv_get_async_event)(self.open.raw.as_ptr(), &raw mut raw) };
        if returned != 0 {
            return match Errno::last() {
                Errno(libc::EAGAIN | libc::EINTR) => Ok(None),
                errno => Err(Error::of(Operation::AsyncEvent, errno)),
            };
        }
        let event = AsyncEvent { kind: raw.event_type, source: source(&raw) };
        // SAFETY: it came just now, and is acknowledged once.
        unsafe { (self.open.functions.ibv_ack_async_event)(&raw mut raw) };
        Ok(Some(event))
    }

    /// Waits for the next event, at most for `timeout` (none: without end); none when the time is over.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<AsyncEvent>, Error> {
        let deadline = timeout.map(Deadline::after);
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(Some(event));
            }
            match system::wait_readable(self.fd(), deadline) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(errno) => return Err(Error::of(Operation::AsyncEvent, errno)),
            }
        }
    }

    fn fd(&self) -> c_int {
        // SAFETY: the context is open, and nobody writes this.
        unsafe { (*self.open.raw.as_ptr()).async_fd }
    }
}

/// What an event is about, which its kind says.
fn source(raw: &ibv_async_event) -> EventSource {
    let element = raw.element;
    match raw.event_type {
        EventType::CQ_ERR => {
            // SAFETY: events of this kind have this member.
            EventSource::CompletionQueue(ObjectId(unsafe { element.cq }.addr()))
        }
        EventType::SRQ_ERR | EventType::SRQ_LIMIT_REACHED => {
            // SAFETY: as above.
            EventSource::SharedReceiveQueue(ObjectId(unsafe { element.srq }.addr()))
        }
        EventType::QP_FATAL
        | EventType::QP_REQ_ERR
        | EventType::QP_ACCESS_ERR
        | EventType::COMM_EST
        | EventType::SQ_DRAINED
        | EventType::PATH_MIG
        | EventType::PATH_MIG_ERR
        | EventType::QP_LAST_WQE_REACHED => {
            // SAFETY: as above.
            let pair = unsafe { element.qp };
            // SAFETY: the queue pair is there until the event is acknowledged.
            EventSource::QueuePair(unsafe { (*pair).qp_num })
        }
        EventType::PORT_ACTIVE
        | EventType::PORT_ERR
        | EventType::LID_CHANGE
        | EventType::PKEY_CHANGE
        | EventType::SM_CHANGE
        | EventType::CLIENT_REREGISTER
        | EventType::GID_CHANGE => {
            // SAFETY: as above.
            EventSource::Port(u8::try_from(unsafe { element.port_num }).unwrap_or(0))
        }
        _ => EventSource::Device,
    }
}

impl fmt::Display for AsyncEvent {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            EventSource::QueuePair(number) => write!(to, "queue pair {number}: ")?,
            EventSource::Port(number) => write!(to, "port {number}: ")?,
            EventSource::CompletionQueue(_) | EventSource::SharedReceiveQueue(_) | EventSource::Device => {}
        }
        write!(to, "{}", self.kind.description())
    }
}

#[cfg(feature = "std")]
impl std::os::fd::AsFd for AsyncEvents {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        // SAFETY: the descriptor is the context's, which outlives the borrow.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.fd()) }
    }
}

impl<B> CompletionQueue<B> {
    /// What asynchronous events name it by.
    pub fn id(&self) -> ObjectId {
        ObjectId(self.as_raw().addr())
    }
}

impl<B: Buffer> SharedReceiveQueue<B> {
    /// What asynchronous events name it by.
    pub fn id(&self) -> ObjectId {
        ObjectId(self.as_raw().addr())
    }
}
