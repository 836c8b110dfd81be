//! Long random sequences of operations, compared with a list of all that was sent.
//!
//! # Safety
//!
//! A role is taken over only after its only owner was forgotten.
#![allow(unsafe_code)]

use std::sync::Arc;

use proptest::prelude::*;
use ring_core::broadcast::{Consumer, Layout, PopError, Producer, create};
use ring_core::{AssumeGone, HeapRegion};

#[derive(Debug, Clone)]
enum Operation {
    Push(usize),
    PushSlice(usize),
    Reserve { commit: bool },
    RestartProducer,
    KillProducer,
    KillWriting,
    Pop(usize),
    PopSlice(usize, usize),
    Drain(usize, usize),
    Join(usize),
    JoinOldest(usize),
}

const CONSUMERS: usize = 3;

fn operation() -> impl Strategy<Value = Operation> {
    let who = || 0..CONSUMERS;
    prop_oneof![
        6 => (1..4_usize).prop_map(Operation::Push),
        3 => (0..40_usize).prop_map(Operation::PushSlice),
        3 => any::<bool>().prop_map(|commit| Operation::Reserve { commit }),
        1 => Just(Operation::RestartProducer),
        1 => Just(Operation::KillProducer),
        1 => Just(Operation::KillWriting),
        9 => who().prop_map(Operation::Pop),
        4 => (who(), 0..9_usize).prop_map(|(who, many)| Operation::PopSlice(who, many)),
        4 => (who(), 0..9_usize).prop_map(|(who, most)| Operation::Drain(who, most)),
        1 => who().prop_map(Operation::Join),
        1 => who().prop_map(Operation::JoinOldest),
    ]
}

/// First positions near every wrap-around that words of 31 to 64 bits can have.
fn start() -> impl Strategy<Value = u64> {
    let near = |point: u64| (0..80_u64).prop_map(move |offset| point.wrapping_sub(40).wrapping_add(offset));
    prop_oneof![near(0), near(1 << 31), near(1 << 32), near(1 << 62), near(1 << 63), any::<u64>()]
}

/// A ring that is obviously right: messages are numbers from 0 on, and a consumer is the next one that it is due.
struct Oracle {
    depth: u64,
    sent: u64,
    /// Whether the slot of the next message was taken for it.
    is_writing: bool,
    next: [u64; CONSUMERS],
}

impl Oracle {
    fn oldest(&self) -> u64 {
        (self.sent + u64::from(self.is_writing)).saturating_sub(self.depth)
    }

    fn push(&mut self) -> u64 {
        self.is_writing = false;
        self.sent += 1;
        self.sent - 1
    }

    fn look(&self, who: usize) -> Result<u64, PopError> {
        let next = self.next[who];
        if next < self.oldest() {
            Err(PopError::Lost { messages: self.oldest() - next })
        } else if next == self.sent {
            Err(PopError::Empty)
        } else {
            Ok(next)
        }
    }

    fn pop(&mut self, who: usize) -> Result<u64, PopError> {
        let found = self.look(who);
        match found {
            Ok(_) => self.next[who] += 1,
            Err(PopError::Lost { messages }) => self.next[who] += messages,
            Err(_) => {}
        }
        found
    }

