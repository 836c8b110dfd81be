//! mpmc rings: many handles on each side, so that one can be in another's way.

use ring_core::mpmc::{Consumer, PopError, Producer, PushError};
use ring_core::{Liveness, Message, Owner, Region};

use super::{Direction, Handle, NotPushed, PeerState, Pop, Push, Try};

impl<T: Message, R: Region> super::Consumer for Consumer<T, R> {}

impl<T: Message, R: Region> Handle for Consumer<T, R> {
    const DIRECTION: Direction = Direction::Messages;
    const IS_ONE_OF_MANY: bool = true;

    fn is_ready(&mut self) -> bool {
        Consumer::is_ready(self)
    }

    fn peer_state(&mut self, liveness: &impl Liveness) -> PeerState {
        state_of_others(self.id(), |id| self.participant(id), || self.recover(liveness).unwrap_or_default())
    }
}

impl<T: Message, R: Region> Pop for Consumer<T, R> {
    type Message = T;
    type Error = PopError;

    #[inline(always)]
    fn pop(&mut self) -> Try<Result<T, PopError>> {
        popped(self.try_pop())
    }

    #[inline]
    fn pop_slice(&mut self, values: &mut [T]) -> Try<Result<usize, PopError>> {
        popped(Consumer::pop_slice(self, values))
    }

    fn is_end(error: &PopError) -> bool {
        matches!(error, PopError::Closed)
    }
}

#[inline(always)]
fn popped<T>(result: Result<T, PopError>) -> Try<Result<T, PopError>> {
    match result {
        Err(PopError::Empty) => Try::Nothing,
        Err(PopError::Busy) => Try::Busy,
        result => Try::Done(result),
    }
}

impl<T: Message, R: Region> super::Producer for Producer<T, R> {}

impl<T: Message, R: Region> Handle for Producer<T, R> {
    const DIRECTION: Direction = Direction::Room;
    const IS_ONE_OF_MANY: bool = true;

    fn is_ready(&mut self) -> bool {
        Producer::is_ready(self)
    }

    fn peer_state(&mut self, liveness: &impl Liveness) -> PeerState {
        state_of_others(self.id(), |id| self.participant(id), || self.recover(liveness).unwrap_or_default())
    }
}

impl<T: Message, R: Region> Push for Producer<T, R> {
    type Message = T;
    type Error = PushError<T>;
    type SliceError = PushError<()>;

    #[inline(always)]
    fn push(&mut self, value: T) -> Result<(), NotPushed<PushError<T>, T>> {
        self.try_push(value).map_err(|error| match error {
            PushError::Full(value) => NotPushed::Full(value),
            PushError::Busy(value) => NotPushed::Busy(value),
            error => NotPushed::Error(error),
        })
    }

    #[inline]
    fn push_slice(&mut self, values: &[T]) -> Try<Result<usize, PushError<()>>> {
        match Producer::push_slice(self, values) {
            Err(PushError::Full(())) => Try::Nothing,
            Err(PushError::Busy(())) => Try::Busy,
            result => Try::Done(result),
        }
    }
}

/// Clears up after the dead, and says whether there were others and none of them is left.
fn state_of_others(
    own: u16,
    participant: impl Fn(u16) -> Option<Owner>,
    recover: impl FnOnce() -> u64,
) -> PeerState {
    let is_anybody_there = || (1..).filter(|id| *id != own).map_while(&participant).any(|owner| owner.held);
    let was_anybody_there = is_anybody_there();
    let left_something = recover() > 0;
    PeerState { is_gone: was_anybody_there && !is_anybody_there(), left_something }
}
