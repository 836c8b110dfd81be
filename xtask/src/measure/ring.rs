//! Our rings, as they are written to and read from.
//!
//! # Safety
//!
//! The one unsafe block reads the first word of a message in its slot, atomically, while its grant lives.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use ring_core::spsc::{Consumer, PopError, Producer, PushError};
use ring_core::{Region, broadcast, bytes, mpmc};
use zerocopy::IntoBytes;

use crate::{Message, Receiver, Sender};

impl<R: Region> Sender for Producer<Message, R> {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        match self.try_push(*message) {
            Ok(()) => true,
            Err(PushError::Full(_)) => false,
            Err(PushError::Corrupted(_)) => corrupted(),
        }
    }
}

impl<R: Region> Receiver for Consumer<Message, R> {
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

/// Messages of 56 bytes, as bytes.
impl<R: Region> Sender for bytes::Producer<R> {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        match self.try_push(message.as_bytes()) {
            Ok(()) => true,
            Err(bytes::PushError::Full) => false,
            Err(_) => corrupted(),
        }
    }
}

impl<R: Region> Receiver for bytes::Consumer<R> {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        let mut message: Message = [0; 7];
        match self.try_pop(message.as_mut_bytes()) {
            Ok(_) => Some(message),
            Err(bytes::PopError::Empty) => None,
            Err(_) => corrupted(),
        }
    }
}

impl<R: Region> Sender for mpmc::Producer<Message, R> {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        match self.try_push(*message) {
            Ok(()) => true,
            Err(mpmc::PushError::Full(_) | mpmc::PushError::Busy(_)) => false,
            Err(_) => corrupted(),
        }
    }
}

impl<R: Region> Receiver for mpmc::Consumer<Message, R> {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        match self.try_pop() {
            Ok(message) => Some(message),
            Err(mpmc::PopError::Empty | mpmc::PopError::Busy) => None,
            Err(_) => corrupted(),
        }
    }
}

impl<R: Region> Sender for broadcast::Producer<Message, R> {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        self.push(message);
        true
    }
}

/// In a closed loop nothing is lost.
impl<R: Region> Receiver for broadcast::Consumer<Message, R> {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        match self.try_pop() {
            Ok(message) => Some(message),
            Err(broadcast::PopError::Empty) => None,
            Err(_) => corrupted(),
        }
    }
}

/// Waits for room as the sender was told to.
impl<R: Region> Sender for ring_notify::Sender<Producer<Message, R>> {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        self.send(*message).map_or_else(|_| corrupted(), |()| true)
    }
}

/// Waits for a message as the receiver was told to.
impl<R: Region> Receiver for ring_notify::Receiver<Consumer<Message, R>> {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        self.recv().map_or_else(|_| corrupted(), Some)
    }
}

/// Nobody closes a ring or writes rubbish to it here.
///
/// # Panics
///
/// Always.
#[cold]
#[inline(never)]
pub fn corrupted() -> ! {
    panic!("the ring between the two processes holds what it cannot")
}
