//! Models of the ring with two threads and three. The same bodies run under loom and natively.
//!
//! # Safety
//!
//! A role is taken over only after its owner was forgotten.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::memory::published;
use super::{Consumer, Layout, PopError, Producer, create};
use crate::sync::Ordering;
use crate::testing::{heap, model, scaled, thread};
use crate::{AssumeGone, Error, HeapRegion, Role};

/// Two words, so that half of one message and half of another would show.
type Pair = [u64; 2];
type Tx = Producer<Pair, Arc<HeapRegion>>;
type Rx = Consumer<Pair, Arc<HeapRegion>>;

/// Positions near which the words or the positions themselves wrap.
const WRAPS: [u64; 2] = [u64::MAX, (1 << 63) - 1];

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
}

impl Seen {
    fn all(&self) -> u64 {
        self.popped + self.lost
    }

    /// Takes the next message, which must be that of its position; returns false at the end.
    fn step(&mut self, consumer: &mut Rx) -> bool {
        let position = consumer.head();
        let result = consumer.try_pop();
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
            Err(PopError::Closed) => return false,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
        true
    }

    /// Follows the producer until it closes the ring.
    fn follow(mut consumer: Rx) -> Self {
        let mut seen = Self::default();
        while seen.step(&mut consumer) {}
        seen
    }
}

/// Sends messages through rings of the small depths to consumers that see all or are told what they lost.
fn transfers(
    depths: &[u64],
    start: u64,
    more_than_depth: u64,
    send: impl Fn(&mut Tx, u64) + Copy + Send + Sync + 'static,
    receive: impl Fn(Rx) -> Seen + Copy + Send + Sync + 'static,
) {
    for &depth in depths {
        model(move || {
            let messages = scaled(depth + more_than_depth, 1000);
            let (mut producer, consumer) = ring(depth, start);
            let sender = thread::spawn(move || {
                send(&mut producer, messages);
                producer.close();
            });
            let seen = receive(consumer);
            sender.join().unwrap();
            assert_eq!(seen.all(), messages, "{seen:?}");
        });
    }
}

fn send_each(producer: &mut Tx, messages: u64) {
    (0..messages).for_each(|_| push(producer));
}

#[test]
fn a_consumer_sees_each_message_or_learns_of_it() {
    transfers(&[1, 2], 0, 2, send_each, Seen::follow);
}

#[test]
fn positions_wrap() {
    for start in WRAPS {
        transfers(&[1, 2], start, 1, send_each, Seen::follow);
    }
}

#[test]
fn two_consumers_do_not_disturb_each_other() {
    model(|| {
        let messages = scaled(2, 1000);
        let (mut producer, first) = ring(1, 0);
        let second = Consumer::join(Arc::clone(first.region())).unwrap();
        let receiver = thread::spawn(move || Seen::follow(first).all());
        let sender = thread::spawn(move || {
            send_each(&mut producer, messages);
            producer.close();
        });
        assert_eq!(Seen::follow(second).all(), messages);
        assert_eq!(receiver.join().unwrap(), messages);
        sender.join().unwrap();
    });
}

#[test]
fn batches_say_the_same() {
    let send = |producer: &mut Tx, messages: u64| {
        let all: Vec<Pair> = (0..messages).map(message).collect();
        producer.push_slice(&all);
    };
    let receive = |mut consumer: Rx| {
        let mut seen = Seen::default();
        loop {
            let position = consumer.head();
            let mut batch = [[0; 2]; 2];
            let popped = match consumer.pop_slice(&mut batch) {
                Ok(popped) => popped,
                Err(PopError::Lost { messages }) => {
                    seen.lost += messages;
                    continue;
                }
                Err(PopError::Empty) => {
                    thread::yield_now();
                    continue;
                }
                Err(error) => {
                    assert_eq!(error, PopError::Closed);
                    return seen;
                }
            };
            assert!(batch[..popped].iter().copied().eq((position..).take(popped).map(message)));
            seen.popped += popped as u64;
        }
    };
    transfers(&[2], 0, 1, send, receive);
}

#[test]
fn iterators_stop_before_what_is_lost() {
    let receive = |mut consumer: Rx| {
        let mut seen = Seen::default();
        loop {
            let position = consumer.head();
            let messages: Vec<Pair> = consumer.drain(2).collect();
            assert_eq!(consumer.head(), position + messages.len() as u64);
            seen.popped += messages.len() as u64;
            assert!(messages.into_iter().eq((position..consumer.head()).map(message)));
            if !seen.step(&mut consumer) {
                return seen;
            }
        }
    };
    transfers(&[2], 0, 1, send_each, receive);
}

#[test]
fn grants_publish_when_they_are_committed() {
    let send = |producer: &mut Tx, messages: u64| {
        for position in 0..messages {
            if position % 2 == 1 {
                // Dropped: nothing of it may arrive.
                producer.reserve().write(&[u64::MAX; 2]);
            }
            let mut grant = producer.reserve();
            grant.write(&message(position));
            grant.commit();
        }
    };
    transfers(&[1, 2], 0, 1, send, Seen::follow);
}

