//! The side that receives, in a task.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::Stream;
use ring_core::{AssumeAlive, Liveness, Region, bytes};

use super::sleeper::Sleeper;
use crate::error::{Error, RecvError, WaitError};
use crate::ring::{self, Consumer, Pop, Try};
use crate::{Receiver, side};

/// A [`Receiver`] whose waits are futures, for tasks of tokio: made by [`Receiver::into_async`].
///
/// It never spins: it sleeps until the event is signalled that [`messages_event`](crate::Options::messages_event)
/// names. Several tasks may share one event, for the same ring or for different ones.
///
/// All its futures are cancel-safe: a message is taken by the poll that returns it, so one that is dropped before, as
/// `select!` does it, has taken nothing. A ring that always has messages does not keep other tasks from running: the
/// receiver takes part in tokio's budgets.
///
/// A [`slice`](crate::Options::slice) and an mpmc ring need the runtime's clock (`enable_time`): tokio panics without
/// it. With `slice(None)` other rings do without, unless the [report](Receiver::report) speaks of short slices.
///
/// As a [`Stream`] it yields what [`recv`](Self::recv) returns, errors too, and ends once the ring is closed and empty.
///
/// ```
/// use ring_core::{HeapRegion, spsc};
/// use ring_notify::{Event, Options};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layout = spsc::Layout::<u64>::new(16)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (producer, consumer) = spsc::create(region, &layout)?;
/// let options = Options::new().messages_event(Event::new()?);
///
/// let mut sender = options.clone().sender(producer)?;
/// let mut receiver = options.receiver(consumer)?.into_async()?;
/// let feed = std::thread::spawn(move || sender.send(7));
/// assert_eq!(receiver.recv().await?, 7);
/// feed.join().unwrap()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncReceiver<C: Consumer, L = AssumeAlive> {
    receiver: Receiver<C, L>,
    sleeper: Sleeper,
}

impl<C: Consumer, L: Liveness> Receiver<C, L> {
    /// Lets tasks wait: inside a runtime of tokio with I/O enabled, on which it depends from then on.
    ///
    /// Whatever the [strategy](crate::Options::strategy) was, it sleeps on the event of its direction.
    ///
    /// # Errors
    ///
    /// [`Error::EventMissing`] if the options named no [`messages_event`](crate::Options::messages_event), and
    /// [`Error::Runtime`] if there is no runtime, or it has no I/O or does not take the event. tokio tells by a panic,
    /// which is caught, that there is no runtime or no I/O in it: a message appears, and a program that aborts at
    /// panics does. The receiver is dropped then.
    pub fn into_async(mut self) -> Result<AsyncReceiver<C, L>, Error> {
        let sleeper = Sleeper::new(&mut self.side)?;
        Ok(AsyncReceiver { receiver: self, sleeper })
    }
}

impl<C: Pop, L: Liveness> AsyncReceiver<C, L> {
    /// Receives a message, and waits for one as long as it takes.
    ///
    /// # Errors
    ///
    /// [`RecvError::Ring`] with what the ring says, such as that it is closed; [`RecvError::PeerGone`] if a
    /// [`liveness`](crate::Options::liveness) tells. Never `TimedOut`.
    ///
    /// # Panics
    ///
    /// If the runtime in which it was made is shut down, or has no clock and one is needed.
    pub async fn recv(&mut self) -> Result<C::Message, RecvError<C::Error>> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// As [`recv`](Self::recv), for a future of one's own. Pending: the task of the last poll will be woken.
    ///
    /// # Errors
    ///
    /// As `recv`.
    ///
    /// # Panics
    ///
    /// As `recv`.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<C::Message, RecvError<C::Error>>> {
        self.poll_receiving(context, C::pop)
    }

    /// Waits for a message, and receives into `values` from the front as many as are there. Returns how many.
    ///
    /// ```
    /// use ring_core::{HeapRegion, spsc};
    /// use ring_notify::{Event, Options};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let layout = spsc::Layout::<u64>::new(4)?;
    /// let region = HeapRegion::new(layout.bytes());
    /// let (producer, consumer) = spsc::create(&region, &layout)?;
    /// let options = Options::new().messages_event(Event::new()?);
    /// let mut sender = options.clone().sender(producer)?;
    /// let mut receiver = options.receiver(consumer)?.into_async()?;
    /// sender.send_slice(&[1, 2, 3])?;
    /// let mut values = [0; 8];
    /// assert_eq!(receiver.recv_slice(&mut values).await?, 3);
    /// assert_eq!(values[..3], [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As `recv`.
    ///
    /// # Panics
    ///
    /// As `recv`.
    pub async fn recv_slice(&mut self, values: &mut [C::Message]) -> Result<usize, RecvError<C::Error>> {
        poll_fn(|context| self.poll_receiving(context, |consumer| consumer.pop_slice(values))).await
    }
}

