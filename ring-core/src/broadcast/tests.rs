//! Models of the ring with two threads and three. The same bodies run under loom and natively.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Consumer, Layout, PopError, Producer, create};
use crate::testing::{heap, model, scaled, thread};
use crate::{HeapRegion, Inspector};

mod restart;

/// Two words, so that half of one message and half of another would show.
type Pair = [u64; 2];
type Tx = Producer<Pair, Arc<HeapRegion>>;
type Rx = Consumer<Pair, Arc<HeapRegion>>;

fn ring(depth: u64, start: u64) -> (Tx, Rx) {
    let layout = Layout::new(depth).unwrap().start(start);
    create(heap(layout.bytes()), &layout).unwrap()
}

/// The message of a position.
fn message(position: u64) -> Pair {
    [position, !position]
}

fn push(producer: &mut Tx) {
    producer.push(&message(producer.tail()));
}

/// What a consumer saw.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    popped: u64,
    lost: u64,
    /// Whether the last look found messages lost.
    just_lost: bool,
    /// Whether the end was reached, behind which nothing may come.
    at_end: bool,
}

impl Seen {
    /// Takes the next message, which must be that of its position; returns false at the end.
    fn step(&mut self, consumer: &mut Rx) -> bool {
        let position = consumer.head();
        let result = consumer.try_pop();
        assert!(!self.at_end || result == Err(PopError::Closed), "{result:?} behind the end");
        let lost_before = core::mem::replace(&mut self.just_lost, false);
        match result {
            Ok(found) => {
                assert_eq!(found, message(position), "torn, or in the wrong place");
                assert_eq!(consumer.head(), position.wrapping_add(1));
                self.popped += 1;
            }
            Err(PopError::Lost { messages }) => {
                assert!(messages > 0);
                assert_eq!(consumer.head(), position.wrapping_add(messages));
                self.lost += messages;
                self.just_lost = true;
            }
            Err(PopError::Empty) => {
                assert!(!lost_before || consumer.capacity() == 1, "the oldest that is left is there");
                thread::yield_now();
            }
            Err(PopError::Closed) => {
                self.at_end = true;
                return false;
            }
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
        true
    }

    /// Looks as often as a model can bear, or natively more often.
    fn watch(&mut self, consumer: &mut Rx, looks: u64) {
        let _ = (0..scaled(looks, 1000)).all(|_| self.step(consumer));
    }

    /// Takes all that is left, up to the end.
    fn finish(&mut self, consumer: &mut Rx) -> u64 {
        while self.step(consumer) {}
        self.popped + self.lost
    }
}

/// Sends messages through a ring to a consumer that sees all or is told what it lost. Under loom the first is there
/// before, as many as there are slots are sent meanwhile, and the consumer looks so often meanwhile.
fn transfers(
    depth: u64,
    start: u64,
    looks: u64,
    send: impl Fn(&mut Tx, u64) + Copy + Send + Sync + 'static,
    receive: impl Fn(&mut Seen, &mut Rx) -> bool + Copy + Send + Sync + 'static,
) {
    model(move || {
        let more = scaled(depth, 1000);
        let (mut producer, mut consumer) = ring(depth, start);
        push(&mut producer);
        let sender = thread::spawn(move || {
            send(&mut producer, more);
            producer
        });
        let mut seen = Seen::default();
        for _ in 0..scaled(looks, 1000) {
            receive(&mut seen, &mut consumer);
        }
        sender.join().unwrap().close();
        while receive(&mut seen, &mut consumer) {}
        assert_eq!(seen.popped + seen.lost, 1 + more, "{seen:?}");
    });
}

fn send_each(producer: &mut Tx, messages: u64) {
    (0..messages).for_each(|_| push(producer));
}

#[test]
fn a_message_that_is_overwritten_is_whole_or_lost() {
    transfers(1, 0, 2, send_each, Seen::step);
}

#[test]
fn what_is_left_is_there() {
    transfers(2, 0, 2, send_each, Seen::step);
}

#[test]
fn positions_wrap() {
    // Where the positions do, and where the words do.
    for start in [u64::MAX, (1 << 63) - 1] {
        transfers(1, start, 2, send_each, Seen::step);
    }
}

#[test]
fn two_consumers_do_not_disturb_each_other() {
    model(|| {
        let messages = scaled(1, 1000);
        let (mut producer, mut first) = ring(1, 0);
        let mut second = Consumer::join(Arc::clone(first.region())).unwrap();
        let receiver = thread::spawn(move || {
            let mut seen = Seen::default();
            seen.watch(&mut first, 1);
            (seen, first)
        });
        let sender = thread::spawn(move || {
            send_each(&mut producer, messages);
            producer
        });
        let mut seen = Seen::default();
        seen.watch(&mut second, 1);
        sender.join().unwrap().close();
        assert_eq!(seen.finish(&mut second), messages);
        let (mut seen, mut first) = receiver.join().unwrap();
        assert_eq!(seen.finish(&mut first), messages);
    });
}

#[test]
fn batches_say_the_same() {
    let send = |producer: &mut Tx, messages: u64| {
        let all: Vec<Pair> = (1..=messages).map(message).collect();
        producer.push_slice(&all);
    };
    let receive = |seen: &mut Seen, consumer: &mut Rx| {
        let position = consumer.head();
        let mut batch = [[0; 2]; 2];
        match consumer.pop_slice(&mut batch) {
            Ok(popped) => {
                assert!(batch[..popped].iter().copied().eq((position..).take(popped).map(message)));
                seen.popped += popped as u64;
            }
            Err(PopError::Lost { messages }) => seen.lost += messages,
            Err(PopError::Empty) => thread::yield_now(),
            Err(error) => {
                assert_eq!(error, PopError::Closed);
                return false;
            }
        }
        true
    };
    transfers(2, 0, 1, send, receive);
}

#[test]
fn iterators_stop_before_what_is_lost() {
    let receive = |seen: &mut Seen, consumer: &mut Rx| {
        let position = consumer.head();
        let messages: Vec<Pair> = consumer.drain(2).collect();
        assert_eq!(consumer.head(), position + messages.len() as u64);
        seen.popped += messages.len() as u64;
        seen.just_lost &= messages.is_empty();
        assert!(messages.into_iter().eq((position..consumer.head()).map(message)));
        seen.step(consumer)
    };
    transfers(1, 0, 1, send_each, receive);
}

#[test]
fn grants_publish_when_they_are_committed() {
    let send = |producer: &mut Tx, messages: u64| {
        for _ in 0..messages {
            // Dropped: nothing of it may arrive.
            producer.reserve().write(&[u64::MAX; 2]);
            let value = message(producer.tail());
            let mut grant = producer.reserve();
            grant.write(&value);
            grant.commit();
        }
    };
    transfers(1, 0, 1, send, Seen::step);
}

#[test]
fn who_joins_sees_what_is_pushed_from_then_on() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, consumer) = ring(depth, 0);
            push(&mut producer);
            let sender = thread::spawn(move || {
                push(&mut producer);
                push(&mut producer);
                producer
            });
            let mut joined = Consumer::join(Arc::clone(consumer.region())).unwrap();
            let first = joined.head();
            assert!((1..=3).contains(&first), "{first}");
            let mut seen = Seen::default();
            seen.step(&mut joined);
            let mut producer = sender.join().unwrap();
            push(&mut producer);
            producer.close();
            assert_eq!(seen.finish(&mut joined), 4 - first);
        });
    }
}

