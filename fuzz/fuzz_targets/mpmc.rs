//! Participants of an mpmc ring go on, and are killed, while its words are overwritten; until then, each message comes
//! once, and in its turn unless it was put back.
//!
//! # Safety
//!
//! A handle is declared gone once it was forgotten, and not before. In a ring that was spoiled everybody is, which makes
//! those at work hostile peers of each other, in a region that is no trusted one.
#![allow(unsafe_code)]
#![no_main]

use core::ptr::NonNull;
use std::collections::BTreeSet;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_core::mpmc::{Consumer, Layout, PopError, Producer, PushError, UnfinishedPops};
use ring_core::{Error, Liveness, Owner, Registry, Role};
use ring_fuzz::{End, Fenced, Input, Message, Target, message};

#[derive(Debug, Arbitrary)]
enum Step {
    /// One of the handles does something.
    Act(u8, Act),
    Drop(u8),
    Kill(u8),
    /// A handle comes in the place of one that is not there.
    Come {
        who: u8,
        pushes: bool,
        way: Way,
    },
    Remake {
        start: u64,
    },
}

#[derive(Debug, Arbitrary)]
enum Act {
    One,
    /// As often as a slot is in the way until its owner's life is asked about.
    OneWith,
    Slice(u8),
    Drain(u8),
    Grant(End),
    Recover,
    Look,
    Close,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Way {
    Attach,
    AttachWith,
    TakeOver(u8),
}

const PLACES: u16 = 4;
const HANDLES: usize = 5;

fuzz_target!(|given: (bool, Input<Step>)| {
    let (skips, input) = given;
    let unfinished = if skips { UnfinishedPops::Skip } else { UnfinishedPops::Redeliver };
    let layout = Layout::new(1 << (input.size % 6)).unwrap().participants(PLACES).unwrap();
    let layout = layout.unfinished_pops(unfinished).start(input.start);
    let region = Fenced::new(layout.bytes());
    layout.init(&region).unwrap();
    input.run(&region, || Ring::new(&region, layout, skips));
});

enum Handle<'a> {
    Producer(Producer<Message, &'a Fenced>),
    Consumer(Consumer<Message, &'a Fenced>),
}

/// Who was forgotten. Once something was spoiled: everybody, and so some who are at work.
struct Gone<'a> {
    forgotten: Registry<{ PLACES as usize }>,
    region: &'a Fenced,
}

// SAFETY: only what was forgotten is gone. In a spoiled ring that is not kept to: whoever is wrongly taken for gone is
// one more hostile peer, and the region is no trusted one.
unsafe impl Liveness for Gone<'_> {
    fn is_gone(&self, ring: NonNull<u8>, role: Role, owner: Owner) -> bool {
        self.region.is_spoiled() || self.forgotten.is_gone(ring, role, owner)
    }
}

/// All handles, and what they are held to as long as nothing was spoiled.
struct Ring<'a> {
    region: &'a Fenced,
    layout: Layout<Message>,
    /// A message that a dead consumer held is given up.
    skips: bool,
    gone: Gone<'a>,
    handles: [Option<Handle<'a>>; HANDLES],
    making: u8,
    pushed: u64,
    sent: Sent,
}

/// Numbers of messages that were pushed and not popped.
#[derive(Default)]
struct Sent {
    /// To come in this order.
    waiting: BTreeSet<u64>,
    /// Were claimed for reading and not released, so that they come at any time.
    put_back: BTreeSet<u64>,
    is_closed: bool,
}

impl<'a> Ring<'a> {
    fn new(region: &'a Fenced, layout: Layout<Message>, skips: bool) -> Self {
        let gone = Gone { forgotten: Registry::new(), region };
        let handles = [const { None }; HANDLES];
        let sent = Sent::default();
        let mut ring = Self { region, layout, skips, gone, handles, making: 0, pushed: 0, sent };
        ring.come(0, true, Way::Attach);
        ring.come(1, false, Way::Attach);
        ring
    }

    fn kill(&mut self, who: usize) {
        let Some(handle) = self.handles[who].take() else { return };
        let (id, owner) = match &handle {
            Handle::Producer(producer) => (producer.id(), producer.participant(producer.id())),
            Handle::Consumer(consumer) => (consumer.id(), consumer.participant(consumer.id())),
        };
        std::mem::forget(handle);
        let incarnation = owner.expect("a place of its own").incarnation;
        // A spoiled header may say more places than the registry knows; then all are gone in any case.
        if !self.region.is_spoiled() {
            // SAFETY: it was forgotten just now.
            unsafe { self.gone.forgotten.declare_gone(Role::Participant(id), incarnation) };
        }
    }

