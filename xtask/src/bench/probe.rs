//! The hot path as functions of their own, so that their machine code can be looked at.
//!
//! They are what the compiler makes of the ring in this very program, and are never called: the arms have the
//! same code inlined.
//!
//! # Safety
//!
//! The names begin with `ring_probe_`, which nothing else that is linked here uses.
#![allow(unsafe_code)]

use core::hint::black_box;

use measure::Message;
use ring_core::spsc::{Consumer, Producer};

use super::memory::Part;

/// Pushes a message of 56 bytes, or returns false.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn ring_probe_spsc_try_push(
    producer: &mut Producer<Message, Part>,
    message: &Message,
) -> bool {
    producer.try_push(*message).is_ok()
}

/// Pops a message of 56 bytes into `out`, or returns false.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn ring_probe_spsc_try_pop(
    consumer: &mut Consumer<Message, Part>,
    out: &mut Message,
) -> bool {
    match consumer.try_pop() {
        Ok(message) => {
            *out = message;
            true
        }
        Err(_) => false,
    }
}

/// Keeps the linker from leaving them out.
pub(crate) fn keep() {
    black_box(ring_probe_spsc_try_push as *const ());
    black_box(ring_probe_spsc_try_pop as *const ());
}
