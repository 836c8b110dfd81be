//! Long random sequences of operations on a byte ring, compared with a `VecDeque` that does the same.
//!
//! # Safety
//!
//! A role is taken over only after its only owner was forgotten.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use ring_core::bytes::{Consumer, Delivery, Layout, PopError, Producer, PushError, create};
use ring_core::{AssumeGone, HeapRegion};

/// Lengths are parts of what a message can have at most, in 1/256.
#[derive(Debug, Clone)]
enum Operation {
    Push(u8),
    PushSlices(Vec<u8>),
    Reserve { part: u8, commit: Commit },
    Pop,
    PopInto(usize),
    PopEach(usize),
    Peek { release: bool },
    RestartProducer,
    RestartConsumer,
    KillProducer,
    KillConsumer,
    Deliver(Delivery),
}

#[derive(Debug, Clone)]
enum Commit {
    Not,
    Whole,
    Shortened(u8),
}

fn delivery() -> impl Strategy<Value = Delivery> {
    prop_oneof![Just(Delivery::AtMostOnce), (0..200_u32).prop_map(|batch| Delivery::AtLeastOnce { batch })]
}

/// Short messages and long ones.
fn part() -> impl Strategy<Value = u8> {
    prop_oneof![3 => 0..30_u8, 1 => any::<u8>()]
}

