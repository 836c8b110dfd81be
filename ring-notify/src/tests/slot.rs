//! A ring of one message, as small as can be, for many on each side: models of waiting are not models of a ring.
//!
//! Its own accesses order nothing, so that whatever order there is comes from waiting.

use alloc::sync::Arc;

use ring_core::Liveness;
use ring_core::sync::{AtomicU64, Closable, Ordering, WaitWords, Waitable};

use crate::ring::{Consumer, Direction, Handle, NotPushed, PeerState, Pop, Producer, Push, Try, sealed};

/// The ring.
#[derive(Debug)]
pub(crate) struct Slot {
    words: WaitWords,
    /// A message, shifted; [`CLOSED`] once it is closed. 0: no message.
    state: AtomicU64,
}

const CLOSED: u64 = 1;

#[derive(Debug)]
pub(crate) struct SlotConsumer(Arc<Slot>);

#[derive(Debug)]
pub(crate) struct SlotProducer(Arc<Slot>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

pub(crate) struct Ends(Arc<Slot>);

/// Handles of a new ring.
pub(crate) fn ring() -> Ends {
    Ends(Arc::new(Slot { words: WaitWords::default(), state: AtomicU64::new(0) }))
}

impl Ends {
    pub(crate) fn producer(&self) -> SlotProducer {
        SlotProducer(Arc::clone(&self.0))
    }

    pub(crate) fn consumer(&self) -> SlotConsumer {
        SlotConsumer(Arc::clone(&self.0))
    }
}

impl Slot {
    /// Changes the state, unless `change` sees no way to.
    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        loop {
            let found = self.look();
            let Some(next) = change(found) else { return Err(found) };
            // ORDERING: Relaxed: see above; on failure too.
            if self.state.compare_exchange(found, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Ok(found);
            }
        }
    }

    fn look(&self) -> u64 {
        // ORDERING: Relaxed: see above.
        self.state.load(Ordering::Relaxed)
    }
}

impl sealed::Sealed for SlotConsumer {}
impl sealed::Sealed for SlotProducer {}
impl Consumer for SlotConsumer {}
impl Producer for SlotProducer {}

impl Waitable for SlotConsumer {
    fn wait_words(&self) -> &WaitWords {
        &self.0.words
    }

    fn mark(&self) -> Option<u64> {
        None
    }

    fn settle(&mut self) {}
}

impl Handle for SlotConsumer {
    const DIRECTION: Direction = Direction::Messages;

    fn is_ready(&mut self) -> bool {
        self.0.look() != 0
    }

    fn peer_state(&mut self, _: &impl Liveness) -> PeerState {
        PeerState::default()
    }
}

impl Pop for SlotConsumer {
    type Message = u64;
    type Error = Closed;

    fn pop(&mut self) -> Try<Result<u64, Closed>> {
        match self.0.update(|found| (found > CLOSED).then_some(found & CLOSED)) {
            Ok(found) => Try::Done(Ok(found >> 1)),
            Err(CLOSED) => Try::Done(Err(Closed)),
            Err(_) => Try::Nothing,
        }
    }

    fn is_end(_: &Closed) -> bool {
        true
    }

    fn pop_slice(&mut self, values: &mut [u64]) -> Try<Result<usize, Closed>> {
        match self.pop() {
            Try::Done(popped) => Try::Done(popped.map(|value| {
                values[0] = value;
                1
            })),
            Try::Nothing | Try::Busy => Try::Nothing,
        }
    }
}

impl Waitable for SlotProducer {
    fn wait_words(&self) -> &WaitWords {
        &self.0.words
    }

    fn mark(&self) -> Option<u64> {
        None
    }

    fn settle(&mut self) {}
}

impl Closable for SlotProducer {
    fn close_ring(&mut self) {
        _ = self.0.update(|found| Some(found | CLOSED));
    }
}

impl Handle for SlotProducer {
    const DIRECTION: Direction = Direction::Room;

    fn is_ready(&mut self) -> bool {
        self.0.look() <= CLOSED
    }

    fn peer_state(&mut self, _: &impl Liveness) -> PeerState {
        PeerState::default()
    }
}

impl Push for SlotProducer {
    type Message = u64;
    type Error = Closed;
    type SliceError = Closed;

    fn push(&mut self, value: u64) -> Result<(), NotPushed<Closed, u64>> {
        match self.0.update(|found| (found == 0).then_some(value << 1)) {
            Ok(_) => Ok(()),
            Err(found) if found & CLOSED != 0 => Err(NotPushed::Error(Closed)),
            Err(_) => Err(NotPushed::Full(value)),
        }
    }

    fn push_slice(&mut self, values: &[u64]) -> Try<Result<usize, Closed>> {
        match self.push(values[0]) {
            Ok(()) => Try::Done(Ok(1)),
            Err(NotPushed::Error(error)) => Try::Done(Err(error)),
            Err(NotPushed::Full(_) | NotPushed::Busy(_)) => Try::Nothing,
        }
    }
}
