//! Long random sequences of operations, compared with a `VecDeque` that does the same.
//!
//! # Safety
//!
//! A role is taken over only after its only owner was forgotten.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use ring_core::spsc::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use ring_core::{AssumeGone, HeapRegion};

#[derive(Debug, Clone)]
enum Operation {
    Push,
    PushSlice(usize),
    PushIter(usize),
    Reserve { commit: bool },
    Pop,
    PopSlice(usize),
    Drain(usize),
    Peek { release: bool },
    RestartProducer,
    RestartConsumer,
    KillProducer,
    KillConsumer,
    Deliver(Delivery),
}

fn delivery() -> impl Strategy<Value = Delivery> {
    prop_oneof![Just(Delivery::AtMostOnce), (0..9_u32).prop_map(|batch| Delivery::AtLeastOnce { batch })]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => Just(Operation::Push),
        3 => (0..9_usize).prop_map(Operation::PushSlice),
        3 => (0..9_usize).prop_map(Operation::PushIter),
        3 => any::<bool>().prop_map(|commit| Operation::Reserve { commit }),
        6 => Just(Operation::Pop),
        3 => (0..9_usize).prop_map(Operation::PopSlice),
        3 => (0..9_usize).prop_map(Operation::Drain),
        3 => any::<bool>().prop_map(|release| Operation::Peek { release }),
        1 => Just(Operation::RestartProducer),
        1 => Just(Operation::RestartConsumer),
        1 => Just(Operation::KillProducer),
        1 => Just(Operation::KillConsumer),
        1 => delivery().prop_map(Operation::Deliver),
    ]
}

/// First positions near every wrap-around that words of 32 or 64 bits, signed or not, can have.
fn start() -> impl Strategy<Value = u64> {
    let near = |point: u64| (0..40_u64).prop_map(move |offset| point.wrapping_sub(20).wrapping_add(offset));
    prop_oneof![near(0), near(1 << 31), near(1 << 32), near(1 << 63), any::<u64>()]
}

/// A ring that is obviously right.
struct Oracle {
    depth: usize,
    /// Pushed, not popped.
    waiting: VecDeque<u64>,
    /// Popped, not credited: a killed consumer's successor sees them again.
    uncredited: VecDeque<u64>,
    batch: Option<usize>,
    next: u64,
}

impl Oracle {
    fn room(&self) -> usize {
        self.depth - self.waiting.len() - self.uncredited.len()
    }

    fn push(&mut self) -> Result<(), ()> {
        if self.room() == 0 {
            return Err(());
        }
        self.waiting.push_back(self.next);
        self.next += 1;
        Ok(())
    }

    fn look(&mut self) -> Option<u64> {
        if self.waiting.is_empty() {
            self.uncredited.clear();
        }
        self.waiting.front().copied()
    }

    fn pop(&mut self) -> Option<u64> {
        self.pop_slice(1).pop()
    }

    fn pop_slice(&mut self, many: usize) -> Vec<u64> {
        if many == 0 || self.look().is_none() {
            return vec![];
        }
        let values: Vec<u64> = self.waiting.drain(..many.min(self.waiting.len())).collect();
        if let Some(batch) = self.batch {
            if self.uncredited.len() >= batch {
                self.uncredited.clear();
            }
            self.uncredited.extend(&values);
        }
        values
    }

