//! The side that receives.

use alloc::sync::Arc;
use core::time::Duration;

use ring_core::sync::Closable;
use ring_core::{AssumeAlive, Liveness, Region, bytes};

#[cfg(feature = "std")]
use crate::error::Error;
use crate::error::{RecvError, WaitError};
use crate::report::Report;
use crate::ring::{self, Consumer, Pop, Try};
use crate::side::Side;
use crate::{Counters, Watch};

/// A consumer that waits for messages, and wakes producers that wait for room: made by
/// [`Options::receiver`](crate::Options::receiver) of a consumer of any ring.
///
/// Dropping it returns the credit of all that was received, wakes who waits for room, and gives the role back.
#[derive(Debug)]
pub struct Receiver<C: Consumer, L = AssumeAlive> {
    pub(crate) side: Side<C, L>,
}

impl<C: Pop, L: Liveness> Receiver<C, L> {
    /// Receives a message if there is one. None: there is none, or in an mpmc ring another handle is in the way.
    ///
    /// # Errors
    ///
    /// What the ring says, but for that it is empty or busy.
    #[inline(always)]
    pub fn try_recv(&mut self) -> Result<Option<C::Message>, C::Error> {
        match self.side.attempt_shortly(&mut C::pop) {
            Some(result) => result.map(Some),
            None => self.try_recv_and_tell(),
        }
    }

    #[cold]
    #[inline(never)]
    fn try_recv_and_tell(&mut self) -> Result<Option<C::Message>, C::Error> {
        match self.side.attempt(&mut C::pop) {
            Try::Done(result) => result.map(Some),
            Try::Nothing | Try::Busy => Ok(None),
        }
    }

    /// Receives a message, and waits for one as long as it takes.
    ///
    /// # Errors
    ///
    /// [`RecvError::Ring`] with what the ring says, such as that it is closed; [`RecvError::PeerGone`] if a
    /// [`liveness`](crate::Options::liveness) tells.
    #[inline]
    pub fn recv(&mut self) -> Result<C::Message, RecvError<C::Error>> {
        self.recv_within(None, C::pop)
    }

    /// As [`recv`](Self::recv), for so long at most.
    ///
    /// # Errors
    ///
    /// As `recv`; [`RecvError::TimedOut`].
    #[inline]
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<C::Message, RecvError<C::Error>> {
        self.recv_within(Some(timeout), C::pop)
    }

    /// Waits for a message, and receives into `values` from the front as many as are there. Returns how many.
    ///
    /// ```
    /// use ring_core::{HeapRegion, spsc};
    /// use ring_notify::Options;
    ///
    /// let layout = spsc::Layout::<u64>::new(4)?;
    /// let region = HeapRegion::new(layout.bytes());
    /// let (producer, consumer) = spsc::create(&region, &layout)?;
    /// let mut sender = Options::new().sender(producer)?;
    /// let mut receiver = Options::new().receiver(consumer)?;
    /// sender.send_slice(&[1, 2, 3])?;
    /// let mut values = [0; 8];
    /// assert_eq!(receiver.recv_slice(&mut values), Ok(3));
    /// assert_eq!(values[..3], [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As `recv`.
    #[inline]
    pub fn recv_slice(&mut self, values: &mut [C::Message]) -> Result<usize, RecvError<C::Error>> {
        self.recv_within(None, |consumer| consumer.pop_slice(values))
    }

    /// As [`recv_slice`](Self::recv_slice), for so long at most.
    ///
    /// # Errors
    ///
    /// As `recv_timeout`.
    #[inline]
    pub fn recv_slice_timeout(
        &mut self,
        values: &mut [C::Message],
        timeout: Duration,
    ) -> Result<usize, RecvError<C::Error>> {
        self.recv_within(Some(timeout), |consumer| consumer.pop_slice(values))
    }
}

