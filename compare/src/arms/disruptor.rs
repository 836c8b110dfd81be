//! disruptor: a ring whose sides publish sequences, the reader one for all that it finds.

use std::collections::VecDeque;

use disruptor::{
    BusySpin, EventPoller, Polling, Producer, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier,
    build_single_producer,
};
use measure::{Message, Receiver, Sender};

pub struct Tx(SingleProducer<Message, SingleConsumerBarrier>);

pub struct Rx {
    poller: EventPoller<Message, SingleProducerBarrier>,
    /// What the last look has found and nobody has taken yet: to look for each alone would cost more.
    found: VecDeque<Message>,
}

pub fn make(depth: usize) -> (Tx, Rx) {
    let (poller, builder) = build_single_producer(depth, || [0; 7], BusySpin).new_event_poller();
    (Tx(builder.build()), Rx { poller, found: VecDeque::with_capacity(depth) })
}

impl Sender for Tx {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        self.0.try_publish(|slot| *slot = *message).is_ok()
    }
}

impl Receiver for Rx {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        if let Some(message) = self.found.pop_front() {
            return Some(message);
        }
        match self.poller.poll() {
            Ok(mut events) => {
                let first = (&mut events).next().copied();
                self.found.extend((&mut events).copied());
                first
            }
            Err(Polling::NoEvents) => None,
            Err(Polling::Shutdown) => panic!("the producer has gone"),
        }
    }
}
