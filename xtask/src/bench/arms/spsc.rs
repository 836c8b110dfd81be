//! Our ring, one each way: as users get it, and with one thing changed.
//!
//! # Safety
//!
//! The one unsafe block reads the first word of a message in its slot, atomically, while its grant lives.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering, fence};
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use ring_core::spsc::{Consumer, Layout, PopError, Producer, PushError};
use serde::{Deserialize, Serialize};

use super::duplex::Duplex;
use super::{Arm, Message, Receiver, Sender, Side, directions, kernel};
use crate::bench::memory::Part;

/// In what a ring differs from what users get by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// In nothing.
    None,
    /// Pushes and pops do not bring later slots near.
    PrefetchOff,
    /// Slots of 128 bytes.
    WideSlots,
    /// A full fence between the message and the word that publishes it.
    OrderedBySeqCst,
    /// A full fence after each message, as a notification protocol without an asymmetric barrier needs it.
    FencePerMessage,
    /// A write to an eventfd after each message, whether or not anybody sleeps.
    Eventfd,
}

/// Memory for a ring.
pub(super) fn bytes(depth: u64, change: Change) -> usize {
    layout(depth, change).map_or(0, |layout| layout.bytes())
}

fn layout(depth: u64, change: Change) -> Result<Layout<Message>> {
    let layout = Layout::new(depth)?;
    Ok(if change == Change::WideSlots { layout.slot_bytes(128)? } else { layout })
}

/// Both ends that this side holds: it pushes into one ring and pops from the other.
pub(super) fn ends(
    side: Side,
    parts: Vec<Part>,
    depth: u64,
    change: Change,
) -> Result<(Producer<Message, Part>, Consumer<Message, Part>)> {
    if side == Side::Lead {
        for part in &parts {
            layout(depth, change)?.init(part)?;
        }
    }
    let (to, from) = directions(side, parts)?;
    let (producer, consumer) = (Producer::attach(to)?, Consumer::attach(from)?);
    Ok(if change == Change::PrefetchOff {
        (producer.prefetch(false), consumer.prefetch(false))
    } else {
        (producer, consumer)
    })
}

/// Makes one side.
pub(super) fn make(
    side: Side,
    parts: Vec<Part>,
    depth: u64,
    change: Change,
    descriptors: Vec<OwnedFd>,
) -> Result<Box<dyn Arm>> {
    let (producer, consumer) = ends(side, parts, depth, change)?;
    Ok(match change {
        Change::OrderedBySeqCst => Box::new(Duplex::new(Ordered(producer), consumer)),
        Change::FencePerMessage => Box::new(Duplex::new(Fenced(producer), consumer)),
        Change::Eventfd => {
            let bell = descriptors.into_iter().next().context("this arm has an eventfd")?;
            Box::new(Duplex::new(Notifying { producer, bell }, consumer))
        }
        _ => Box::new(Duplex::new(producer, consumer)),
    })
}

impl Sender for Producer<Message, Part> {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        match self.try_push(*message) {
            Ok(()) => true,
            Err(PushError::Full(_)) => false,
            Err(PushError::Corrupted(_)) => corrupted(),
        }
    }
}

impl Receiver for Consumer<Message, Part> {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        match self.try_pop() {
            Ok(message) => Some(message),
            Err(PopError::Empty) => None,
            Err(PopError::Closed | PopError::Corrupted) => corrupted(),
        }
    }

    #[inline(always)]
    fn try_receive_first(&mut self) -> Option<u64> {
        match self.try_peek() {
            Ok(grant) => {
                let first = grant.as_ptr().cast::<u64>();
                // SAFETY: the grant keeps the slot, which begins with an aligned word that the peer may touch too.
                let first = unsafe { AtomicU64::from_ptr(first.as_ptr()) };
                // ORDERING: Relaxed: the grant has acquired the message.
                let word = first.load(Ordering::Relaxed);
                grant.release();
                Some(word)
            }
            Err(PopError::Empty) => None,
            Err(PopError::Closed | PopError::Corrupted) => corrupted(),
        }
    }
}

/// Nobody closes a ring or writes rubbish to it here.
#[cold]
#[inline(never)]
pub(super) fn corrupted() -> ! {
    panic!("the ring between the two processes holds what it cannot")
}

/// Publishes behind a full fence.
#[derive(Debug)]
struct Ordered(Producer<Message, Part>);

impl Sender for Ordered {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        match self.0.try_reserve() {
            Ok(mut grant) => {
                grant.write(message);
                // ORDERING: SeqCst: more than the ring needs; its price is what is measured.
                fence(Ordering::SeqCst);
                grant.commit();
                true
            }
            Err(PushError::Full(())) => false,
            Err(PushError::Corrupted(())) => corrupted(),
        }
    }
}

/// Puts a full fence after each message.
#[derive(Debug)]
struct Fenced(Producer<Message, Part>);

impl Sender for Fenced {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        let sent = self.0.try_send(message);
        if sent {
            // ORDERING: SeqCst: what stands between a message and a look at who sleeps; its price is measured.
            fence(Ordering::SeqCst);
        }
        sent
    }
}

/// Rings a bell after each message.
#[derive(Debug)]
struct Notifying {
    producer: Producer<Message, Part>,
    bell: OwnedFd,
}

impl Sender for Notifying {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        let sent = self.producer.try_send(message);
        if sent {
            kernel::ring_bell(&self.bell);
        }
        sent
    }
}
