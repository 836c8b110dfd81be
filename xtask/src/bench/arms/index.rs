//! The classic ring, for comparison: a head and a tail index beside the slots, as good as it gets.
//!
//! Both indices are free-running and stand on lines of their own. Each side caches the other's index and looks
//! again only when the cached one leaves no room, or nothing to read. The writer publishes each message; the
//! reader gives slots back a quarter of the ring at a time, and when it finds the ring empty.
//!
//! Of what was tried (distances 0 to 4, a half, a quarter, an eighth of the ring), this served the three readers
//! of the suite best on the whole: a shallow ring's reader always fetches two slots ahead, since without that a
//! slow one waits for each line and takes two to five times as long, at the price of a tenth for the others; a
//! deep ring's fetches the next slot, and only once it is known to be filled, which costs nobody anything.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | the tail at send | the tail when the reader has used up what it knew of | the messages below it |
//! | R2 → A2 | the head at receive | the head when the writer has used up its room | that the reading of the slots below it is over |
//!
//! # Safety
//!
//! Addresses are formed within a [`Part`] that is long enough, which `Ring::new` checks and the value keeps: an
//! index is masked to the number of slots. All that both sides touch are atomics.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use measure::{Arm, Duplex, Message, Receiver, Sender, Side, directions};
use ring_core::Region;

use crate::bench::memory::Part;

/// An index on a line of its own, and none that the hardware fetches with it.
#[derive(Debug)]
#[repr(C, align(128))]
struct Index(AtomicU64);

#[derive(Debug)]
#[repr(C)]
struct Indices {
    /// Written by the writer.
    tail: Index,
    /// Written by the reader.
    head: Index,
}

#[derive(Debug)]
#[repr(C, align(64))]
struct Slot([AtomicU64; 7]);

/// Up to this depth a reader fetches slots that may not be filled yet.
const SHALLOW: u64 = 32;

/// Memory for a ring.
#[expect(clippy::cast_possible_truncation, reason = "depths are small")]
pub(super) const fn bytes(depth: u64) -> usize {
    size_of::<Indices>() + depth as usize * size_of::<Slot>()
}

/// Makes one side: it writes to one ring and reads from another.
pub(super) fn make(side: Side, parts: Vec<Part>, depth: u64) -> Result<impl Arm + 'static> {
    let (to, from) = directions(side, parts)?;
    let writer = Writer { ring: Ring::new(to, depth)?, tail: 0, head: 0 };
    let is_shallow = depth <= SHALLOW;
    let reader = Reader {
        ring: Ring::new(from, depth)?,
        head: 0,
        tail: 0,
        returned: 0,
        ahead: if is_shallow { 2 } else { 1 },
        fetches_blindly: is_shallow,
    };
    Ok(Duplex::new(writer, reader))
}

#[derive(Debug)]
struct Ring {
    indices: NonNull<Indices>,
    slots: NonNull<Slot>,
    mask: u64,
    _part: Part,
}

impl Ring {
    fn new(part: Part, depth: u64) -> Result<Self> {
        ensure!(
            depth.is_power_of_two() && part.bytes() >= bytes(depth),
            "too little memory for {depth} slots"
        );
        let indices = part.base().cast::<Indices>();
        // SAFETY: the part is longer than the indices.
        let slots = unsafe { indices.add(1) }.cast();
        Ok(Self { indices, slots, mask: depth - 1, _part: part })
    }

    #[inline(always)]
    fn tail(&self) -> &AtomicU64 {
        // SAFETY: aligned, within the part, and atomics.
        unsafe { &self.indices.as_ref().tail.0 }
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        // SAFETY: aligned, within the part, and atomics.
        unsafe { &self.indices.as_ref().head.0 }
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> &Slot {
        #[expect(clippy::cast_possible_truncation, reason = "the mask is small")]
        let index = (position & self.mask) as usize;
        // SAFETY: the index is below the depth.
        let slot = unsafe { self.slots.add(index) };
        // SAFETY: aligned, within the part, and atomics.
        unsafe { slot.as_ref() }
    }
}

/// The side that writes.
#[derive(Debug)]
struct Writer {
    ring: Ring,
    tail: u64,
    /// The head, when last looked at.
    head: u64,
}

impl Sender for Writer {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        if self.tail.wrapping_sub(self.head) > self.ring.mask {
            // ORDERING: Acquire (A2): the reading of the slots is over; pairs with R2 in Reader::give_back.
            self.head = self.ring.head().load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head) > self.ring.mask {
                return false;
            }
        }
        for (word, value) in self.ring.slot(self.tail).0.iter().zip(message) {
            // ORDERING: Relaxed: the tail publishes the message (R1).
            word.store(*value, Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(1);
        // ORDERING: Release (R1): the message written above; pairs with A1 in Reader::find.
        self.ring.tail().store(self.tail, Ordering::Release);
        true
    }
}

/// The side that reads.
#[derive(Debug)]
struct Reader {
    ring: Ring,
    head: u64,
    /// The tail, when last looked at.
    tail: u64,
    /// The head that the writer can see.
    returned: u64,
    /// How many slots ahead of the head to fetch.
    ahead: u64,
    /// Whether also those that are not known to be filled.
    fetches_blindly: bool,
}

impl Reader {
    /// Makes sure that a message is at the head.
    #[inline(always)]
    fn find(&mut self) -> bool {
        if self.head == self.tail {
            // ORDERING: Acquire (A1): the messages below the tail; pairs with R1 in Writer::try_send.
            self.tail = self.ring.tail().load(Ordering::Acquire);
            if self.head == self.tail {
                if self.returned != self.head {
                    self.give_back();
                }
                return false;
            }
        }
        true
    }

    /// Steps over the message at the head.
    #[inline(always)]
    fn advance(&mut self) {
        if self.fetches_blindly || self.tail.wrapping_sub(self.head) > self.ahead {
            prefetch(self.ring.slot(self.head.wrapping_add(self.ahead)));
        }
        self.head = self.head.wrapping_add(1);
        if self.head.wrapping_sub(self.returned) > self.ring.mask / 4 {
            self.give_back();
        }
    }

    #[inline(always)]
    fn give_back(&mut self) {
        self.returned = self.head;
        // ORDERING: Release (R2): the reading of the slots is over; pairs with A2 in Writer::try_send.
        self.ring.head().store(self.head, Ordering::Release);
    }
}

/// Starts to bring a slot near.
#[inline(always)]
fn prefetch(slot: &Slot) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>((&raw const *slot).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

impl Receiver for Reader {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        if !self.find() {
            return None;
        }
        let slot = self.ring.slot(self.head);
        // ORDERING: Relaxed: the tail was acquired (A1).
        let message = core::array::from_fn(|index| slot.0[index].load(Ordering::Relaxed));
        self.advance();
        Some(message)
    }

    #[inline(always)]
    fn try_receive_first(&mut self) -> Option<u64> {
        if !self.find() {
            return None;
        }
        // ORDERING: Relaxed: the tail was acquired (A1).
        let first = self.ring.slot(self.head).0[0].load(Ordering::Relaxed);
        self.advance();
        Some(first)
    }
}