#[test]
fn who_joins_later_misses_nothing_that_is_left() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, consumer) = ring(depth, 0);
            push(&mut producer);
            let sender = thread::spawn(move || {
                send_each(&mut producer, depth);
                producer
            });
            let mut oldest = Consumer::join_oldest(Arc::clone(consumer.region())).unwrap();
            let first = oldest.head();
            // With all pushed, and the slot of the oldest still to be overwritten or not.
            assert!(first <= 1, "{first}");
            sender.join().unwrap().close();
            assert_eq!(Seen::default().finish(&mut oldest), depth + 1 - first);
        });
    }
}

#[test]
fn all_that_was_pushed_before_the_close_arrives() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth, 0);
            let sender = thread::spawn(move || {
                send_each(&mut producer, depth);
                producer.close();
            });
            let mut seen = Seen::default();
            seen.watch(&mut consumer, 2);
            sender.join().unwrap();
            seen.finish(&mut consumer);
            assert_eq!((seen.popped, seen.lost), (depth, 0));
        });
    }
}

#[test]
fn what_is_counted_was_pushed() {
    model(|| {
        let (mut producer, mut consumer) = ring(2, 0);
        let sender = thread::spawn(move || send_each(&mut producer, 2));
        let lag = consumer.lag().unwrap();
        let mut seen = Seen::default();
        while seen.popped + seen.lost < lag {
            assert!(!consumer.is_empty());
            seen.step(&mut consumer);
        }
        sender.join().unwrap();
        assert_eq!(consumer.lag(), Ok(2 - seen.popped - seen.lost));
    });
}

/// Who looks without joining sees the tail go on, and the last one once the ring is closed.
#[test]
fn a_ring_is_seen_going_on() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, _) = ring(depth, 0);
            let inspector = Inspector::new(Arc::clone(producer.region())).unwrap();
            let messages = scaled(depth + 1, 10_000);
            let sender = thread::spawn(move || {
                (0..messages).for_each(|_| push(&mut producer));
                producer.close();
            });
            let mut before = 0;
            for _ in 0..scaled(1, 1000) {
                let progress = inspector.progress().unwrap();
                assert!(before <= progress.tail && progress.tail <= messages, "{progress:?}");
                assert!(!progress.closed || progress.tail == messages, "{progress:?}");
                before = progress.tail;
                thread::yield_now();
            }
            sender.join().unwrap();
            assert_eq!(inspector.progress().unwrap().overwritten, messages - depth);
        });
    }
}
