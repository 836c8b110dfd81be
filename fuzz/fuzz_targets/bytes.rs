//! Both sides of a byte ring go on while its words are overwritten; until then, each message comes in its turn, also
//! where its bytes look like the headers of frames.
//!
//! # Safety
//!
//! A handle is dropped or forgotten before its successor attaches.
#![allow(unsafe_code)]
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_core::AssumeGone;
use ring_core::bytes::{Consumer, Delivery, Layout, PopError, Producer, PushError};
use ring_fuzz::{End, Fenced, Input, Target, leave, where_head_is, where_tail_is};

#[derive(Debug, Arbitrary)]
enum Step {
    Push(Payload),
    PushSlices(Payload, Payload),
    /// Reserves, writes all or from a byte on, and commits as many bytes.
    Reserve(Payload, u8, End),
    Shorten(Payload, u8),
    Pop(u16),
    PopEach(u8),
    Peek(End),
    Look,
    Eager,
    Lazy(u32),
    Close,
    NewProducer {
        killed: bool,
    },
    NewConsumer {
        killed: bool,
    },
    Remake {
        start: u64,
    },
}

/// A message: its length, and the word that it is full of.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Payload {
    len: u16,
    word: Word,
}

/// What could be taken for a header.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Word {
    /// The frontier.
    Zero,
    /// A message that is not there.
    Length(u8),
    /// Padding that is not there.
    Padding(u8),
    /// Padding to the ring's end, wherever the word lies.
    ToEnd,
    Raw(u64),
}

fuzz_target!(|input: Input<Step>| {
    let layout = Layout::new(64 << (input.size % 5)).unwrap().start(input.start);
    let region = Fenced::new(layout.bytes());
    layout.init(&region).unwrap();
    input.run(&region, || Ring::new(&region, layout, input.start));
});

/// Both ends, and what they are held to as long as nothing was spoiled.
struct Ring<'a> {
    region: &'a Fenced,
    layout: Layout,
    /// Roles are taken over only once their handles were dropped or forgotten.
    gone: AssumeGone,
    producer: Option<Producer<&'a Fenced>>,
    consumer: Option<Consumer<&'a Fenced>>,
    head: u64,
    tail: u64,
    /// All messages since the ring was made, and the position at which each was pushed.
    sent: Vec<(u64, Vec<u8>)>,
    /// How many of them were popped.
    popped: usize,
    is_closed: bool,
    /// Whether each pop returns credit.
    is_eager: bool,
}