fn operation() -> impl Strategy<Value = Operation> {
    let commit = prop_oneof![Just(Commit::Not), Just(Commit::Whole), any::<u8>().prop_map(Commit::Shortened)];
    prop_oneof![
        6 => part().prop_map(Operation::Push),
        3 => prop::collection::vec(part(), 0..5).prop_map(Operation::PushSlices),
        4 => (part(), commit).prop_map(|(part, commit)| Operation::Reserve { part, commit }),
        6 => Just(Operation::Pop),
        1 => (0..20_usize).prop_map(Operation::PopInto),
        3 => (0..5_usize).prop_map(Operation::PopEach),
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
    let near =
        |point: u64| (0..80_u64).prop_map(move |offset| point.wrapping_sub(320).wrapping_add(offset * 8));
    prop_oneof![near(0), near(1 << 31), near(1 << 32), near(1 << 63), any::<u64>().prop_map(|any| any & !7)]
}

/// A message in the ring, and the bytes that it takes there with the padding before it.
#[derive(Debug, Clone)]
struct Frame {
    message: Vec<u8>,
    bytes: u64,
}

/// A ring that is obviously right.
struct Oracle {
    ring_bytes: u64,
    tail: u64,
    /// Pushed, not popped.
    waiting: VecDeque<Frame>,
    /// Popped, not credited: a killed consumer's successor sees them again.
    uncredited: VecDeque<Frame>,
    batch: Option<u64>,
    number: usize,
}

fn bytes_of(frames: &VecDeque<Frame>) -> u64 {
    frames.iter().map(|frame| frame.bytes).sum()
}

impl Oracle {
    fn longest(&self) -> usize {
        usize::try_from(self.ring_bytes / 2 - 8).unwrap()
    }

    /// The next message: its bytes differ from place to place and from those of others.
    fn message(&self, part: u8) -> Vec<u8> {
        let len = 1 + usize::from(part) * (self.longest() - 1) / 255;
        (0..len).map(|place| u8::try_from((self.number * 31 + place * 7 + 1) % 251).unwrap()).collect()
    }

    /// Bytes of a frame pushed now, and of the padding before it.
    fn frame_bytes(&self, len: usize) -> (u64, u64) {
        let frame = 8 + (len as u64).div_ceil(8) * 8;
        let to_end = self.ring_bytes - self.tail % self.ring_bytes;
        (frame, if frame > to_end { to_end } else { 0 })
    }

    fn used(&self) -> u64 {
        bytes_of(&self.waiting) + bytes_of(&self.uncredited)
    }

    fn has_room(&self, len: usize) -> bool {
        let (frame, padding) = self.frame_bytes(len);
        self.used() + padding + frame + 8 <= self.ring_bytes
    }

    /// Pushes the first `len` bytes of a message for which there was room as a whole.
    fn push(&mut self, message: &[u8], len: usize) -> Result<(), PushError> {
        if !self.has_room(message.len()) {
            return Err(PushError::Full);
        }
        let (_, padding) = self.frame_bytes(message.len());
        let bytes = padding + 8 + (len as u64).div_ceil(8) * 8;
        self.waiting.push_back(Frame { message: message[..len].to_vec(), bytes });
        self.tail = self.tail.wrapping_add(bytes);
        self.number += 1;
        Ok(())
    }

    fn look(&mut self) -> Option<Vec<u8>> {
        if self.waiting.is_empty() {
            self.uncredited.clear();
        }
        self.waiting.front().map(|frame| frame.message.clone())
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        self.look()?;
        let frame = self.waiting.pop_front()?;
        if let Some(batch) = self.batch {
            if bytes_of(&self.uncredited) >= batch {
                self.uncredited.clear();
            }
            self.uncredited.push_back(frame.clone());
        }
        Some(frame.message)
    }

    fn set(&mut self, delivery: Delivery) {
        self.batch = match delivery {
            Delivery::AtMostOnce => {
                self.uncredited.clear();
                None
            }
            Delivery::AtLeastOnce { batch } => Some(u64::from(batch).min(self.ring_bytes / 2).max(1)),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_queue(
        ring_log in 6..12_u32,
        start in start(),
        delivery in delivery(),
        operations in prop::collection::vec(operation(), 1..400),
    ) {
        let layout = Layout::new(1 << ring_log)?.start(start);
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (mut producer, consumer) = create(Arc::clone(&region), &layout)?;
        let mut consumer = consumer.delivery(delivery);
        let mut oracle = Oracle {
            ring_bytes: 1 << ring_log,
            tail: start,
            waiting: VecDeque::new(),
            uncredited: VecDeque::new(),
            batch: None,
            number: 0,
        };
        oracle.set(delivery);
        let mut last = delivery;
        let mut bytes = [0; 4096];
        prop_assert_eq!(producer.longest(), oracle.longest());

        for operation in operations {
            match operation {
                Operation::Push(part) => {
                    let message = oracle.message(part);
                    let expected = oracle.push(&message, message.len());
                    prop_assert_eq!(producer.try_push(&message), expected);
                }
                Operation::PushSlices(parts) => {
                    let messages: Vec<Vec<u8>> = parts.iter().map(|&part| oracle.message(part)).collect();
                    let fit = messages.iter().take_while(|next| oracle.push(next, next.len()).is_ok()).count();
                    let expected = if fit == 0 && !messages.is_empty() { Err(PushError::Full) } else { Ok(fit) };
                    prop_assert_eq!(producer.push_slices(&messages), expected);
                }
                Operation::Reserve { part, commit } => {
                    let message = oracle.message(part);
                    match producer.try_reserve(message.len()) {
                        Ok(mut grant) => {
                            prop_assert!(oracle.has_room(message.len()));
                            prop_assert_eq!(grant.len(), message.len());
                            let half = message.len() / 2;
                            grant.write_at(half, &message[half..]);
                            grant.write_at(0, &message[..half]);
                            prop_assert_eq!(&*grant, &message[..]);
                            match commit {
                                Commit::Not => grant.fill(0xff),
                                Commit::Whole => {
                                    grant.commit();
                                    oracle.push(&message, message.len())?;
                                }
                                Commit::Shortened(part) => {
                                    let len = 1 + usize::from(part) * (message.len() - 1) / 255;
                                    grant.commit_shortened(len);
                                    oracle.push(&message, len)?;
                                }
                            }
                        }
                        Err(error) => {
                            prop_assert_eq!(error, PushError::Full);
                            prop_assert!(!oracle.has_room(message.len()));
                        }
                    }
                }
                Operation::Pop => {
                    let popped = consumer.try_pop(&mut bytes).map(|len| bytes[..len].to_vec());
                    prop_assert_eq!(popped, oracle.pop().ok_or(PopError::Empty));
                }
                Operation::PopInto(len) => {
                    let expected = match oracle.look() {
                        None => Err(PopError::Empty),
                        Some(message) if message.len() > len => Err(PopError::BufferTooShort { len: message.len() }),
                        Some(_) => Ok(oracle.pop().unwrap()),
                    };
                    let popped = consumer.try_pop(&mut bytes[..len]).map(|len| bytes[..len].to_vec());
                    prop_assert_eq!(popped, expected);
                }
                Operation::PopEach(most) => {
                    let expected: Vec<Vec<u8>> = (0..most).map_while(|_| oracle.pop()).collect();
                    let mut popped = vec![];
                    let count = consumer.pop_each(most, |grant| popped.push(grant.to_vec()));
                    prop_assert_eq!(count, expected.len());
                    prop_assert_eq!(popped, expected);
                }
                Operation::Peek { release } => {
                    let expected = oracle.look();
                    match consumer.try_peek() {
                        Ok(grant) => {
                            prop_assert_eq!(Some(grant.to_vec()), expected);
                            let len = grant.read(&mut bytes);
                            prop_assert_eq!(&bytes[..len], &*grant);
                            prop_assert_eq!(grant.as_ptr().as_ptr() as usize % 8, 0);
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
            prop_assert_eq!(producer.tail(), oracle.tail);
            prop_assert_eq!(consumer.head(), oracle.tail.wrapping_sub(bytes_of(&oracle.waiting)));
            prop_assert_eq!(consumer.len(), Ok(bytes_of(&oracle.waiting)));
            prop_assert_eq!(consumer.is_empty(), oracle.waiting.is_empty());
            prop_assert_eq!(producer.len(), oracle.used());
            prop_assert_eq!(producer.is_empty(), oracle.used() == 0);
        }

        producer.close();
        while let Some(message) = oracle.pop() {
            prop_assert_eq!(consumer.try_pop(&mut bytes), Ok(message.len()));
            prop_assert_eq!(&bytes[..message.len()], &message[..]);
        }
        prop_assert_eq!(consumer.try_pop(&mut bytes), Err(PopError::Closed));
    }
}
