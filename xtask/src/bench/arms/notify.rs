//! One-way messages to whoever waits in one way or another: what the peer sends, the lead takes.

use core::sync::atomic::Ordering;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use measure::paced::{Giver, LINK_BYTES, Taker};
use measure::usage::Meter;
use measure::words::{Words, word_bytes};
use measure::{Arm, Message, Receiver, Sender, Side};
use ring_core::spsc::{Consumer, Layout, Producer};
use ring_notify::{Barrier, Event, Options, Strategy};
use rustix::io::Errno;
use rustix::thread::futex;
use serde::{Deserialize, Serialize};

use super::kernel::{Bytes, Channel, Ends};
use super::spsc::{self, Change};
use crate::bench::memory::{Memory, Part};

/// Slots of the ring.
const DEPTH: usize = 1024;

/// How the receiver waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Way {
    /// It looks at the ring without end.
    Doorbell,
    /// It spins, then sleeps on a futex.
    Futex,
    /// It spins, then sleeps on an eventfd.
    Eventfd,
    /// It spins for as long as it has learned to, then sleeps on a futex.
    Adaptive,
    /// As `Futex`, and so does the sender: for streams.
    Stream,
    /// The same with a fence for each message.
    StreamPlain,
    /// Wherever it finds nothing it sleeps on a word, and the sender wakes it for each message, asleep or not.
    BareFutex,
    /// In the kernel, which carries the messages.
    Kernel(Channel),
}

impl Way {
    /// Slots of its ring, where it has one.
    pub(crate) fn ring_depth(self) -> Option<usize> {
        (!matches!(self, Self::Kernel(_))).then_some(DEPTH)
    }

    /// The parts of the segment that it takes.
    pub(super) fn parts(self) -> Vec<usize> {
        let ring = spsc::bytes(DEPTH as u64, Change::None);
        match self {
            Self::Kernel(_) => vec![LINK_BYTES],
            Self::BareFutex => vec![LINK_BYTES, ring, word_bytes(1)],
            _ => vec![LINK_BYTES, ring],
        }
    }

    /// Opens what it needs of the kernel.
    pub(super) fn open(self) -> Result<Ends> {
        match self {
            Self::Kernel(channel) => channel.open(),
            Self::Eventfd => {
                let event = Event::new()?;
                let descriptor = || event.as_fd().try_clone_to_owned();
                Ok(Ends { lead: vec![descriptor()?], peer: vec![descriptor()?] })
            }
            _ => Ok(Ends::default()),
        }
    }
}

/// How receiver and sender wait, of those ways that are ring-notify's; only in a stream may the sender sleep too.
fn options(way: Way, event: Option<OwnedFd>) -> Result<[Options; 2]> {
    let spinning = || Options::new().strategy(Strategy::doorbell());
    Ok(match way {
        Way::Doorbell => [Options::doorbell(), Options::doorbell()],
        Way::Futex => [Options::new(), spinning()],
        Way::Eventfd => {
            let event = Arc::new(Event::try_from(event.context("this arm has an event")?)?);
            [Options::new().strategy(Strategy::event()), spinning()]
                .map(|options| options.messages_event(Arc::clone(&event)))
        }
        Way::Adaptive => [Options::new().strategy(Strategy::futex().adaptive()), spinning()],
        Way::Stream => [Options::new(), Options::new()],
        Way::StreamPlain => [Options::new(), Options::new()].map(|options| options.barrier(Barrier::Plain)),
        Way::BareFutex | Way::Kernel(_) => bail!("ring-notify has no part in this arm"),
    })
}

/// Makes one side.
pub(super) fn make(
    side: Side,
    way: Way,
    memory: &Memory,
    parts: Vec<Part>,
    descriptors: Vec<OwnedFd>,
) -> Result<Box<dyn Arm>> {
    let mut parts = parts.into_iter();
    let mut part = || parts.next().context("this arm has too few parts");
    let beside = Beside { link: part()?, meter: Meter::new(memory.counts()?, side) };
    match (way, side) {
        (Way::BareFutex, Side::Lead) => {
            beside.taker(Sleeping { consumer: consumer(part()?)?, word: Words::new(part()?, 1)? })
        }
        (Way::BareFutex, Side::Peer) => {
            beside.giver(Waking { producer: Producer::attach(part()?)?, word: Words::new(part()?, 1)? })
        }
        (Way::Kernel(_), _) => {
            let [to, from] =
                <[OwnedFd; 2]>::try_from(descriptors).ok().context("this arm has two descriptors a side")?;
            if side == Side::Lead { beside.taker(Bytes(from)) } else { beside.giver(Bytes(to)) }
        }
        _ => {
            let [receiving, sending] = options(way, descriptors.into_iter().next())?;
            match side {
                Side::Lead => beside.taker(receiving.receiver(consumer(part()?)?)?),
                Side::Peer => beside.giver(sending.sender(Producer::attach(part()?)?)?),
            }
        }
    }
}

/// The lead's end of a ring that it makes.
fn consumer(part: Part) -> Result<Consumer<Message, Part>> {
    Layout::<Message>::new(DEPTH as u64)?.init(&part)?;
    Ok(Consumer::attach(part)?)
}

/// What a side has beside the way of its messages.
struct Beside {
    link: Part,
    meter: Meter<Part>,
}

impl Beside {
    fn taker(self, from: impl Receiver + 'static) -> Result<Box<dyn Arm>> {
        Ok(Box::new(Taker::new(from, self.link, self.meter)?))
    }

    fn giver(self, to: impl Sender + 'static) -> Result<Box<dyn Arm>> {
        Ok(Box::new(Giver::new(to, self.link, self.meter)?))
    }
}

/// A ring, and a word that changes with each message; the sender wakes whoever sleeps on it.
#[derive(Debug)]
struct Waking {
    producer: Producer<Message, Part>,
    word: Words<Part>,
}

impl Sender for Waking {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        let sent = self.producer.try_send(message);
        if sent {
            let word = self.word.futex(0);
            // ORDERING: Release: whoever reads the new value sees the message; pairs with Sleeping::try_receive.
            word.fetch_add(1, Ordering::Release);
            futex::wake(word, futex::Flags::empty(), 1).expect("the word is there");
        }
        sent
    }
}

/// A ring whose reader sleeps on the word wherever it finds nothing.
#[derive(Debug)]
struct Sleeping {
    consumer: Consumer<Message, Part>,
    word: Words<Part>,
}

impl Receiver for Sleeping {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        let word = self.word.futex(0);
        // ORDERING: Acquire: read before the look at the ring, so that a message that is missed there has changed the
        // word and the kernel does not sleep; pairs with Waking::try_send.
        let seen = word.load(Ordering::Acquire);
        let message = self.consumer.try_receive();
        if message.is_none() {
            match futex::wait(word, futex::Flags::empty(), seen, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => panic!("cannot sleep on a word: {error}"),
            }
        }
        message
    }
}