    fn come(&mut self, who: usize, pushes: bool, way: Way) {
        if self.handles[who].is_some() {
            return;
        }
        let (region, gone) = (self.region, &self.gone);
        let come = if pushes {
            match way {
                Way::Attach => Producer::attach(region),
                Way::AttachWith => Producer::attach_with(region, gone),
                Way::TakeOver(id) => Producer::take_over(region, u16::from(id) % (PLACES + 2), gone),
            }
            .map(Handle::Producer)
        } else {
            match way {
                Way::Attach => Consumer::attach(region),
                Way::AttachWith => Consumer::attach_with(region, gone),
                Way::TakeOver(id) => Consumer::take_over(region, u16::from(id) % (PLACES + 2), gone),
            }
            .map(Handle::Consumer)
        };
        match &come {
            Ok(_) => {}
            Err(_) if self.region.is_spoiled() => {}
            Err(Error::Closed) => assert!(self.sent.is_closed && pushes),
            Err(Error::TooManyParticipants { participants }) => assert_eq!(*participants, PLACES),
            Err(Error::NoSuchParticipant { .. } | Error::Taken { .. }) => {
                assert!(matches!(way, Way::TakeOver(_)))
            }
            Err(error) => panic!("{error:?}"),
        }
        self.handles[who] = come.ok();
    }

    /// Without handles nobody has a claim, and the dead are known.
    fn remake(&mut self, start: u64) {
        self.handles = [const { None }; HANDLES];
        let made = self.layout.start(start).init_over(self.region, &self.gone);
        assert!(self.region.is_spoiled() || made.is_ok(), "{made:?}");
        if made.is_ok() {
            self.making = self.making.wrapping_add(1);
            self.sent = Sent::default();
        }
    }

    fn act(&mut self, who: usize, act: &Act) {
        match self.handles[who].take() {
            Some(Handle::Producer(mut producer)) => {
                self.push(&mut producer, act);
                self.handles[who] = Some(Handle::Producer(producer));
            }
            Some(Handle::Consumer(mut consumer)) => {
                self.pop(&mut consumer, act);
                self.handles[who] = Some(Handle::Consumer(consumer));
            }
            None => {}
        }
    }

    fn push(&mut self, producer: &mut Producer<Message, &'a Fenced>, act: &Act) {
        let is_spoiled = self.region.is_spoiled();
        let message = |ahead| message(self.making, self.pushed.wrapping_add(ahead));
        let without = |error: PushError<Message>| {
            let kind = match error {
                PushError::Full(_) => PushError::Full(()),
                PushError::Busy(_) => PushError::Busy(()),
                PushError::Closed(_) => PushError::Closed(()),
                PushError::Corrupted(_) => PushError::Corrupted(()),
            };
            assert_eq!(error.into_inner(), message(0), "the message comes back");
            kind
        };
        let pushed = match act {
            Act::One => producer.try_push(message(0)).map(|()| 1).map_err(without),
            Act::OneWith => {
                let mut push = || producer.try_push_with(message(0), &self.gone).map(|()| 1).map_err(without);
                (0..4).fold(
                    push(),
                    |pushed, _| if pushed == Err(PushError::Busy(())) { push() } else { pushed },
                )
            }
            Act::Slice(count) => {
                producer.push_slice(&(0..u64::from(*count)).map(message).collect::<Vec<_>>())
            }
            Act::Grant(end) => producer.try_reserve().map(|mut grant| {
                grant.write(&message(0));
                usize::from(end.apply(grant, |grant| grant.commit()))
            }),
            Act::Recover => {
                let recovered = producer.recover(&self.gone);
                assert!(is_spoiled || recovered.is_ok(), "{recovered:?}");
                Ok(0)
            }
            Act::Look => {
                let (len, is_empty) = (producer.len(), producer.is_empty());
                assert!(len <= producer.capacity());
                // Whatever waits lies in a slot; what was put back may still be held.
                assert!(is_spoiled || (len >= self.sent.waiting.len() as u64 && is_empty == (len == 0)));
                Ok(0)
            }
            Act::Close => {
                producer.close();
                self.sent.is_closed = true;
                Ok(0)
            }
            Act::Drain(_) => return,
        };
        match pushed {
            Err(PushError::Corrupted(())) => assert!(is_spoiled, "corrupted by nobody"),
            Err(PushError::Closed(())) => assert!(is_spoiled || self.sent.is_closed),
            Ok(0) | Err(_) => {}
            Ok(_) => assert!(is_spoiled || !self.sent.is_closed, "pushed to a closed ring"),
        }
        for _ in 0..pushed.unwrap_or(0) {
            self.sent.waiting.insert(self.pushed);
            self.pushed += 1;
        }
    }

