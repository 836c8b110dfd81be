//! Making handles that wait and wake.

#[cfg(feature = "std")]
use alloc::sync::Arc;
use core::time::Duration;

use ring_core::{AssumeAlive, Liveness};

use crate::bell::Bell;
use crate::error::Error;
use crate::ring::{Consumer, Direction, Handle, Producer};
use crate::side::Side;
use crate::strategy::Strategy;
use crate::word::Bed;
use crate::{Barrier, Receiver, Sender};

/// How long a sleeper sleeps at most by default, until it looks again.
const SLICE: Duration = Duration::from_millis(100);

/// How a handle waits, and how it wakes those on the other side.
///
/// Both sides of a ring have to be made into a [`Sender`] and a [`Receiver`], also the one that never waits, since it
/// is the one that wakes the other. Each has options of its own; they need not be the same.
///
/// ```
/// use ring_core::{HeapRegion, spsc};
/// use ring_notify::{Options, Strategy};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let layout = spsc::Layout::<u64>::new(16)?;
/// let region = Arc::new(HeapRegion::new(layout.bytes()));
/// let (producer, consumer) = spsc::create(region, &layout)?;
///
/// let mut sender = Options::new().sender(producer)?;
/// let mut receiver = Options::new().strategy(Strategy::futex().spins(100)).receiver(consumer)?;
/// let worker = std::thread::spawn(move || receiver.recv_timeout(Duration::from_secs(5)));
/// sender.send(7)?;
/// assert_eq!(worker.join().unwrap(), Ok(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Options<L = AssumeAlive> {
    strategy: Strategy,
    barrier: Barrier,
    slice: Option<Duration>,
    liveness: L,
    messages: Bell,
    room: Bell,
}

impl Options {
    /// [`Strategy::futex`], [`Barrier::Asymmetric`], slices of 100 ms, and nobody is ever known to be dead.
    pub fn new() -> Self {
        Self {
            strategy: Strategy::futex(),
            barrier: Barrier::Asymmetric,
            slice: Some(SLICE),
            liveness: AssumeAlive,
            messages: Bell::default(),
            room: Bell::default(),
        }
    }

    /// For rings on which nobody ever sleeps: [`Strategy::doorbell`], [`Barrier::None`]. No system call is made, and
    /// nothing is registered.
    pub fn doorbell() -> Self {
        Self::new().strategy(Strategy::doorbell()).barrier(Barrier::None)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Liveness> Options<L> {
    /// How this side waits. Default: [`Strategy::futex`].
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Who pays for it that no wake-up is lost. Default: [`Barrier::Asymmetric`].
    pub fn barrier(mut self, barrier: Barrier) -> Self {
        self.barrier = barrier;
        self
    }

    /// No sleep is longer than this: then this side looks at the ring again, and whether the other side is
    /// [known to be dead](Self::liveness). Default: 100 ms. None: it sleeps until it is woken.
    ///
    /// It is how long a message waits at most when whoever has sent it was killed before it woke this side, or does not
    /// wake at all, being a bare handle.
    pub fn slice(mut self, slice: Option<Duration>) -> Self {
        self.slice = slice;
        self
    }

    /// What tells whether the other side has died, such as the `liveness()` of a claim in ring-shm. It is asked after each
    /// [`slice`](Self::slice) of waiting, in one wait or in several that are shorter, so they end with `PeerGone` that long
    /// after a death; without slices it is never asked. Default: nobody is known to be dead.
    ///
    /// A side that has left without closing the ring, by a panic say, counts as dead where the liveness tells of it, as
    /// that of ring-shm does. In an mpmc ring what the dead had begun is finished meanwhile, and the wait ends when
    /// nobody else is left.
    pub fn liveness<K: Liveness>(self, liveness: K) -> Options<K> {
        let Self { strategy, barrier, slice, liveness: _, messages, room } = self;
        Options { strategy, barrier, slice, liveness, messages, room }
    }

    /// An event that is signalled when messages come and somebody waits for them by event. Both sides have it: the
    /// receiver [sleeps](Strategy::event) on it, the sender signals it. Default: none.
    ///
    /// Said several times, a sender signals each: for receivers that wait for different things, such as consumers of a
    /// broadcast ring, and so must not [share](crate::Event) one. A receiver sleeps on the first.
    #[cfg(feature = "std")]
    pub fn messages_event(mut self, event: impl Into<Arc<crate::Event>>) -> Self {
        self.messages.add(event.into());
        self
    }

    /// An event that is signalled when there is room and somebody waits for it by event. Both sides have it: the sender
    /// [sleeps](Strategy::event) on it, the receiver signals it. Several times as
    /// [`messages_event`](Self::messages_event). Default: none.
    #[cfg(feature = "std")]
    pub fn room_event(mut self, event: impl Into<Arc<crate::Event>>) -> Self {
        self.room.add(event.into());
        self
    }

    /// Makes a receiver of a ring's consumer, and wakes those who wait for room.
    ///
    /// # Errors
    ///
    /// [`Error::EventMissing`] if it is to sleep on an event and there is none.
    pub fn receiver<C: Consumer>(self, consumer: C) -> Result<Receiver<C, L>, Error> {
        Ok(Receiver { side: self.side(consumer)? })
    }

    /// Makes a sender of a ring's producer, and wakes those who wait for messages.
    ///
    /// # Errors
    ///
    /// [`Error::EventMissing`] if it is to sleep on an event and there is none.
    pub fn sender<P: Producer>(self, producer: P) -> Result<Sender<P, L>, Error> {
        Ok(Sender { side: self.side(producer)? })
    }

    fn side<H: Handle>(self, ring: H) -> Result<Side<H, L>, Error> {
        let Self { strategy, barrier, slice, liveness, messages, room } = self;
        let (own_bell, other_bell) = match H::DIRECTION {
            Direction::Messages => (messages, room),
            Direction::Room => (room, messages),
        };
        if strategy.bed == Some(Bed::Event) && !own_bell.has_event() {
            return Err(Error::EventMissing);
        }
        Ok(Side::new(ring, Parts { strategy, barrier, slice, liveness, own_bell, other_bell }))
    }
}

/// What a side is made of beside its handle.
#[derive(Debug)]
pub(crate) struct Parts<L> {
    pub(crate) strategy: Strategy,
    pub(crate) barrier: Barrier,
    pub(crate) slice: Option<Duration>,
    pub(crate) liveness: L,
    pub(crate) own_bell: Bell,
    pub(crate) other_bell: Bell,
}