impl<R: Region, L: Liveness> AsyncReceiver<bytes::Consumer<R>, L> {
    /// Receives a message into `bytes`, waits for one as long as it takes, and returns its length.
    ///
    /// # Errors
    ///
    /// [`RecvError::Ring`] with what the ring says, such as that it is closed, or `BufferTooShort`, which leaves the
    /// message there; [`RecvError::PeerGone`] if a [`liveness`](crate::Options::liveness) tells. Never `TimedOut`.
    ///
    /// # Panics
    ///
    /// If the runtime in which it was made is shut down, or has no clock and one is needed.
    pub async fn recv(&mut self, bytes: &mut [u8]) -> Result<usize, RecvError<bytes::PopError>> {
        poll_fn(|context| self.poll_recv(context, bytes)).await
    }

    /// As [`recv`](Self::recv), for a future of one's own. Pending: the task of the last poll will be woken.
    ///
    /// # Errors
    ///
    /// As `recv`.
    ///
    /// # Panics
    ///
    /// As `recv`.
    pub fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<Result<usize, RecvError<bytes::PopError>>> {
        self.poll_receiving(context, |consumer| ring::pop_bytes(consumer, bytes))
    }
}

impl<C: Consumer, L: Liveness> AsyncReceiver<C, L> {
    /// Waits until there is something to be received, or to be told by the ring.
    ///
    /// Of use before [`Receiver::consume`], to read messages in place. In an mpmc ring another handle may be faster.
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
        self.sleeper.poll(&mut self.receiver.side, context, side::try_ready)
    }

    /// The receiver, for what does not change it: its counters, its report, its ring.
    #[must_use]
    pub fn get_ref(&self) -> &Receiver<C, L> {
        &self.receiver
    }

    /// The receiver, for what does not wait: `try_recv`, to read messages in place, to close the ring. What waits there
    /// holds up the thread of the runtime.
    pub fn get_mut(&mut self) -> &mut Receiver<C, L> {
        &mut self.receiver
    }

    fn poll_receiving<T, E>(
        &mut self,
        context: &mut Context<'_>,
        attempt: impl FnMut(&mut C) -> Try<Result<T, E>>,
    ) -> Poll<Result<T, RecvError<E>>> {
        let result = self.sleeper.poll(&mut self.receiver.side, context, attempt);
        result.map(|result| result?.map_err(RecvError::Ring))
    }
}

/// Nothing in it is pinned.
impl<C: Consumer, L> Unpin for AsyncReceiver<C, L> {}

/// What was received, and errors. It ends once the ring is closed and empty; after another error, such as that the peer
/// is gone, it goes on.
///
/// ```
/// use ring_core::{HeapRegion, spsc};
/// use ring_notify::{Event, Options};
/// use futures_core::Stream;
/// use std::{future::poll_fn, pin::Pin};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layout = spsc::Layout::<u64>::new(4)?;
/// let region = HeapRegion::new(layout.bytes());
/// let (producer, consumer) = spsc::create(&region, &layout)?;
/// let options = Options::new().messages_event(Event::new()?);
/// let mut sender = options.clone().sender(producer)?;
/// let mut stream = options.receiver(consumer)?.into_async()?;
/// sender.send_slice(&[1, 2, 3])?;
/// sender.close();
///
/// let mut sum = 0;
/// // `while let Some(value) = stream.next().await` with the `StreamExt` of futures or tokio-stream
/// while let Some(value) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
///     sum += value?;
/// }
/// assert_eq!(sum, 6);
/// # Ok(())
/// # }
/// ```
impl<C: Pop, L: Liveness> Stream for AsyncReceiver<C, L> {
    type Item = Result<C::Message, RecvError<C::Error>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_recv(context).map(|result| match result {
            Err(RecvError::Ring(error)) if C::is_end(&error) => None,
            result => Some(result),
        })
    }
}
