//! Our ring, one each way: as users get it, and with one thing changed.

use core::sync::atomic::{Ordering, fence};
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use measure::{Arm, Duplex, Message, Sender, Side, corrupted, directions};
use ring_core::spsc::{Consumer, Layout, Producer, PushError};
use serde::{Deserialize, Serialize};

use super::kernel;
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
