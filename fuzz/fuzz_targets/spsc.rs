//! Both sides of an spsc ring go on while its words are overwritten; until then, each message comes in its turn.
//!
//! # Safety
//!
//! A handle is dropped or forgotten before its successor attaches.
#![allow(unsafe_code)]
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_core::AssumeGone;
use ring_core::spsc::{Consumer, Delivery, Layout, PopError, Producer, PushError};
use ring_fuzz::{End, Fenced, Input, Message, Target, leave, message, where_head_is, where_tail_is};

#[derive(Debug, Arbitrary)]
enum Step {
    Push,
    Pop,
    PushSlice(u8),
    PushIter(u8),
    PopSlice(u8),
    Drain(u8),
    Reserve(End),
    Peek(End),
    Look,
    Eager,
    Lazy(u32),
    Close,
    NewProducer { killed: bool },
    NewConsumer { killed: bool },
    Remake { start: u64 },
}

fuzz_target!(|input: Input<Step>| {
    let layout = Layout::new(1 << (input.size % 6)).unwrap().start(input.start);
    let region = Fenced::new(layout.bytes());
    layout.init(&region).unwrap();
    input.run(&region, || Ring::new(&region, layout, input.start));
});

/// Both ends, and what they are held to as long as nothing was spoiled.
struct Ring<'a> {
    region: &'a Fenced,
    layout: Layout<Message>,
    /// Roles are taken over only once their handles were dropped or forgotten.
    gone: AssumeGone,
    producer: Option<Producer<Message, &'a Fenced>>,
    consumer: Option<Consumer<Message, &'a Fenced>>,
    making: u8,
    head: u64,
    tail: u64,
    is_closed: bool,
    /// Whether each pop returns credit.
    is_eager: bool,
}

impl<'a> Ring<'a> {
    fn new(region: &'a Fenced, layout: Layout<Message>, start: u64) -> Self {
        let mut ring = Self {
            region,
            layout,
            // SAFETY: a handle is dropped or forgotten before its successor attaches.
            gone: unsafe { AssumeGone::all() },
            producer: None,
            consumer: None,
            making: 0,
            head: start,
            tail: start,
            is_closed: false,
            is_eager: false,
        };
        ring.attach_producer();
        ring.attach_consumer(false);
        ring
    }

    fn close(&mut self) {
        if let Some(producer) = self.producer.take() {
            producer.close();
            self.is_closed = true;
        }
    }

    fn attach_producer(&mut self) {
        let attached = Producer::take_over(self.region, &self.gone);
        let found = attached.as_ref().map(Producer::tail);
        self.tail = where_tail_is(self.region, found, self.tail, self.is_closed);
        self.producer = attached.ok();
    }

    fn attach_consumer(&mut self, again: bool) {
        let attached = Consumer::take_over(self.region, &self.gone);
        let found = attached.as_ref().map(Consumer::head);
        self.head = where_head_is(self.region, found, self.head, again);
        self.consumer = attached.ok();
        self.is_eager = false;
    }

    fn remake(&mut self, start: u64) {
        drop((self.producer.take(), self.consumer.take()));
        let made = self.layout.start(start).init_over(self.region, &self.gone);
        assert!(self.region.is_spoiled() || made.is_ok(), "{made:?}");
        if made.is_ok() {
            (self.head, self.tail, self.is_closed) = (start, start, false);
            self.making = self.making.wrapping_add(1);
        }
    }

