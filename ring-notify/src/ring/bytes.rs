//! Byte rings. Their messages have any length, so that to receive and to send have signatures of their own.

use ring_core::bytes::{Consumer, PopError, Producer, PushError};
use ring_core::{Liveness, Region, Role};

use super::{Direction, Handle, PeerState, Try, is_gone};

impl<R: Region> super::Consumer for Consumer<R> {}

impl<R: Region> Handle for Consumer<R> {
    const DIRECTION: Direction = Direction::Messages;

    fn is_ready(&mut self) -> bool {
        Consumer::is_ready(self)
    }

    fn peer_state(&mut self, liveness: &impl Liveness) -> PeerState {
        is_gone(self.region(), Role::Producer, self.peer(), liveness)
    }
}

#[inline(always)]
pub(crate) fn pop<R: Region>(consumer: &mut Consumer<R>, bytes: &mut [u8]) -> Try<Result<usize, PopError>> {
    match consumer.try_pop(bytes) {
        Err(PopError::Empty) => Try::Nothing,
        result => Try::Done(result),
    }
}

impl<R: Region> super::Producer for Producer<R> {}

impl<R: Region> Handle for Producer<R> {
    const DIRECTION: Direction = Direction::Room;

    /// Room for a message of any length.
    fn is_ready(&mut self) -> bool {
        Producer::is_ready(self, self.longest())
    }

    fn peer_state(&mut self, liveness: &impl Liveness) -> PeerState {
        is_gone(self.region(), Role::Consumer, self.peer(), liveness)
    }
}

#[inline(always)]
pub(crate) fn push<R: Region>(producer: &mut Producer<R>, message: &[u8]) -> Try<Result<(), PushError>> {
    match producer.try_push(message) {
        Err(PushError::Full) => Try::Nothing,
        result => Try::Done(result),
    }
}