    fn set(&mut self, delivery: Delivery) {
        self.batch = match delivery {
            Delivery::AtMostOnce => {
                self.uncredited.clear();
                None
            }
            Delivery::AtLeastOnce { batch } => Some((batch as usize).min(self.depth - 1).max(1)),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_queue(
        depth_log in 0..6_u32,
        start in start(),
        delivery in delivery(),
        operations in prop::collection::vec(operation(), 1..400),
    ) {
        let depth = 1_usize << depth_log;
        let layout = Layout::<u64>::new(depth as u64)?.start(start);
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (mut producer, consumer) = create(Arc::clone(&region), &layout)?;
        let mut consumer = consumer.delivery(delivery);
        let mut oracle =
            Oracle { depth, waiting: VecDeque::new(), uncredited: VecDeque::new(), batch: None, next: 0 };
        oracle.set(delivery);
        let mut last = delivery;

        for operation in operations {
            match operation {
                Operation::Push => {
                    let value = oracle.next;
                    let expected = oracle.push().map_err(|()| PushError::Full(value));
                    prop_assert_eq!(producer.try_push(value), expected);
                }
                Operation::PushSlice(many) => {
                    let values: Vec<u64> = (oracle.next..).take(many).collect();
                    let full = oracle.room() == 0 && many > 0;
                    let expected = (0..many).take_while(|_| oracle.push().is_ok()).count();
                    let expected = if full { Err(PushError::Full(())) } else { Ok(expected) };
                    prop_assert_eq!(producer.push_slice(&values), expected);
                }
                Operation::PushIter(many) => {
                    let mut values = (oracle.next..).take(many);
                    let full = oracle.room() == 0;
                    let fit = (0..many).take_while(|_| oracle.push().is_ok()).count();
                    let expected = if full { Err(PushError::Full(())) } else { Ok(fit) };
                    prop_assert_eq!(producer.push_iter(&mut values), expected);
                    prop_assert_eq!(values.count(), many - fit);
                }
                Operation::Reserve { commit } => match producer.try_reserve() {
                    Ok(mut grant) if commit => {
                        *grant = oracle.next;
                        grant.commit();
                        prop_assert_eq!(oracle.push(), Ok(()));
                    }
                    Ok(mut grant) => {
                        grant.write(&u64::MAX);
                        prop_assert!(oracle.room() > 0);
                    }
                    Err(error) => {
                        prop_assert_eq!(error, PushError::Full(()));
                        prop_assert_eq!(oracle.room(), 0);
                    }
                },
                Operation::Pop => {
                    prop_assert_eq!(consumer.try_pop(), oracle.pop().ok_or(PopError::Empty));
                }
                Operation::PopSlice(many) => {
                    let mut values = vec![0; many];
                    let expected = oracle.pop_slice(many);
                    match consumer.pop_slice(&mut values) {
                        Ok(popped) => prop_assert_eq!(&values[..popped], &expected[..]),
                        Err(error) => {
                            prop_assert_eq!(error, PopError::Empty);
                            prop_assert!(expected.is_empty() && many > 0);
                        }
                    }
                }
                Operation::Drain(most) => {
                    let expected: Vec<u64> = (0..most).map_while(|_| oracle.pop()).collect();
                    prop_assert_eq!(consumer.drain(most).collect::<Vec<_>>(), expected);
                }
                Operation::Peek { release } => {
                    let expected = oracle.look();
                    match consumer.try_peek() {
                        Ok(grant) => {
                            prop_assert_eq!(Some(*grant), expected);
                            prop_assert_eq!(Some(grant.read()), expected);
                            if release {
                                grant.release();
                                oracle.pop();
                            }
                        }
                        Err(error) => {
                            prop_assert_eq!(error, PopError::Empty);
                            prop_assert_eq!(expected, None);
                        }
                    }
                }
                Operation::RestartProducer => {
                    drop(producer);
                    producer = Producer::attach(Arc::clone(&region))?;
                }
                Operation::RestartConsumer => {
                    drop(consumer);
                    oracle.uncredited.clear();
                    consumer = Consumer::attach(Arc::clone(&region))?.delivery(last);
                }
                Operation::KillProducer => {
                    core::mem::forget(producer);
                    // SAFETY: the only producer was forgotten just now.
                    let gone = unsafe { AssumeGone::all() };
                    producer = Producer::take_over(Arc::clone(&region), &gone)?;
                }
                Operation::KillConsumer => {
                    core::mem::forget(consumer);
                    // SAFETY: the only consumer was forgotten just now.
                    let gone = unsafe { AssumeGone::all() };
                    consumer = Consumer::take_over(Arc::clone(&region), &gone)?.delivery(last);
                    // Delivered again.
                    let mut again = core::mem::take(&mut oracle.uncredited);
                    again.append(&mut oracle.waiting);
                    oracle.waiting = again;
                }
                Operation::Deliver(delivery) => {
                    consumer = consumer.delivery(delivery);
                    oracle.set(delivery);
                    last = delivery;
                }
            }
            prop_assert_eq!(consumer.len(), Ok(oracle.waiting.len() as u64));
            prop_assert_eq!(consumer.is_empty(), oracle.waiting.is_empty());
            prop_assert_eq!(producer.len(), (depth - oracle.room()) as u64);
            prop_assert_eq!(producer.is_empty(), oracle.room() == depth);
            prop_assert_eq!(producer.is_full(), oracle.room() == 0);
        }

        producer.close();
        while let Some(value) = oracle.pop() {
            prop_assert_eq!(consumer.try_pop(), Ok(value));
        }
        prop_assert_eq!(consumer.try_pop(), Err(PopError::Closed));
    }
}