#[test]
fn who_joins_sees_what_is_pushed_from_then_on() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, consumer) = ring(depth, 0);
            push(&mut producer);
            let region = Arc::clone(consumer.region());
            let sender = thread::spawn(move || {
                send_each(&mut producer, depth + 1);
                producer
            });
            let mut joined = Consumer::join(region).unwrap();
            assert!((1..=depth + 2).contains(&joined.head()), "{}", joined.head());
            let mut seen = Seen::default();
            seen.step(&mut joined);
            let mut producer = sender.join().unwrap();
            push(&mut producer);
            let end = producer.tail();
            while joined.head() != end {
                seen.step(&mut joined);
            }
            producer.close();
            assert_eq!(joined.try_pop(), Err(PopError::Closed));
        });
    }
}

#[test]
fn who_joins_later_misses_nothing_that_is_left() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, consumer) = ring(depth, 0);
            push(&mut producer);
            let region = Arc::clone(consumer.region());
            let sender = thread::spawn(move || {
                send_each(&mut producer, 2);
                producer.close();
            });
            let oldest = Consumer::join_oldest(region).unwrap();
            let skipped = oldest.head();
            assert!(skipped <= 3 - depth + 1, "{skipped}");
            assert_eq!(Seen::follow(oldest).all(), 3 - skipped);
            sender.join().unwrap();
        });
    }
}

#[test]
fn all_that_was_pushed_before_the_close_arrives() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, consumer) = ring(depth, 0);
            let sender = thread::spawn(move || {
                send_each(&mut producer, depth);
                producer.close();
            });
            assert_eq!(Seen::follow(consumer), Seen { popped: depth, ..Seen::default() });
            sender.join().unwrap();
        });
    }
}

#[test]
fn what_is_counted_was_pushed() {
    model(|| {
        let (mut producer, mut consumer) = ring(2, 0);
        let sender = thread::spawn(move || send_each(&mut producer, 3));
        let lag = consumer.lag().unwrap();
        let mut seen = Seen::default();
        while seen.all() < lag {
            seen.step(&mut consumer);
            assert!(consumer.lag().is_ok());
        }
        sender.join().unwrap();
        assert_eq!(consumer.lag(), Ok(3 - seen.all()));
    });
}

/// The promise that every former owner is gone, which the models keep by forgetting it first.
fn gone() -> AssumeGone {
    // SAFETY: see above.
    unsafe { AssumeGone::new() }
}

/// How far a producer got with its last message when it was killed.
#[derive(Debug, Clone, Copy)]
enum Killed {
    BeforeTheMessage,
    AfterTheMessage,
    BeforeTheHint,
    AfterAll,
}

#[test]
fn a_successor_of_a_killed_producer_goes_on_beside_the_consumer() {
    for depth in [1, 2] {
        for killed in
            [Killed::BeforeTheMessage, Killed::AfterTheMessage, Killed::BeforeTheHint, Killed::AfterAll]
        {
            model(move || {
                let (mut producer, consumer) = ring(depth, 0);
                let region = Arc::clone(producer.region());
                let receiver = thread::spawn(move || Seen::follow(consumer).all());
                push(&mut producer);
                let slot = producer.begin();
                if !matches!(killed, Killed::BeforeTheMessage) {
                    slot.write(&message(1));
                }
                match killed {
                    Killed::BeforeTheHint => slot.word().store(published(1), Ordering::Release),
                    Killed::AfterAll => producer.publish(slot),
                    Killed::BeforeTheMessage | Killed::AfterTheMessage => {}
                }
                core::mem::forget(producer);
                let mut successor = Producer::take_over(region, &gone()).unwrap();
                let found = if matches!(killed, Killed::BeforeTheHint | Killed::AfterAll) { 2 } else { 1 };
                assert_eq!(successor.tail(), found);
                push(&mut successor);
                successor.close();
                assert_eq!(receiver.join().unwrap(), found + 1);
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
        let region = Arc::clone(consumer.region());
        push(&mut producer);
        drop(producer);
        let maker = Arc::clone(&region);
        let maker = thread::spawn(move || Layout::<Pair>::new(1).unwrap().start(100).init(&maker).unwrap());
        for join in [Rx::join, Rx::join_oldest] {
            match join(Arc::clone(&region)) {
                Ok(joined) => {
                    let (old, new) = ([(2, 0), (2, 1)], (1, 100));
                    let found = (joined.capacity(), joined.head());
                    assert!(old.contains(&found) || found == new, "{found:?}");
                }
                Err(error) => assert_eq!(error, Error::NotReady),
            }
        }
        maker.join().unwrap();
        let mut late: Rx = Consumer::join(region).unwrap();
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
