//! The side that sends.

use alloc::sync::Arc;
use core::time::Duration;

use ring_core::sync::Closable;
use ring_core::{AssumeAlive, Liveness, Region, bytes};

#[cfg(feature = "std")]
use crate::error::Error;
use crate::error::{SendError, WaitError};
use crate::report::Report;
use crate::ring::{self, NotPushed, Producer, Push, Try};
use crate::side::Side;
use crate::{Counters, Watch};

/// A producer that wakes consumers that wait for messages, and waits for room: made by
/// [`Options::sender`](crate::Options::sender) of a producer of any ring.
///
/// Dropping it gives the role back and leaves the ring open: a successor goes on. [`close`](Self::close) ends it.
#[derive(Debug)]
pub struct Sender<P: Producer, L = AssumeAlive> {
    pub(crate) side: Side<P, L>,
}

impl<P: Push, L: Liveness> Sender<P, L> {
    /// Sends a message if there is room. It comes back as `Ok(Some(_))` where there is none, or in an mpmc ring another
    /// handle is in the way.
    ///
    /// # Errors
    ///
    /// What the ring says, but for that it is full or busy.
    #[inline(always)]
    pub fn try_send(&mut self, value: P::Message) -> Result<Option<P::Message>, P::Error> {
        match self.side.push(value) {
            Ok(()) => Ok(None),
            Err(NotPushed::Error(error)) => Err(error),
            Err(NotPushed::Full(value) | NotPushed::Busy(value)) => Ok(Some(value)),
        }
    }

    /// Sends a message, and waits for room as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SendError::Ring`] with what the ring says, such as that it is closed; [`SendError::PeerGone`] if a
    /// [`liveness`](crate::Options::liveness) tells. The message comes back.
    #[inline]
    pub fn send(&mut self, value: P::Message) -> Result<(), SendError<P::Error, P::Message>> {
        self.send_within(None, value)
    }

    /// As [`send`](Self::send), for so long at most.
    ///
    /// # Errors
    ///
    /// As `send`; [`SendError::TimedOut`].
    #[inline]
    pub fn send_timeout(
        &mut self,
        value: P::Message,
        timeout: Duration,
    ) -> Result<(), SendError<P::Error, P::Message>> {
        self.send_within(Some(timeout), value)
    }

    /// Sends messages from the front of `values`, as many as there is room for, and returns how many. Waits until there
    /// is room for one.
    ///
    /// Whoever waits is woken once for all of them.
    ///
    /// # Errors
    ///
    /// As `send`, with no message in it.
    #[inline]
    pub fn send_slice(&mut self, values: &[P::Message]) -> Result<usize, SendError<P::SliceError, ()>> {
        self.send_slice_within(None, values)
    }

    /// As [`send_slice`](Self::send_slice), for so long at most.
    ///
    /// # Errors
    ///
    /// As `send_timeout`.
    #[inline]
    pub fn send_slice_timeout(
        &mut self,
        values: &[P::Message],
        timeout: Duration,
    ) -> Result<usize, SendError<P::SliceError, ()>> {
        self.send_slice_within(Some(timeout), values)
    }

