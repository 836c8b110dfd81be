//! Descriptors that become readable when somebody is to wake.
//!
//! # Safety
//!
//! A descriptor is open for as long as its owner lives, and the kernel reads and writes the buffers that it is given
//! within their length.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
// Not those of the models: nothing depends on it.
use core::sync::atomic::{AtomicBool, Ordering};
use std::format;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::vec::Vec;

use super::{errno, now, timespec};
use crate::Error;
use crate::sys::{Deadline, Woken};

/// A descriptor that is readable once somebody was to be woken: for poll, epoll, io_uring, or an async runtime.
///
/// It is an eventfd, or where the kernel or a sandbox refuses that, a pipe. Either way one descriptor, which both sides
/// have: pass it to the other process as any other, and make an `Event` of it there. Whatever number of signals nobody
/// has seen count as one; to signal never blocks and never fails for want of a reader.
///
/// Several rings may share one, of as many peers. Of those who wait on one, all have to wait for the same things, as
/// the consumers of an mpmc ring do: whoever goes to sleep takes the signals back, and another who has not seen them by
/// then sleeps on until its slice is over.
///
/// ```
/// use ring_notify::Event;
/// use std::os::fd::{AsFd, OwnedFd};
///
/// let event = Event::new()?;
/// for _ in 0..100_000 {
///     event.signal();
/// }
/// assert!(event.clear());
/// assert!(!event.clear());
///
/// let passed: OwnedFd = event.as_fd().try_clone_to_owned()?;
/// let other = Event::try_from(passed)?;
/// other.signal();
/// assert!(event.clear());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Event {
    descriptor: OwnedFd,
    /// Nobody can sleep on it: it would be readable for ever.
    is_odd: AtomicBool,
}

/// What an [`Event`] is to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// An eventfd.
    EventFd,
    /// A pipe, opened to read and to write.
    Pipe,
}

impl Event {
    /// Opens one that no program inherits which is started later.
    ///
    /// # Errors
    ///
    /// [`Error::NoEvent`] if neither an eventfd nor a pipe can be had.
    pub fn new() -> Result<Self, Error> {
        match open_eventfd().or_else(|_| open_pipe()) {
            Ok(descriptor) => Ok(Self { descriptor, is_odd: AtomicBool::new(false) }),
            Err(errno) => Err(Error::NoEvent { errno }),
        }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        if file_type(&self.descriptor) == Some(libc::S_IFIFO) { EventKind::Pipe } else { EventKind::EventFd }
    }

    /// Makes it readable, which whoever waits for edges notices also if it is readable already. Never blocks.
    pub fn signal(&self) {
        if self.add_one() == Err(libc::EAGAIN) {
            // It is full, and no edge came of that.
            self.clear();
            let _ = self.add_one();
        }
    }

    fn add_one(&self) -> Result<(), c_int> {
        let one = 1_u64.to_ne_bytes();
        let place = one.as_ptr().cast::<c_void>();
        // SAFETY: the descriptor is open and the buffer has that length.
        let written = unsafe { libc::write(self.descriptor.as_raw_fd(), place, one.len()) };
        if written < 0 { Err(errno()) } else { Ok(()) }
    }

    /// Takes all signals back, and says whether there were any.
    ///
    /// Whoever else has the descriptor can make it a blocking one, and then this blocks until there is a signal. So with a
    /// peer that is not trusted wait by futex.
    pub fn clear(&self) -> bool {
        /// As many as a pipe holds at most, and more.
        const MOST_READS: u32 = 1024;
        let mut buffer = [0_u8; 4096];
        let mut had_any = false;
        for _ in 0..MOST_READS {
            let place = buffer.as_mut_ptr().cast::<c_void>();
            // SAFETY: the descriptor is open and the buffer has that length.
            let read = unsafe { libc::read(self.descriptor.as_raw_fd(), place, buffer.len()) };
            match usize::try_from(read) {
                Ok(0) => break,
                // Less than the buffer takes: an eventfd's count, or the rest of a pipe.
                Ok(read) if read < buffer.len() => return true,
                Ok(_) => had_any = true,
                Err(_) if [libc::EAGAIN, libc::EINTR].contains(&errno()) => return had_any,
                Err(_) => break,
            }
        }
        // ORDERING: Relaxed: nothing depends on it but how long a sleep is.
        self.is_odd.store(true, Ordering::Relaxed);
        had_any
    }

