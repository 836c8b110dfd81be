//! ringbuf: a ring with two indices.

use measure::{Message, Receiver, Sender};
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

pub struct Tx(HeapProd<Message>);

pub struct Rx(HeapCons<Message>);

pub fn make(depth: usize) -> (Tx, Rx) {
    let (producer, consumer) = HeapRb::new(depth).split();
    (Tx(producer), Rx(consumer))
}

impl Sender for Tx {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        self.0.try_push(*message).is_ok()
    }
}

impl Receiver for Rx {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        self.0.try_pop()
    }
}