    fn pop(&mut self, consumer: &mut Consumer<Message, &'a Fenced>, act: &Act) {
        let is_spoiled = self.region.is_spoiled();
        let mut messages = Vec::new();
        let mut held = None;
        let popped = match act {
            Act::One => consumer.try_pop().map(|message| messages.push(message)),
            Act::OneWith => {
                let mut pop = || consumer.try_pop_with(&self.gone);
                (0..4)
                    .fold(pop(), |popped, _| if popped == Err(PopError::Busy) { pop() } else { popped })
                    .map(|message| messages.push(message))
            }
            Act::Slice(count) => {
                messages = vec![[0; 13]; usize::from(*count)];
                let popped = consumer.pop_slice(&mut messages);
                messages.truncate(popped.unwrap_or(0));
                popped.map(drop)
            }
            Act::Drain(count) => {
                messages.extend(consumer.drain(usize::from(*count)));
                Ok(())
            }
            Act::Grant(end) => consumer.try_peek().map(|grant| {
                let message = grant.read();
                messages.push(message);
                if !end.apply(grant, |grant| grant.release()) {
                    held = Some(message);
                }
            }),
            Act::Recover => {
                let recovered = consumer.recover(&self.gone);
                assert!(is_spoiled || recovered.is_ok(), "{recovered:?}");
                Ok(())
            }
            Act::Look => {
                let (len, is_empty) = (consumer.len(), consumer.is_empty());
                assert!(len <= consumer.capacity());
                assert!(is_spoiled || (len >= self.sent.waiting.len() as u64 && is_empty == (len == 0)));
                Ok(())
            }
            Act::Close => {
                consumer.close();
                self.sent.is_closed = true;
                Ok(())
            }
        };
        if !is_spoiled {
            messages.iter().for_each(|found| self.sent.take(self.making, found));
            self.sent.put_back.extend(held.iter().map(number));
            self.sent.check(popped, self.skips);
        }
    }
}

impl Target for Ring<'_> {
    type Step = Step;

    fn step(&mut self, step: &Step) {
        match step {
            Step::Act(who, act) => self.act(usize::from(*who) % HANDLES, act),
            Step::Drop(who) => self.handles[usize::from(*who) % HANDLES] = None,
            Step::Kill(who) => self.kill(usize::from(*who) % HANDLES),
            Step::Come { who, pushes, way } => self.come(usize::from(*who) % HANDLES, *pushes, *way),
            Step::Remake { start } => self.remake(*start),
        }
    }

    fn finish(&mut self) {
        self.handles = [const { None }; HANDLES];
        let mut last = Consumer::attach_with(self.region, &self.gone).expect("the places of the dead");
        last.recover(&self.gone).expect("a ring that is whole");
        last.close();
        self.sent.is_closed = true;
        self.pop(&mut last, &Act::Drain(u8::MAX));
        assert_eq!(last.try_pop(), Err(PopError::Closed));
        self.sent.check(Err(PopError::Closed), self.skips);
    }
}

impl Sent {
    fn take(&mut self, making: u8, found: &Message) {
        let number = number(found);
        assert_eq!(*found, message(making, number), "a message in parts");
        if !self.put_back.remove(&number) {
            assert_eq!(self.waiting.pop_first(), Some(number), "popped out of turn, or twice");
        }
    }

    fn check(&self, popped: Result<(), PopError>, skips: bool) {
        match popped {
            Ok(()) | Err(PopError::Busy) => {}
            Err(PopError::Empty) => assert!(!self.is_closed && self.waiting.is_empty()),
            Err(PopError::Closed) => {
                assert!(self.is_closed && self.waiting.is_empty());
                assert!(skips || self.put_back.is_empty(), "the end before all was popped");
            }
            Err(PopError::Corrupted) => panic!("corrupted by nobody"),
        }
    }
}

fn number(message: &Message) -> u64 {
    let (number, _) = message.split_first_chunk().expect("a number of 8 bytes");
    u64::from_le_bytes(*number)
}
