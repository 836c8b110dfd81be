//! rtrb: a ring with two indices, each side with a copy of the other's.

use measure::{Message, Receiver, Sender};
use rtrb::{Consumer, Producer, RingBuffer};

pub struct Tx(Producer<Message>);

pub struct Rx(Consumer<Message>);

pub fn make(depth: usize) -> (Tx, Rx) {
    let (producer, consumer) = RingBuffer::new(depth);
    (Tx(producer), Rx(consumer))
}

impl Sender for Tx {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        self.0.push(*message).is_ok()
    }
}

impl Receiver for Rx {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        self.0.pop().ok()
    }
}
