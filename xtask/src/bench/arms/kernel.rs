//! What people use instead: the kernel carries the message, or wakes who waits for it.
//!
//! Whoever reads here sleeps in the kernel until there is something: nobody polls.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use measure::{Arm, Duplex, Message, Receiver, Sender, Side};
use ring_core::spsc::{Consumer, Producer};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};

use super::spsc::{self, Change};
use crate::bench::memory::Part;
use crate::bench::watch;

/// Slots of the ring that an eventfd announces.
pub(super) const DEPTH: u64 = 16;

/// What the kernel offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Channel {
    /// A pipe each way carries the messages.
    Pipe,
    /// A Unix stream socket carries the messages.
    Unix,
    /// A ring carries the messages, an eventfd each way wakes the reader.
    Eventfd,
}

/// The descriptors of both sides. Each has first what it writes to.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) lead: Vec<OwnedFd>,
    pub(crate) peer: Vec<OwnedFd>,
}

impl Channel {
    /// Opens it. No program that is started later inherits anything of it.
    pub(crate) fn open(self) -> Result<Ends> {
        Ok(match self {
            Self::Pipe => {
                let (from_lead, to_peer) = pipe_with(PipeFlags::CLOEXEC)?;
                let (from_peer, to_lead) = pipe_with(PipeFlags::CLOEXEC)?;
                Ends { lead: vec![to_peer, from_peer], peer: vec![to_lead, from_lead] }
            }
            Self::Unix => {
                let (lead, peer) =
                    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
                Ends { lead: vec![lead.try_clone()?, lead], peer: vec![peer.try_clone()?, peer] }
            }
            Self::Eventfd => {
                let (to_peer, to_lead) =
                    (eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
                Ends { lead: vec![to_peer.try_clone()?, to_lead.try_clone()?], peer: vec![to_lead, to_peer] }
            }
        })
    }
}

/// Makes one side.
pub(super) fn make(
    side: Side,
    channel: Channel,
    parts: Vec<Part>,
    descriptors: Vec<OwnedFd>,
) -> Result<Box<dyn Arm>> {
    let [to, from] =
        <[OwnedFd; 2]>::try_from(descriptors).ok().context("this arm has two descriptors a side")?;
    Ok(match channel {
        Channel::Pipe | Channel::Unix => Box::new(Duplex::new(Bytes(to), Bytes(from))),
        Channel::Eventfd => {
            let (producer, consumer) = spsc::ends(side, parts, DEPTH, Change::None)?;
            Box::new(Duplex::new(Ringing { producer, bell: to }, Sleeping { consumer, bell: from }))
        }
    })
}

/// A descriptor that carries whole messages.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) OwnedFd);

impl Sender for Bytes {
    fn try_send(&mut self, message: &Message) -> bool {
        let bytes = message.map(u64::to_ne_bytes);
        let mut rest = bytes.as_flattened();
        while !rest.is_empty() {
            rest = &rest[done(write(&self.0, rest))..];
        }
        true
    }
}

impl Receiver for Bytes {
    fn try_receive(&mut self) -> Option<Message> {
        let mut bytes = [[0; 8]; 7];
        let all = bytes.as_flattened_mut();
        let mut filled = 0;
        while filled < all.len() {
            filled += done(read(&self.0, &mut all[filled..]));
        }
        Some(bytes.map(u64::from_ne_bytes))
    }
}

/// A ring whose reader is woken after each message.
#[derive(Debug)]
struct Ringing {
    producer: Producer<Message, Part>,
    bell: OwnedFd,
}

impl Sender for Ringing {
    fn try_send(&mut self, message: &Message) -> bool {
        let sent = self.producer.try_send(message);
        if sent {
            ring_bell(&self.bell);
        }
        sent
    }
}

/// A ring whose reader sleeps until it is woken.
#[derive(Debug)]
struct Sleeping {
    consumer: Consumer<Message, Part>,
    bell: OwnedFd,
}

impl Receiver for Sleeping {
    fn try_receive(&mut self) -> Option<Message> {
        let mut count = [0; 8];
        done(read(&self.bell, &mut count));
        self.consumer.try_receive()
    }
}

/// Adds 1 to an eventfd.
#[inline(always)]
pub(super) fn ring_bell(bell: &OwnedFd) {
    done(write(bell, &1_u64.to_ne_bytes()));
}

/// The number of bytes that a call moved. Here only the end of the peer can make one fail, or move none.
#[inline(always)]
fn done(result: rustix::io::Result<usize>) -> usize {
    match result {
        Ok(count) if count > 0 => count,
        Err(rustix::io::Errno::INTR) => 0,
        _ => watch::peer_is_gone(),
    }
}
