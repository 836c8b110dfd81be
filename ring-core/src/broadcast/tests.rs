//! Models of the ring with two threads and three. The same bodies run under loom and natively.
//!
//! # Safety
//!
//! A role is taken over only after its owner was forgotten.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::word::published;
use super::{Consumer, Layout, PopError, Producer, create};
use crate::sync::Ordering;
use crate::testing::{heap, model, scaled, thread};
use crate::{AssumeGone, Error, HeapRegion, Role};

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

/// The promise that every former owner is gone, which the models keep by forgetting it first.
fn gone() -> AssumeGone {
    // SAFETY: see above.
    unsafe { AssumeGone::all() }
}

/// How far a producer got with its last message when it was killed.
#[derive(Debug, Clone, Copy)]
enum Killed {
    BeforeTheMessage,
    AfterTheMessage,
    BeforeTheHint,
}

#[test]
fn a_successor_of_a_killed_producer_goes_on_beside_the_consumer() {
    for depth in 1..=scaled(1, 2) {
        for killed in [Killed::BeforeTheMessage, Killed::AfterTheMessage, Killed::BeforeTheHint] {
            model(move || {
                let (mut producer, mut consumer) = ring(depth, 0);
                let region = Arc::clone(producer.region());
                push(&mut producer);
                let slot = producer.begin();
                if !matches!(killed, Killed::BeforeTheMessage) {
                    slot.write(&message(1));
                }
                if matches!(killed, Killed::BeforeTheHint) {
                    slot.word().store(published(1), Ordering::Release);
                }
                core::mem::forget(producer);
                let receiver = thread::spawn(move || {
                    let mut seen = Seen::default();
                    seen.watch(&mut consumer, 1);
                    (seen, consumer)
                });
                let mut successor = Producer::take_over(region, &gone()).unwrap();
                let found = if matches!(killed, Killed::BeforeTheHint) { 2 } else { 1 };
                assert_eq!(successor.tail(), found);
                push(&mut successor);
                let (mut seen, mut consumer) = receiver.join().unwrap();
                successor.close();
                assert_eq!(seen.finish(&mut consumer), found + 1);
            });
        }
    }
}

#[test]
fn a_producer_goes_on_where_the_last_one_stopped() {
    model(|| {
        let (mut first, mut consumer) = ring(2, 0);
        let region = Arc::clone(first.region());
        let first = thread::spawn(move || push(&mut first));
        let taken = match Producer::attach(region) {
            Ok(mut second) => {
                push(&mut second);
                false
            }
            Err(error) => {
                assert_eq!(error, Error::Taken { role: Role::Producer });
                true
            }
        };
        first.join().unwrap();
        assert_eq!(consumer.try_pop(), Ok(message(0)));
        assert_eq!(consumer.try_pop(), if taken { Err(PopError::Empty) } else { Ok(message(1)) });
    });
}

#[test]
fn who_joins_while_a_ring_is_made_anew_joins_one_of_them_or_none() {
    model(|| {
        let (mut producer, consumer) = ring(2, 0);
        push(&mut producer);
        // What `init` does between taking the role and giving it back, but for the shape, which would take hours.
        let maker = thread::spawn(move || {
            producer.memory.header().begin_making();
            producer.memory.empty(100);
            producer.memory.header().end_making();
        });
        match Rx::join_oldest(Arc::clone(consumer.region())) {
            Ok(joined) => assert!([0, 100].contains(&joined.head()), "{}", joined.head()),
            Err(error) => assert_eq!(error, Error::NotReady),
        }
        maker.join().unwrap();
        let mut late = Rx::join(Arc::clone(consumer.region())).unwrap();
        assert_eq!(late.try_pop(), Err(PopError::Empty));
        assert_eq!(late.head(), 100);
    });
}

#[test]
fn who_is_left_in_a_ring_that_was_made_anew_learns_of_it() {
    model(|| {
        let (producer, mut consumer) = ring(2, 0);
        let region = Arc::clone(consumer.region());
        drop(producer);
        let maker = thread::spawn(move || {
            let layout = Layout::<Pair>::new(2).unwrap();
            layout.init(&region).unwrap();
            push(&mut Producer::attach(region).unwrap());
        });
        // A message of the new ring may come first.
        let first = consumer.try_pop();
        assert!(matches!(first, Ok(_) | Err(PopError::Empty | PopError::Corrupted)), "{first:?}");
        maker.join().unwrap();
        let last = (0..2).map(|_| consumer.try_pop()).last();
        assert_eq!(last, Some(Err(PopError::Corrupted)));
    });
}
