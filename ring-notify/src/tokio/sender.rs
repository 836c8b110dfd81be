//! The side that sends, in a task.

use core::future::poll_fn;
use core::task::{Context, Poll};

use ring_core::sync::Closable;
use ring_core::{AssumeAlive, Liveness, Region, bytes};

use super::sleeper::Sleeper;
use crate::error::{Error, SendError, WaitError};
use crate::ring::{self, Producer, Push};
use crate::sender::{push_from, sent_from};
use crate::{Sender, side};

/// A [`Sender`] whose waits are futures, for tasks of tokio: made by [`Sender::into_async`].
///
/// It never spins: it sleeps until the event is signalled that [`room_event`](crate::Options::room_event) names.
/// Several tasks may share one event, for the same ring or for different ones.
///
/// All its futures are cancel-safe: a message is sent by the poll that says so, and one whose future is dropped before,
/// as `select!` does it, was not sent and is dropped with it. To keep it, wait for [`ready`](Self::ready) and then
/// [`try_send`](Sender::try_send). A ring that always has room does not keep other tasks from running: the sender takes
/// part in tokio's budgets.
///
/// A [`slice`](crate::Options::slice) and an mpmc ring need the runtime's clock (`enable_time`): tokio panics without
/// it. With `slice(None)` other rings do without, unless the [report](Sender::report) speaks of short slices.
///
/// ```
/// use ring_core::{HeapRegion, spsc};
/// use ring_notify::{Event, Options};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layout = spsc::Layout::<u64>::new(1)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (producer, consumer) = spsc::create(region, &layout)?;
/// let options = Options::new().room_event(Event::new()?);
///
/// let mut sender = options.clone().sender(producer)?.into_async()?;
/// let mut receiver = options.receiver(consumer)?;
/// let sum = std::thread::spawn(move || (0..3).map(|_| receiver.recv().unwrap()).sum::<u64>());
/// for value in 1..=3 {
///     sender.send(value).await?;
/// }
/// assert_eq!(sum.join().unwrap(), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncSender<P: Producer, L = AssumeAlive> {
    sender: Sender<P, L>,
    sleeper: Sleeper,
}

impl<P: Producer, L: Liveness> Sender<P, L> {
    /// Lets tasks wait: inside a runtime of tokio with I/O enabled, on which it depends from then on.
    ///
    /// Whatever the [strategy](crate::Options::strategy) was, it sleeps on the event of its direction.
    ///
    /// # Errors
    ///
    /// [`Error::EventMissing`] if the options named no [`room_event`](crate::Options::room_event), and
    /// [`Error::Runtime`] if there is no runtime, or it has no I/O or does not take the event. tokio tells by a panic,
    /// which is caught, that there is no runtime or no I/O in it: a message appears, and a program that aborts at
    /// panics does. The sender is dropped then.
    pub fn into_async(mut self) -> Result<AsyncSender<P, L>, Error> {
        let sleeper = Sleeper::new(&mut self.side)?;
        Ok(AsyncSender { sender: self, sleeper })
    }
}

impl<P: Push, L: Liveness> AsyncSender<P, L> {
    /// Sends a message, and waits for room as long as it takes. If the future is dropped, the message was not sent.
    ///
    /// # Errors
    ///
    /// [`SendError::Ring`] with what the ring says, such as that it is closed; [`SendError::PeerGone`] if a
    /// [`liveness`](crate::Options::liveness) tells. The message comes back. Never `TimedOut`.
    ///
    /// # Panics
    ///
    /// If the runtime in which it was made is shut down, or has no clock and one is needed.
    pub async fn send(&mut self, value: P::Message) -> Result<(), SendError<P::Error, P::Message>> {
        let mut slot = Some(value);
        let side = &mut self.sender.side;
        let push = |context: &mut Context<'_>| {
            self.sleeper.poll(side, context, |producer| push_from(&mut slot, producer))
        };
        let result = poll_fn(push).await;
        sent_from(slot, result)
    }

    /// Sends messages from the front of `values`, as many as there is room for, and returns how many. Waits until there
    /// is room for one. If the future is dropped, none was sent.
    ///
    /// Whoever waits is woken once for all of them.
    ///
    /// # Errors
    ///
    /// As `send`, with no message in it.
    ///
    /// # Panics
    ///
    /// As `send`.
    pub async fn send_slice(&mut self, values: &[P::Message]) -> Result<usize, SendError<P::SliceError, ()>> {
        let side = &mut self.sender.side;
        let push = |context: &mut Context<'_>| {
            self.sleeper.poll(side, context, |producer| producer.push_slice(values))
        };
        let result = poll_fn(push).await;
        result.map_err(|error| SendError::over(error, ()))?.map_err(SendError::Ring)
    }
}

impl<R: Region, L: Liveness> AsyncSender<bytes::Producer<R>, L> {
    /// Sends a message, and waits for room as long as it takes. If the future is dropped, the message was not sent.
    ///
    /// # Errors
    ///
    /// [`SendError::Ring`] with what the ring says, such as `TooLong`; [`SendError::PeerGone`] if a
    /// [`liveness`](crate::Options::liveness) tells. Never `TimedOut`.
    ///
    /// # Panics
    ///
    /// If the runtime in which it was made is shut down, or has no clock and one is needed.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), SendError<bytes::PushError, ()>> {
        let side = &mut self.sender.side;
        let push = |context: &mut Context<'_>| {
            self.sleeper.poll(side, context, |producer| ring::push_bytes(producer, message))
        };
        let result = poll_fn(push).await;
        result.map_err(|error| SendError::over(error, ()))?.map_err(SendError::Ring)
    }
}

impl<P: Producer, L: Liveness> AsyncSender<P, L> {
    /// Waits until there is room, or something to be told by the ring. In a byte ring: for a message of any length.
    ///
    /// In an mpmc ring another handle may be faster.
    ///
    /// # Errors
    ///
    /// [`WaitError::PeerGone`] if a [`liveness`](crate::Options::liveness) tells. Never `TimedOut`.
    ///
    /// # Panics
    ///
    /// If the runtime in which it was made is shut down, or has no clock and one is needed.
    pub async fn ready(&mut self) -> Result<(), WaitError> {
        poll_fn(|context| self.poll_ready(context)).await
    }

    /// As [`ready`](Self::ready), for a future of one's own. Pending: the task of the last poll will be woken.
    ///
    /// # Errors
    ///
    /// As `ready`.
    ///
    /// # Panics
    ///
    /// As `ready`.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), WaitError>> {
        self.sleeper.poll(&mut self.sender.side, context, side::try_ready)
    }

    /// The sender, for what does not change it: its counters, its report, its ring.
    #[must_use]
    pub fn get_ref(&self) -> &Sender<P, L> {
        &self.sender
    }

    /// The sender, for what does not wait: `try_send`, or to write messages in place. What waits there holds up the
    /// thread of the runtime.
    pub fn get_mut(&mut self) -> &mut Sender<P, L> {
        &mut self.sender
    }
}

impl<P: Producer + Closable, L> AsyncSender<P, L> {
    /// As [`Sender::close`]: for good, and wakes all who wait.
    pub fn close(self) {
        self.sender.close();
    }
}

/// Nothing in it is pinned.
impl<P: Producer, L> Unpin for AsyncSender<P, L> {}
