//! A broadcast ring's producer and consumers go on while its words are overwritten; until then, each consumer sees
//! every message or learns how many it lost.
//!
//! # Safety
//!
//! A handle is dropped or forgotten before its successor attaches.
#![allow(unsafe_code)]
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_core::AssumeGone;
use ring_core::broadcast::{Consumer, Layout, PopError, Producer};
use ring_fuzz::{End, Fenced, Input, Message, Target, leave, message, where_tail_is};

#[derive(Debug, Arbitrary)]
enum Step {
    Push,
    PushSlice(u8),
    Reserve(End),
    Close,
    NewProducer { killed: bool },
    Remake { start: u64 },
    Join(u8),
    JoinOldest(u8),
    Pop(u8),
    PopSlice(u8, u8),
    Drain(u8, u8),
    Look(u8),
}

fuzz_target!(|input: Input<Step>| {
    let layout = Layout::new(1 << (input.size % 6)).unwrap().start(input.start);
    let region = Fenced::new(layout.bytes());
    layout.init(&region).unwrap();
    input.run(&region, || Ring::new(&region, layout, input.start));
});

const CONSUMERS: usize = 3;

/// All handles, and what they are held to as long as nothing was spoiled.
struct Ring<'a> {
    region: &'a Fenced,
    layout: Layout<Message>,
    /// The role is taken over only once its handle was dropped or forgotten.
    gone: AssumeGone,
    producer: Option<Producer<Message, &'a Fenced>>,
    consumers: [Option<Consumer<Message, &'a Fenced>>; CONSUMERS],
    making: u8,
    start: u64,
    tail: u64,
    is_closed: bool,
    /// Whether the slot at the tail was taken from consumers by a reservation that published nothing.
    is_begun: bool,
}

impl<'a> Ring<'a> {
    fn new(region: &'a Fenced, layout: Layout<Message>, start: u64) -> Self {
        let mut ring = Self {
            region,
            layout,
            // SAFETY: a handle is dropped or forgotten before its successor attaches.
            gone: unsafe { AssumeGone::all() },
            producer: None,
            consumers: [const { None }; CONSUMERS],
            making: 0,
            start,
            tail: start,
            is_closed: false,
            is_begun: false,
        };
        ring.attach();
        ring.join(0, false);
        ring
    }

    fn attach(&mut self) {
        let attached = Producer::take_over(self.region, &self.gone);
        let found = attached.as_ref().map(Producer::tail);
        self.tail = where_tail_is(self.region, found, self.tail, self.is_closed);
        self.producer = attached.ok();
    }

    /// Consumers of the ring that was, which may take new messages for old ones, leave first or are held to nothing.
    fn remake(&mut self, start: u64) {
        drop(self.producer.take());
        if !self.region.is_spoiled() {
            self.consumers = [const { None }; CONSUMERS];
        }
        let made = self.layout.start(start).init_over(self.region, &self.gone);
        assert!(self.region.is_spoiled() || made.is_ok(), "{made:?}");
        if made.is_ok() {
            (self.start, self.tail, self.is_closed, self.is_begun) = (start, start, false, false);
            self.making = self.making.wrapping_add(1);
        }
    }

    fn join(&mut self, who: u8, oldest: bool) {
        let joined = if oldest { Consumer::join_oldest(self.region) } else { Consumer::join(self.region) };
        if !self.region.is_spoiled() {
            let head = joined.as_ref().map(Consumer::head);
            assert_eq!(head, Ok(if oldest { self.oldest(self.start) } else { self.tail }));
        }
        self.consumers[usize::from(who) % CONSUMERS] = joined.ok();
    }

    /// Where a consumer at `head` goes on.
    fn oldest(&self, head: u64) -> u64 {
        let left = self.layout.depth() - u64::from(self.is_begun);
        self.tail.wrapping_sub(self.tail.wrapping_sub(head).min(left))
    }

    fn push(&mut self, step: &Step) {
        let Some(producer) = &mut self.producer else { return };
        let message = |ahead| message(self.making, self.tail.wrapping_add(ahead));
        let pushed = match step {
            Step::Push => {
                producer.push(&message(0));
                1
            }
            Step::PushSlice(count) => {
                producer.push_slice(&(0..u64::from(*count)).map(message).collect::<Vec<_>>());
                u64::from(*count)
            }
            Step::Reserve(end) => {
                let mut grant = producer.reserve();
                grant.write(&message(0));
                self.is_begun = true;
                u64::from(end.apply(grant, |grant| grant.commit()))
            }
            _ => return,
        };
        self.is_begun &= pushed == 0;
        self.tail = self.tail.wrapping_add(pushed);
        assert_eq!(producer.tail(), self.tail);
    }

    fn pop(&mut self, who: usize, step: &Step) {
        let Some(mut consumer) = self.consumers[who].take() else { return };
        let mut messages = Vec::new();
        let head = consumer.head();
        let popped = match step {
            Step::Pop(_) => consumer.try_pop().map(|message| messages.push(message)),
            Step::PopSlice(_, count) => {
                messages = vec![[0; 13]; usize::from(*count)];
                let popped = consumer.pop_slice(&mut messages);
                messages.truncate(popped.unwrap_or(0));
                popped.map(drop)
            }
            Step::Drain(_, count) => {
                messages.extend(consumer.drain(usize::from(*count)));
                Ok(())
            }
            _ => {
                let (lag, is_empty, peer) = (consumer.lag(), consumer.is_empty(), consumer.peer());
                let expected = self.tail.wrapping_sub(head);
                assert!(
                    self.region.is_spoiled() || (lag == Ok(expected) && peer.held == self.producer.is_some())
                );
                assert!(self.region.is_spoiled() || is_empty == (expected == 0));
                Ok(())
            }
        };
        if !self.region.is_spoiled() {
            self.check(head, &messages, popped);
        }
        let lost =
            if let Err(PopError::Lost { messages }) = popped { messages } else { messages.len() as u64 };
        assert_eq!(consumer.head(), head.wrapping_add(lost));
        self.consumers[who] = Some(consumer);
    }

    fn check(&self, head: u64, messages: &[Message], popped: Result<(), PopError>) {
        for (position, found) in (0..).map(|ahead| head.wrapping_add(ahead)).zip(messages) {
            assert_eq!(*found, message(self.making, position), "the message of {position}");
        }
        let oldest = self.oldest(head);
        match popped {
            Ok(()) => assert!(messages.is_empty() || oldest == head),
            Err(PopError::Lost { messages }) => {
                assert!(messages > 0 && messages == oldest.wrapping_sub(head));
            }
            Err(PopError::Empty) => assert!(!self.is_closed && head == self.tail),
            Err(PopError::Closed) => assert!(self.is_closed && head == self.tail),
            Err(PopError::Corrupted) => panic!("corrupted by nobody"),
        }
    }
}

impl Target for Ring<'_> {
    type Step = Step;

    fn step(&mut self, step: &Step) {
        match step {
            Step::Close => {
                if let Some(producer) = self.producer.take() {
                    producer.close();
                    self.is_closed = true;
                }
            }
            Step::NewProducer { killed } => {
                leave(&mut self.producer, *killed);
                self.attach();
            }
            Step::Remake { start } => self.remake(*start),
            Step::Join(who) => self.join(*who, false),
            Step::JoinOldest(who) => self.join(*who, true),
            Step::Pop(who) | Step::PopSlice(who, _) | Step::Drain(who, _) | Step::Look(who) => {
                self.pop(usize::from(*who) % CONSUMERS, step);
            }
            Step::Push | Step::PushSlice(_) | Step::Reserve(_) => self.push(step),
        }
    }
}
