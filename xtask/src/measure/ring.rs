//! Our rings, as they are written to and read from.
//!
//! # Safety
//!
//! The one unsafe block reads the first word of a message in its slot, atomically, while its grant lives.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use ring_core::Region;
use ring_core::spsc::{Consumer, PopError, Producer, PushError};

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