    /// What was taken for an event and cannot be cleared, such as a socket whose other end is gone.
    fn is_odd(&self) -> bool {
        // ORDERING: Relaxed: nothing depends on it but how long a sleep is.
        self.is_odd.load(Ordering::Relaxed)
    }

    pub(crate) fn wait(&self, deadline: Deadline) -> Woken {
        wait_for_any(core::iter::once(self), deadline)
    }
}

/// Readable when somebody is to wake. To read it oneself is [`clear`](Event::clear).
impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// One that the other side has opened. It is made non-blocking, for whoever has it.
///
/// # Errors
///
/// [`Error::NotAnEvent`] if it is a file, a socket, a device, or anything else with a type of its own. What passes and
/// cannot be cleared, such as a pipe whose other end is gone, is not slept on: it is looked once a millisecond, and reports
/// say so.
impl TryFrom<OwnedFd> for Event {
    type Error = Error;

    fn try_from(descriptor: OwnedFd) -> Result<Self, Error> {
        /// What the kernel says of eventfds and their like.
        const NO_TYPE: libc::mode_t = 0;
        if !matches!(file_type(&descriptor), Some(libc::S_IFIFO | NO_TYPE)) {
            return Err(Error::NotAnEvent);
        }
        // SAFETY: the descriptor is open; integers only.
        let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) };
        // SAFETY: as above.
        let result = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) };
        if flags < 0 || result < 0 {
            return Err(Error::NotAnEvent);
        }
        Ok(Self { descriptor, is_odd: AtomicBool::new(false) })
    }
}

/// None: the kernel does not tell.
fn file_type(descriptor: &OwnedFd) -> Option<libc::mode_t> {
    // SAFETY: of integers, for which all zeroes are valid.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the descriptor is open, and the kernel fills the structure.
    let result = unsafe { libc::fstat(descriptor.as_raw_fd(), &mut status) };
    (result == 0).then_some(status.st_mode & libc::S_IFMT)
}

/// Waits until one of the events is readable.
pub(crate) fn wait_for_any<'a>(events: impl Iterator<Item = &'a Event>, deadline: Deadline) -> Woken {
    let events: Vec<&Event> = events.collect();
    if events.iter().any(|event| event.is_odd()) {
        return Woken::Refused;
    }
    let mut polled: Vec<libc::pollfd> = events
        .iter()
        .map(|event| libc::pollfd { fd: event.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let left = deadline.map(|deadline| timespec(deadline.saturating_sub(now())));
    let left = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: descriptors are open, the table has that length, and the kernel reads the time only.
    let result =
        unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, left, core::ptr::null()) };
    match result {
        0 => Woken::TimedOut,
        -1 if errno() != libc::EINTR => Woken::Refused,
        _ => Woken::Up,
    }
}

fn owned(number: c_int) -> Result<OwnedFd, c_int> {
    if number < 0 {
        return Err(errno());
    }
    // SAFETY: the kernel has just opened it, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn open_eventfd() -> Result<OwnedFd, c_int> {
    // SAFETY: integers only.
    owned(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
}

/// Opens a pipe and, through /proc, one end of it once more, to read and to write.
fn open_pipe() -> Result<OwnedFd, c_int> {
    let mut ends = [-1; 2];
    // SAFETY: the kernel fills the two numbers.
    let result = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) };
    if result < 0 {
        return Err(errno());
    }
    let (read_end, _write_end) = (owned(ends[0])?, owned(ends[1])?);
    let path = format!("/proc/self/fd/{}\0", read_end.as_raw_fd());
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends in a zero byte.
    owned(unsafe { libc::open(path.as_ptr().cast::<core::ffi::c_char>(), flags) })
}
