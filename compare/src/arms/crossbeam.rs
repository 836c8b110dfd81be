//! crossbeam-queue: a bounded queue of many producers and consumers, with a stamp in each slot.

use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use measure::{Message, Receiver, Sender};

#[derive(Clone)]
pub struct Tx(Arc<ArrayQueue<Message>>);

#[derive(Clone)]
pub struct Rx(Arc<ArrayQueue<Message>>);

pub fn make(depth: usize) -> (Tx, Rx) {
    let queue = Arc::new(ArrayQueue::new(depth));
    (Tx(Arc::clone(&queue)), Rx(queue))
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
        self.0.pop()
    }
}