impl<'a> Ring<'a> {
    fn new(region: &'a Fenced, layout: Layout, start: u64) -> Self {
        let mut ring = Self {
            region,
            layout,
            // SAFETY: a handle is dropped or forgotten before its successor attaches.
            gone: unsafe { AssumeGone::all() },
            producer: None,
            consumer: None,
            head: start & !7,
            tail: start & !7,
            sent: Vec::new(),
            popped: 0,
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
        if !self.region.is_spoiled() && self.head != self.next_at() {
            let again = self.sent[..self.popped].iter().rposition(|&(at, _)| at == self.head);
            self.popped = again.expect("a frame begins where the successor does");
        }
    }

    /// The position of the next message to be popped.
    fn next_at(&self) -> u64 {
        self.sent.get(self.popped).map_or(self.tail, |&(at, _)| at)
    }

    fn remake(&mut self, start: u64) {
        drop((self.producer.take(), self.consumer.take()));
        let made = self.layout.start(start).init_over(self.region, &self.gone);
        assert!(self.region.is_spoiled() || made.is_ok(), "{made:?}");
        if made.is_ok() {
            (self.head, self.tail, self.is_closed, self.popped) = (start & !7, start & !7, false, 0);
            self.sent.clear();
        }
    }

    fn push(&mut self, step: &Step) {
        let Some(producer) = &mut self.producer else { return };
        let longest = producer.longest();
        let make = |payload: &Payload| payload.message(longest, self.layout.ring_bytes());
        let at = producer.tail();
        let mut reserved = 0;
        let mut messages = Vec::new();
        let pushed = match step {
            Step::Push(payload) => {
                messages.push(make(payload));
                producer.try_push(&messages[0]).map(|()| 1)
            }
            Step::PushSlices(one, other) => {
                messages = vec![make(one), make(other)];
                producer.push_slices(&messages)
            }
            Step::Reserve(payload, from, end) => {
                messages.push(make(payload));
                let message = &messages[0];
                producer.try_reserve(message.len()).map(|mut grant| {
                    let from = usize::from(*from) % message.len();
                    grant.write_at(from, &message[from..]);
                    grant.write_at(0, &message[..from]);
                    usize::from(end.apply(grant, |grant| grant.commit()))
                })
            }
            Step::Shorten(payload, to) => {
                messages.push(make(payload));
                let message = &mut messages[0];
                reserved = message.len();
                producer.try_reserve(reserved).map(|mut grant| {
                    grant.write(message);
                    message.truncate(usize::from(*to) % message.len() + 1);
                    grant.commit_shortened(message.len());
                    1
                })
            }
            Step::Look => {
                let (len, peer) = (producer.len(), producer.peer());
                assert!(
                    len < producer.capacity() && producer.is_empty() == (len == 0)
                        || self.region.is_spoiled()
                );
                assert!(self.region.is_spoiled() || peer.held == self.consumer.is_some());
                Ok(0)
            }
            _ => return,
        };
        match pushed {
            Err(PushError::NoBytes) => assert!(messages[0].is_empty()),
            Err(PushError::TooLong { .. }) => assert!(messages[0].len() > longest),
            Err(PushError::Corrupted) => assert!(self.region.is_spoiled(), "corrupted by nobody"),
            Err(PushError::Full) | Ok(_) => {}
        }
        messages.truncate(pushed.unwrap_or(0));
        self.tail = producer.tail();
        assert!(!messages.is_empty() || self.tail == at);
        self.note(at, messages, reserved);
    }

    /// Notes what was pushed from position `at` on. Where padding goes is decided by the length `reserved` for
    /// a message that was shortened.
    fn note(&mut self, mut at: u64, messages: Vec<Vec<u8>>, reserved: usize) {
        let frame_bytes = |len: usize| 8 + (len as u64).next_multiple_of(8);
        let ring_bytes = self.layout.ring_bytes() as u64;
        for message in messages {
            let to_end = ring_bytes - at % ring_bytes;
            let padding = if frame_bytes(message.len().max(reserved)) > to_end { to_end } else { 0 };
            let end = at.wrapping_add(padding + frame_bytes(message.len()));
            self.sent.push((at, message));
            at = end;
        }
        // A producer that attached to a spoiled ring may know another size, and pad elsewhere.
        assert!(at == self.tail || self.region.is_spoiled());
    }

    fn pop(&mut self, step: &Step) {
        let Some(mut consumer) = self.consumer.take() else { return };
        let mut messages = Vec::new();
        let longest = self.layout.longest();
        let mut place = vec![0; longest];
        let popped = match step {
            Step::Pop(room) => {
                let room = usize::from(*room).min(longest);
                consumer.try_pop(&mut place[..room]).map(|len| messages.push(place[..len].to_vec()))
            }
            Step::PopEach(most) => {
                consumer.pop_each(usize::from(*most), |grant| {
                    assert!((1..=longest).contains(&grant.len()));
                    let len = grant.read(&mut place);
                    messages.push(place[..len].to_vec());
                });
                Ok(())
            }
            Step::Peek(end) => consumer.try_peek().map(|grant| {
                assert!((1..=longest).contains(&grant.len()));
                let len = grant.read(&mut place);
                if end.apply(grant, |grant| grant.release()) {
                    messages.push(place[..len].to_vec());
                }
            }),
            Step::Look => {
                let (len, peer) = (consumer.len(), consumer.peer());
                assert!(len.unwrap_or(0) < consumer.capacity());
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
        self.head = consumer.head();
        self.consumer = Some(consumer);
        if !self.region.is_spoiled() {
            self.compare(&messages, popped);
        }
    }

    fn compare(&mut self, messages: &[Vec<u8>], popped: Result<(), PopError>) {
        for message in messages {
            assert_eq!(*message, self.sent[self.popped].1);
            self.popped += 1;
        }
        match popped {
            Ok(()) => {}
            Err(PopError::Empty) => assert!(!self.is_closed && self.popped == self.sent.len()),
            Err(PopError::Closed) => assert!(self.is_closed && self.popped == self.sent.len()),
            Err(PopError::BufferTooShort { len }) => assert_eq!(len, self.sent[self.popped].1.len()),
            Err(PopError::Corrupted) => panic!("corrupted by nobody"),
        }
    }

    fn check(&self) {
        let waiting = self.tail.wrapping_sub(self.head);
        assert!(self.head == self.next_at() && waiting < self.layout.ring_bytes() as u64);
        assert!(self.consumer.iter().all(|consumer| consumer.len() == Ok(waiting)));
        assert!(self.producer.iter().all(|producer| producer.len() >= waiting));
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
        if !self.region.is_spoiled() {
            self.check();
        }
    }

    fn finish(&mut self) {
        if self.consumer.is_some() {
            self.close();
            self.pop(&Step::PopEach(u8::MAX));
            self.pop(&Step::Pop(u16::MAX));
            assert_eq!(self.popped, self.sent.len());
        }
    }
}

impl Payload {
    /// Some are too long, or have no bytes.
    fn message(&self, longest: usize, ring_bytes: usize) -> Vec<u8> {
        let len = usize::from(self.len) % (longest + 3);
        let word = |index: u64| match self.word {
            Word::Zero => 0,
            Word::Length(len) => u64::from(len),
            Word::Padding(more) => 1 << 63 | u64::from(more) * 8,
            Word::ToEnd => 1 << 63 | (ring_bytes as u64).wrapping_sub(16 + index * 8),
            Word::Raw(word) => word,
        };
        (0..).flat_map(|index| word(index).to_ne_bytes()).take(len).collect()
    }
}
