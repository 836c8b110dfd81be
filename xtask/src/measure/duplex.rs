//! A queue each way, of whatever kind: round trips over both, or a stream over one.

use core::hint::black_box;

use crate::exchange::{self, Exchange, check, sum};
use crate::{Arm, Receiver, Samples, Sender, Slice, Timer, stream};

/// What this side writes to, what it reads from, and the number of the next message each way.
#[derive(Debug)]
pub struct Duplex<S, R> {
    to: S,
    from: R,
    /// What the reader has added up, so that no word goes unread.
    sum: u64,
    next: u64,
}

impl<S: Sender, R: Receiver> Duplex<S, R> {
    /// Nothing has been sent yet.
    pub fn new(to: S, from: R) -> Self {
        Self { to, from, sum: 0, next: 0 }
    }

    /// What this side reads from.
    pub fn from(&mut self) -> &mut R {
        &mut self.from
    }

    #[inline(always)]
    fn send(&mut self, number: u64) {
        while !self.to.try_send(&[number; 7]) {
            core::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) {
        let message = loop {
            if let Some(message) = self.from.try_receive() {
                break message;
            }
            core::hint::spin_loop();
        };
        self.sum = self.sum.wrapping_add(sum(&message));
        check(message[0], number);
    }
}

impl<S: Sender, R: Receiver> Exchange for Duplex<S, R> {
    #[inline(always)]
    fn ping(&mut self, number: u64) {
        self.send(number);
        self.receive(number);
    }

    #[inline(always)]
    fn pong(&mut self, number: u64) {
        self.receive(number);
        self.send(number);
    }
}

impl<S: Sender, R: Receiver> Arm for Duplex<S, R> {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        match slice {
            Slice::RoundTrips { .. } => {
                let mut next = self.next;
                let samples = exchange::lead(self, &mut next, slice, timer);
                self.next = next;
                black_box(self.sum);
                samples
            }
            Slice::Stream { reader, messages } => stream::read(&mut self.from, reader, messages, timer),
            Slice::Paced { .. } => not_paced(),
        }
    }

    fn follow(&mut self, slice: Slice) {
        match slice {
            Slice::RoundTrips { .. } => {
                let mut next = self.next;
                exchange::follow(self, &mut next, slice);
                self.next = next;
                black_box(self.sum);
            }
            Slice::Stream { messages, .. } => stream::write(&mut self.to, messages),
            Slice::Paced { .. } => not_paced(),
        }
    }
}

fn not_paced() -> ! {
    unreachable!("this arm takes part in closed loops and streams only")
}