    fn push(&mut self, step: &Step) {
        let Some(producer) = &mut self.producer else { return };
        let message = |ahead| message(self.making, self.tail.wrapping_add(ahead));
        let messages: Vec<_> = match step {
            Step::PushSlice(count) => (0..u64::from(*count)).map(message).collect(),
            _ => Vec::new(),
        };
        let pushed = match step {
            Step::Push => producer.try_push(message(0)).map(|()| 1).map_err(|error| match error {
                PushError::Full(back) | PushError::Corrupted(back) if back != message(0) => {
                    panic!("another one")
                }
                PushError::Full(_) => PushError::Full(()),
                PushError::Corrupted(_) => PushError::Corrupted(()),
            }),
            Step::PushSlice(_) => producer.push_slice(&messages),
            Step::PushIter(count) => producer.push_iter((0..u64::from(*count)).map(message)),
            Step::Reserve(end) => producer.try_reserve().map(|mut grant| {
                grant.write(&message(0));
                usize::from(end.apply(grant, |grant| grant.commit()))
            }),
            Step::Look => {
                let (len, peer) = (producer.len(), producer.peer());
                assert!(
                    len <= producer.capacity()
                        && (self.region.is_spoiled() || peer.held == self.consumer.is_some())
                );
                assert!(self.region.is_spoiled() || producer.is_full() == (len == producer.capacity()));
                Ok(0)
            }
            _ => return,
        };
        assert!(self.region.is_spoiled() || pushed != Err(PushError::Corrupted(())));
        self.tail = self.tail.wrapping_add(pushed.unwrap_or(0) as u64);
        assert_eq!(producer.tail(), self.tail);
    }

    fn pop(&mut self, step: &Step) {
        let Some(mut consumer) = self.consumer.take() else { return };
        let mut messages = Vec::new();
        let popped = match step {
            Step::Pop => consumer.try_pop().map(|message| messages.push(message)),
            Step::PopSlice(count) => {
                messages = vec![[0; 13]; usize::from(*count)];
                let popped = consumer.pop_slice(&mut messages);
                messages.truncate(popped.unwrap_or(0));
                popped.map(drop)
            }
            Step::Drain(count) => {
                messages.extend(consumer.drain(usize::from(*count)));
                Ok(())
            }
            Step::Peek(end) => consumer.try_peek().map(|grant| {
                let message = grant.read();
                if end.apply(grant, |grant| grant.release()) {
                    messages.push(message);
                }
            }),
            Step::Look => {
                let (len, peer) = (consumer.len(), consumer.peer());
                assert!(len.unwrap_or(0) <= consumer.capacity());
                let held = self.producer.is_some();
                assert!(
                    self.region.is_spoiled() || (consumer.is_empty() == (len == Ok(0)) && peer.held == held)
                );
                Ok(())
            }
            Step::Eager | Step::Lazy(_) => {
                self.is_eager = matches!(step, Step::Eager);
                consumer = consumer.delivery(match step {
                    Step::Lazy(batch) => Delivery::AtLeastOnce { batch: *batch },
                    _ => Delivery::AtMostOnce,
                });
                Ok(())
            }
            _ => Ok(()),
        };
        if !self.region.is_spoiled() {
            for (position, found) in (0..).map(|ahead| self.head.wrapping_add(ahead)).zip(&messages) {
                assert_eq!(*found, message(self.making, position), "the message of {position}");
            }
            if let Err(error) = popped {
                let expected = if self.is_closed { PopError::Closed } else { PopError::Empty };
                assert!(error == expected && self.head == self.tail, "{error:?}");
            }
        }
        self.head = self.head.wrapping_add(messages.len() as u64);
        assert_eq!(consumer.head(), self.head);
        self.consumer = Some(consumer);
    }

    fn check(&self) {
        let waiting = self.tail.wrapping_sub(self.head);
        if self.region.is_spoiled() {
            return;
        }
        assert!(waiting <= self.layout.depth());
        if let Some(consumer) = &self.consumer {
            assert_eq!(consumer.len(), Ok(waiting));
        }
        if let Some(producer) = &self.producer {
            assert!(producer.len() >= waiting);
        }
    }
}

impl Target for Ring<'_> {
    type Step = Step;

    fn step(&mut self, step: &Step) {
        match step {
            Step::Close => self.close(),
            Step::NewProducer { killed } => {
                leave(&mut self.producer, *killed);
                self.attach_producer();
            }
            Step::NewConsumer { killed } => {
                let again = *killed && !self.is_eager && self.consumer.is_some();
                leave(&mut self.consumer, *killed);
                self.attach_consumer(again);
            }
            Step::Remake { start } => self.remake(*start),
            step => {
                self.push(step);
                self.pop(step);
            }
        }
        self.check();
    }

    fn finish(&mut self) {
        self.close();
        self.pop(&Step::Drain(u8::MAX));
        self.pop(&Step::Pop);
        assert!(self.consumer.is_none() || self.head == self.tail);
    }
}