    fn drain(&mut self, who: usize, most: usize) -> Vec<u64> {
        let mut found = Vec::new();
        while found.len() < most && self.look(who).is_ok() {
            found.extend(self.pop(who));
        }
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_consumer_sees_all_or_learns_what_it_lost(
        depth_log in 0..6_u32,
        start in start(),
        operations in prop::collection::vec(operation(), 1..400),
    ) {
        let depth = 1 << depth_log;
        let layout = Layout::<[u64; 3]>::new(depth)?.start(start);
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (mut producer, first) = create(Arc::clone(&region), &layout)?;
        let join = || Consumer::join(Arc::clone(&region));
        let mut consumers = [first, join()?, join()?];
        let mut oracle = Oracle { depth, sent: 0, is_writing: false, next: [0; CONSUMERS] };
        let message = |number: u64| [number, !number, number.rotate_left(32)];
        // The sum of what was popped and lost; a new consumer begins where it joined.
        let mut accounted = [0; CONSUMERS];

        for operation in operations {
            match operation {
                Operation::Push(many) => {
                    for _ in 0..many {
                        producer.push(&message(oracle.push()));
                    }
                }
                Operation::PushSlice(many) => {
                    let values: Vec<_> = (0..many).map(|_| message(oracle.push())).collect();
                    producer.push_slice(&values);
                }
                Operation::Reserve { commit } => {
                    let mut grant = producer.reserve();
                    if commit {
                        grant.write(&message(oracle.push()));
                        grant.commit();
                    } else {
                        grant.write(&[u64::MAX; 3]);
                        oracle.is_writing = true;
                    }
                }
                Operation::RestartProducer => {
                    drop(producer);
                    producer = Producer::attach(Arc::clone(&region))?;
                }
                Operation::KillProducer | Operation::KillWriting => {
                    if matches!(operation, Operation::KillWriting) {
                        let _ = producer.reserve();
                        oracle.is_writing = true;
                    }
                    core::mem::forget(producer);
                    // SAFETY: the only producer was forgotten just now.
                    let gone = unsafe { AssumeGone::all() };
                    producer = Producer::take_over(Arc::clone(&region), &gone)?;
                }
                Operation::Pop(who) => {
                    let found = consumers[who].try_pop();
                    prop_assert_eq!(found, oracle.pop(who).map(message));
                    accounted[who] += match found {
                        Ok(_) => 1,
                        Err(PopError::Lost { messages }) => messages,
                        Err(_) => 0,
                    };
                }
                Operation::PopSlice(who, many) => {
                    let mut values = vec![[0; 3]; many];
                    let found = consumers[who].pop_slice(&mut values);
                    if many == 0 {
                        prop_assert_eq!(found, Ok(0));
                    } else if oracle.look(who).is_ok() {
                        let expected: Vec<_> = oracle.drain(who, many).into_iter().map(message).collect();
                        prop_assert_eq!(found, Ok(expected.len()));
                        prop_assert_eq!(&values[..expected.len()], &expected[..]);
                        accounted[who] += expected.len() as u64;
                    } else {
                        let expected = oracle.pop(who).unwrap_err();
                        prop_assert_eq!(found, Err(expected));
                        if let PopError::Lost { messages } = expected {
                            accounted[who] += messages;
                        }
                    }
                }
                Operation::Drain(who, most) => {
                    let found: Vec<_> = consumers[who].drain(most).collect();
                    let expected: Vec<_> = oracle.drain(who, most).into_iter().map(message).collect();
                    accounted[who] += expected.len() as u64;
                    prop_assert_eq!(found, expected);
                }
                Operation::Join(who) => {
                    consumers[who] = join()?;
                    oracle.next[who] = oracle.sent;
                    accounted[who] = oracle.sent;
                }
                Operation::JoinOldest(who) => {
                    consumers[who] = Consumer::join_oldest(Arc::clone(&region))?;
                    oracle.next[who] = oracle.oldest();
                    accounted[who] = oracle.oldest();
                }
            }
            prop_assert_eq!(producer.tail(), start.wrapping_add(oracle.sent));
            for (who, consumer) in consumers.iter().enumerate() {
                prop_assert_eq!(consumer.head(), start.wrapping_add(oracle.next[who]));
                prop_assert_eq!(accounted[who], oracle.next[who]);
                prop_assert_eq!(consumer.lag(), Ok(oracle.sent - oracle.next[who]));
                prop_assert_eq!(consumer.is_empty(), oracle.look(who) == Err(PopError::Empty));
            }
        }

        producer.close();
        for (who, consumer) in consumers.iter_mut().enumerate() {
            loop {
                let expected = oracle.pop(who).map(message);
                let expected = if expected == Err(PopError::Empty) { Err(PopError::Closed) } else { expected };
                prop_assert_eq!(consumer.try_pop(), expected);
                if expected == Err(PopError::Closed) {
                    break;
                }
            }
        }
    }
}
