//! Copies of 1 KiB through the same mapping with no ring around them: the bandwidth that there is.
//!
//! # Safety
//!
//! The part is long enough for the slots and a line behind them, which `Copies::new` checks, and the value keeps it. The
//! copies of both sides race, so they are made by the C library, beyond the compiler's sight; what they move is never
//! looked at.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::hint::{black_box, spin_loop};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use measure::{Arm, Samples, Slice, Timer};
use ring_core::Region;

use crate::bench::memory::Part;

/// Slots, one after the other.
pub(super) const SLOTS: usize = 64;

/// Bytes of a slot.
const SLOT_BYTES: usize = 1024;

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
}

/// Memory for it.
pub(super) const BYTES: usize = SLOTS * SLOT_BYTES + 64;

/// One side.
#[derive(Debug)]
pub(super) struct Copies {
    slots: NonNull<u8>,
    /// Slices that the peer has ended, so that the slower side's time is what counts.
    ended: u64,
    _part: Part,
}

impl Copies {
    pub(super) fn new(parts: Vec<Part>) -> Result<Self> {
        let part = parts.into_iter().next().context("this arm has one part")?;
        ensure!(part.bytes() >= BYTES, "too little memory for the copies");
        Ok(Self { slots: part.base(), ended: 0, _part: part })
    }

    fn slot(&self, number: u64) -> *mut c_void {
        #[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
        let index = (number % SLOTS as u64) as usize;
        // SAFETY: the index is below the number of slots.
        unsafe { self.slots.add(index * SLOT_BYTES) }.as_ptr().cast()
    }

    /// Where the peer counts its slices.
    fn counter(&self) -> &AtomicU64 {
        // SAFETY: the line lies behind the slots, within the part.
        let line = unsafe { self.slots.add(SLOTS * SLOT_BYTES) };
        // SAFETY: aligned, initialised, and both sides use it as an atomic.
        unsafe { line.cast::<AtomicU64>().as_ref() }
    }
}

impl Arm for Copies {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        let Slice::Stream { messages, .. } = slice else { return Samples::default() };
        let mut message = [0_u8; SLOT_BYTES];
        let start = timer.start();
        for number in 0..messages {
            // SAFETY: a slot has as many bytes as the message.
            unsafe { memcpy(message.as_mut_ptr().cast(), self.slot(number), SLOT_BYTES) };
            black_box(&message);
        }
        self.ended += 1;
        // ORDERING: Relaxed: a number; what was copied is not looked at.
        while self.counter().load(Ordering::Relaxed) < self.ended {
            spin_loop();
        }
        let ticks = timer.stop() - start;
        Samples { centre: vec![timer.net_ns(ticks) / messages as f64], tails: vec![], messages, used: None }
    }

    fn follow(&mut self, slice: Slice) {
        let Slice::Stream { messages, .. } = slice else { return };
        let message = [1_u8; SLOT_BYTES];
        for number in 0..messages {
            // SAFETY: a slot has as many bytes as the message.
            unsafe { memcpy(self.slot(number), black_box(&message).as_ptr().cast(), SLOT_BYTES) };
        }
        self.ended += 1;
        // ORDERING: Relaxed: as above.
        self.counter().store(self.ended, Ordering::Relaxed);
    }
}
