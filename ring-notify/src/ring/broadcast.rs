//! Broadcast. Its producer never waits, so its consumers never wake anybody.

use core::convert::Infallible;

use ring_core::broadcast::{Consumer, PopError, Producer};
use ring_core::{Liveness, Message, Region, Role};

use super::{Direction, Handle, NotPushed, PeerState, Pop, Push, Try, is_gone};

impl<T: Message, R: Region> super::Consumer for Consumer<T, R> {}

impl<T: Message, R: Region> Handle for Consumer<T, R> {
    const DIRECTION: Direction = Direction::Messages;
    const IS_WAITED_FOR: bool = false;

    #[inline(always)]
    fn position(&self) -> Option<u64> {
        Some(self.head())
    }

    fn is_ready(&mut self) -> bool {
        Consumer::is_ready(self)
    }

    fn peer_state(&mut self, liveness: &impl Liveness) -> PeerState {
        is_gone(self.region(), Role::Producer, self.peer(), liveness)
    }
}

impl<T: Message, R: Region> Pop for Consumer<T, R> {
    type Message = T;
    type Error = PopError;

    #[inline(always)]
    fn pop(&mut self) -> Try<Result<T, PopError>> {
        match self.try_pop() {
            Err(PopError::Empty) => Try::Nothing,
            result => Try::Done(result),
        }
    }

    #[inline]
    fn pop_slice(&mut self, values: &mut [T]) -> Try<Result<usize, PopError>> {
        match Consumer::pop_slice(self, values) {
            Err(PopError::Empty) => Try::Nothing,
            result => Try::Done(result),
        }
    }

    fn is_end(error: &PopError) -> bool {
        matches!(error, PopError::Closed)
    }
}

impl<T: Message, R: Region> super::Producer for Producer<T, R> {}

impl<T: Message, R: Region> Handle for Producer<T, R> {
    const DIRECTION: Direction = Direction::Room;

    #[inline(always)]
    fn position(&self) -> Option<u64> {
        Some(self.tail())
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn peer_state(&mut self, _: &impl Liveness) -> PeerState {
        PeerState::default()
    }
}

impl<T: Message, R: Region> Push for Producer<T, R> {
    type Message = T;
    type Error = Infallible;
    type SliceError = Infallible;

    #[inline(always)]
    fn push(&mut self, value: T) -> Result<(), NotPushed<Self::Error, T>> {
        Producer::push(self, &value);
        Ok(())
    }

    #[inline]
    fn push_slice(&mut self, values: &[T]) -> Try<Result<usize, Self::SliceError>> {
        Producer::push_slice(self, values);
        Try::Done(Ok(values.len()))
    }
}