    #[inline(always)]
    fn send_within(
        &mut self,
        timeout: Option<Duration>,
        value: P::Message,
    ) -> Result<(), SendError<P::Error, P::Message>> {
        match self.side.push(value) {
            Ok(()) => Ok(()),
            Err(NotPushed::Error(error)) => Err(SendError::Ring(error)),
            Err(NotPushed::Full(value) | NotPushed::Busy(value)) => self.send_later(timeout, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn send_later(
        &mut self,
        timeout: Option<Duration>,
        value: P::Message,
    ) -> Result<(), SendError<P::Error, P::Message>> {
        let mut slot = Some(value);
        let result = self.side.wait(timeout, |producer| push_from(&mut slot, producer));
        sent_from(slot, result)
    }

    #[inline(always)]
    fn send_slice_within(
        &mut self,
        timeout: Option<Duration>,
        values: &[P::Message],
    ) -> Result<usize, SendError<P::SliceError, ()>> {
        let mut attempt = |producer: &mut P| producer.push_slice(values);
        let result = match self.side.attempt(&mut attempt) {
            Try::Done(result) => result,
            _ => self.side.wait(timeout, attempt).map_err(|error| SendError::over(error, ()))?,
        };
        result.map_err(SendError::Ring)
    }
}

impl<R: Region, L: Liveness> Sender<bytes::Producer<R>, L> {
    /// Sends a message if there is room, and says whether there was.
    ///
    /// # Errors
    ///
    /// What the ring says, but for that it is full.
    #[inline(always)]
    pub fn try_send(&mut self, message: &[u8]) -> Result<bool, bytes::PushError> {
        match self.side.attempt(&mut |producer| ring::push_bytes(producer, message)) {
            Try::Done(result) => result.map(|()| true),
            Try::Nothing | Try::Busy => Ok(false),
        }
    }

    /// Sends a message, and waits for room as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SendError::Ring`] with what the ring says, such as `TooLong`; [`SendError::PeerGone`] if a
    /// [`liveness`](crate::Options::liveness) tells.
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError<bytes::PushError, ()>> {
        self.send_within(None, message)
    }

    /// As [`send`](Self::send), for so long at most.
    ///
    /// # Errors
    ///
    /// As `send`; [`SendError::TimedOut`].
    #[inline]
    pub fn send_timeout(
        &mut self,
        message: &[u8],
        timeout: Duration,
    ) -> Result<(), SendError<bytes::PushError, ()>> {
        self.send_within(Some(timeout), message)
    }

    #[inline(always)]
    fn send_within(
        &mut self,
        timeout: Option<Duration>,
        message: &[u8],
    ) -> Result<(), SendError<bytes::PushError, ()>> {
        let mut attempt = |producer: &mut bytes::Producer<R>| ring::push_bytes(producer, message);
        let result = match self.side.attempt(&mut attempt) {
            Try::Done(result) => result,
            _ => self.side.wait(timeout, attempt).map_err(|error| SendError::over(error, ()))?,
        };
        result.map_err(SendError::Ring)
    }
}

impl<P: Producer, L: Liveness> Sender<P, L> {
    /// Waits until there is room, or the ring has something else to tell. In a byte ring: room for a message of any
    /// length. None: as long as it takes.
    ///
    /// Of use before [`publish`](Self::publish), to write messages in place. In an mpmc ring another handle may be
    /// faster.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`], and [`WaitError::PeerGone`] if a [`liveness`](crate::Options::liveness) tells.
    pub fn ready(&mut self, timeout: Option<Duration>) -> Result<(), WaitError> {
        self.side.wait_until_ready(timeout)
    }

    /// Says that this side is about to sleep in a loop of the caller's own: poll, epoll, io_uring, until its
    /// [`room_event`](crate::Options::room_event) is readable. True: sleep now. False:
    /// there is room, or the ring has something else to tell.
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

    /// Lets `use_it` do with the producer whatever it can do, such as writing messages in place, and then wakes who
    /// waits for them: once, whatever their number.
    ///
    /// ```
    /// use ring_core::{HeapRegion, spsc};
    /// use ring_notify::Options;
    ///
    /// let layout = spsc::Layout::<u64>::new(16)?;
    /// let region = HeapRegion::new(layout.bytes());
    /// let (producer, consumer) = spsc::create(&region, &layout)?;
    /// let mut sender = Options::new().sender(producer)?;
    /// let mut receiver = Options::new().receiver(consumer)?;
    ///
    /// let sent = sender.publish(|producer| producer.push_iter(1..=3))?;
    /// assert_eq!(sent, 3);
    /// assert_eq!(receiver.recv(), Ok(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn publish<T>(&mut self, use_it: impl FnOnce(&mut P) -> T) -> T {
        self.side.use_and_tell(use_it)
    }

    /// The producer.
    #[must_use]
    pub fn ring(&self) -> &P {
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
}

impl<P: Producer + Closable, L> Sender<P, L> {
    /// Closes the ring for good, and wakes all who wait: they get what was sent, then learn that it is closed.
    ///
    /// ```
    /// use ring_core::{HeapRegion, spsc};
    /// use ring_notify::{Options, RecvError};
    ///
    /// let layout = spsc::Layout::<u64>::new(4)?;
    /// let region = HeapRegion::new(layout.bytes());
    /// let (producer, consumer) = spsc::create(&region, &layout)?;
    /// let sender = Options::new().sender(producer)?;
    /// let mut receiver = Options::new().receiver(consumer)?;
    /// sender.close();
    /// assert_eq!(receiver.recv(), Err(RecvError::Ring(spsc::PopError::Closed)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(mut self) {
        // Whoever waits is woken by the drop.
        self.side.ring.close_ring();
    }
}

/// Pushes the message in the slot, which stays there if it finds no room.
#[inline(always)]
pub(crate) fn push_from<P: Push>(
    slot: &mut Option<P::Message>,
    producer: &mut P,
) -> Try<Result<(), P::Error>> {
    let Some(value) = slot.take() else { unreachable!("it is tried again only with the message") };
    match producer.push(value) {
        Ok(()) => Try::Done(Ok(())),
        Err(NotPushed::Error(error)) => Try::Done(Err(error)),
        Err(NotPushed::Full(value)) => {
            *slot = Some(value);
            Try::Nothing
        }
        Err(NotPushed::Busy(value)) => {
            *slot = Some(value);
            Try::Busy
        }
    }
}

/// How it ended, with the message that is still in the slot.
#[inline(always)]
pub(crate) fn sent_from<E, M>(
    slot: Option<M>,
    result: Result<Result<(), E>, WaitError>,
) -> Result<(), SendError<E, M>> {
    match (result, slot) {
        (Ok(result), _) => result.map_err(SendError::Ring),
        (Err(error), Some(value)) => Err(SendError::over(error, value)),
        (Err(_), None) => unreachable!("what was not pushed came back"),
    }
}
