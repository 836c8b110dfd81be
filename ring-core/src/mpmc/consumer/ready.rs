//! Looking whether a pop is worth a try, without claiming anything.

use super::{Consumer, Found, PopError};
use crate::mpmc::seat::later;
use crate::mpmc::word::State;
use crate::sync::Ordering;
use crate::{Message, Region};

impl<T: Message, R: Region> Consumer<T, R> {
    /// Whether a pop is worth a try: there is a message, or the ring is closed or corrupted. Claims nothing, so another
    /// handle can be faster.
    #[must_use]
    pub fn is_ready(&mut self) -> bool {
        for _ in 0..self.seat.looks_per_call() {
            // ORDERING: Relaxed: a hint for the caller; a pop looks again.
            let word = self.seat.memory.slot(self.head).word().load(Ordering::Relaxed);
            if word == self.seat.memory.word(self.head, State::Full) {
                return true;
            }
            match self.judge(word) {
                Found::DoneUpTo(position) => self.head = later(position, self.head),
                Found::Stop(PopError::Busy) => return self.is_any_behind(),
                Found::Stop(PopError::Empty) => return self.seat.is_closed() || self.is_any_behind(),
                Found::PutBack | Found::Odd | Found::Stop(_) => return true,
            }
        }
        true
    }

    /// Whether a message that was put back lies behind the head.
    fn is_any_behind(&mut self) -> bool {
        let memory = &self.seat.memory;
        // ORDERING: Acquire (A3): the slots that were put back; pairs with R3 in Memory::announce.
        let put_back = memory.header().state.put_back.load(Ordering::Acquire);
        if put_back == self.put_back {
            return false;
        }
        let is_there = |distance| {
            let position = self.head.wrapping_sub(distance);
            // ORDERING: Relaxed: a hint for the caller; a pop looks again.
            memory.slot(position).word().load(Ordering::Relaxed) == memory.word(position, State::Full)
        };
        let is_any = (1..=memory.depth()).any(is_there);
        if !is_any {
            self.put_back = put_back;
        }
        is_any
    }
}