impl<R: Region, L: Liveness> Receiver<bytes::Consumer<R>, L> {
    /// Receives a message into `bytes` if there is one, and returns its length. None: there is none.
    ///
    /// # Errors
    ///
    /// What the ring says, but for that it is empty.
    #[inline(always)]
    pub fn try_recv(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, bytes::PopError> {
        match self.side.attempt(&mut |consumer| ring::pop_bytes(consumer, bytes)) {
            Try::Done(result) => result.map(Some),
            Try::Nothing | Try::Busy => Ok(None),
        }
    }

    /// Receives a message into `bytes`, waits for one as long as it takes, and returns its length.
    ///
    /// # Errors
    ///
    /// [`RecvError::Ring`] with what the ring says, such as that it is closed, or `BufferTooShort`, which leaves the
    /// message there; [`RecvError::PeerGone`] if a [`liveness`](crate::Options::liveness) tells.
    #[inline]
    pub fn recv(&mut self, bytes: &mut [u8]) -> Result<usize, RecvError<bytes::PopError>> {
        self.recv_within(None, |consumer| ring::pop_bytes(consumer, bytes))
    }

    /// As [`recv`](Self::recv), for so long at most.
    ///
    /// # Errors
    ///
    /// As `recv`; [`RecvError::TimedOut`].
    #[inline]
    pub fn recv_timeout(
        &mut self,
        bytes: &mut [u8],
        timeout: Duration,
    ) -> Result<usize, RecvError<bytes::PopError>> {
        self.recv_within(Some(timeout), |consumer| ring::pop_bytes(consumer, bytes))
    }
}

impl<C: Consumer + Closable, L: Liveness> Receiver<C, L> {
    /// Closes the ring for good and for all, and wakes all who wait. What was sent can still be received. Of the rings
    /// of ring-core, mpmc lets a consumer do so.
    pub fn close(&mut self) {
        self.side.ring.close_ring();
        self.side.notify_all();
    }
}

impl<C: Consumer, L: Liveness> Receiver<C, L> {
    /// Waits until there is something to be received, or to be told by the ring. None: as long as it takes.
    ///
    /// Of use before [`consume`](Self::consume), to read messages in place. In an mpmc ring another handle may be
    /// faster.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`], and [`WaitError::PeerGone`] if a [`liveness`](crate::Options::liveness) tells.
    pub fn ready(&mut self, timeout: Option<Duration>) -> Result<(), WaitError> {
        self.side.wait_until_ready(timeout)
    }

    /// Says that this side is about to sleep in a loop of the caller's own: poll, epoll, io_uring, until its
    /// [`messages_event`](crate::Options::messages_event) is readable. True: sleep now. False:
    /// there is something to be received, or to be told by the ring.
    ///
    /// Without it nobody signals the event: it is signalled only for those who have said that they sleep, once for each
    /// time. Slices are the loop's own affair: one that wakes up now and then, and waits with a time-out of zero, asks the
    /// [`liveness`](crate::Options::liveness). `examples/event_loop.rs` has it all.
    ///
    /// # Errors
    ///
    /// [`Error::EventMissing`].
    #[cfg(feature = "std")]
    pub fn arm(&mut self) -> Result<bool, Error> {
        self.side.arm()
    }

    /// Lets `use_it` do with the consumer whatever it can do, such as reading messages in place, and then wakes who
    /// waits for what that has freed.
    ///
    /// ```
    /// use ring_core::{HeapRegion, bytes};
    /// use ring_notify::Options;
    ///
    /// let layout = bytes::Layout::new(256)?;
    /// let region = HeapRegion::new(layout.bytes());
    /// let (producer, consumer) = bytes::create(&region, &layout)?;
    /// let mut sender = Options::new().sender(producer)?;
    /// let mut receiver = Options::new().receiver(consumer)?;
    /// sender.send(b"in place")?;
    ///
    /// receiver.ready(None)?;
    /// let is_whole = receiver.consume(|consumer| {
    ///     let grant = consumer.try_peek().unwrap();
    ///     let is_whole = *grant == *b"in place";
    ///     grant.release();
    ///     is_whole
    /// });
    /// assert!(is_whole);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn consume<T>(&mut self, use_it: impl FnOnce(&mut C) -> T) -> T {
        self.side.use_and_tell(use_it)
    }

    /// The consumer.
    #[must_use]
    pub fn ring(&self) -> &C {
        &self.side.ring
    }

    /// Turns that it spins at present before it sleeps: fixed, or as [learned](crate::Strategy::adaptive).
    #[must_use]
    pub fn spin_turns(&self) -> u32 {
        self.side.budget.turns()
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.side.tally.read()
    }

    /// Reads the same from elsewhere, while it waits.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.side.tally))
    }

    /// What it got of what it was asked to use.
    #[must_use]
    pub fn report(&self) -> Report {
        self.side.report()
    }

    #[inline(always)]
    fn recv_within<T, E>(
        &mut self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut C) -> Try<Result<T, E>>,
    ) -> Result<T, RecvError<E>> {
        match self.side.attempt_shortly(&mut attempt) {
            Some(result) => result.map_err(RecvError::Ring),
            None => self.recv_later(timeout, attempt),
        }
    }

    #[cold]
    #[inline(never)]
    fn recv_later<T, E>(
        &mut self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut C) -> Try<Result<T, E>>,
    ) -> Result<T, RecvError<E>> {
        let result = match self.side.attempt(&mut attempt) {
            Try::Done(result) => result,
            _ => self.side.wait(timeout, attempt)?,
        };
        result.map_err(RecvError::Ring)
    }
}
