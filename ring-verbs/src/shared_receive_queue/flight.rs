//! The buffers that a shared receive queue has in flight, by place: they end in any order, in several completion
//! queues.
//!
//! A place that is free again, with its entry taken out, is handed over by the free list.
//!
//! # Safety
//!
//! An entry belongs to the posting side from taking its place off the free list to marking it, and then to whoever
//! exchanges the mark, until the place is given back to the free list.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::iter;

use crate::completion::{Opcode, Ticket};
use crate::completion_queue::SHARED;
use crate::flight::Entry;
use crate::free_list::FreeList;
use crate::queue_pair::Posted;
use crate::sync::{AtomicU64, Cell, Ordering};

/// Receives of one queue, at most: what half of a `wr_id`'s lower half can say.
pub(super) const DEPTH_MAX: u32 = 1 << 16;

/// In a place's word: an entry is in flight. The generation stands below it.
const IN_FLIGHT: u64 = 1 << 16;

/// The entry, and which post it was.
type Content<B> = Option<(Entry<B, Posted>, Ticket)>;

#[derive(Debug)]
pub(crate) struct SharedFlight<B> {
    /// The upper half of each `wr_id`.
    key: u32,
    entries: Box<[Cell<Content<B>>]>,
    /// By place: the generation, 16 bits, and whether an entry is in flight.
    words: Box<[AtomicU64]>,
    free: FreeList,
}

/// Where an entry was put.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    key: u32,
    low: u32,
}

impl Place {
    pub(super) fn wr_id(self) -> u64 {
        u64::from(self.key) << 32 | u64::from(self.low)
    }

    /// The lower half: place and generation.
    pub(super) fn low(self) -> u32 {
        self.low
    }
}

impl<B> SharedFlight<B> {
    /// For `depth` receives, at most [`DEPTH_MAX`].
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            key: next_key(),
            entries: (0..depth).map(|_| Cell::new(None)).collect(),
            words: (0..depth).map(|_| AtomicU64::new(0)).collect(),
            free: FreeList::new(depth),
        }
    }

    pub(crate) fn key(&self) -> u32 {
        self.key
    }

    pub(crate) fn depth(&self) -> u32 {
        self.free.places()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.free.out()
    }

    /// Puts a buffer in flight; gives it back where no place is free.
    pub(super) fn put(&self, buffer: B, ticket: Ticket) -> Result<Place, B> {
        let Some(place) = self.free.take() else { return Err(buffer) };
        let index = place as usize;
        let entry = Entry { buffer: Some(buffer), operation: Posted::new(Opcode::Receive) };
        // SAFETY: the place was free, and is this thread's until it is marked.
        unsafe { self.entries[index].with(|content| *content = Some((entry, ticket))) };
        let word = &self.words[index];
        // ORDERING: Relaxed: who wrote it last gave the place back to the free list, whose edge orders it.
        let generation = (word.load(Ordering::Relaxed) + 1) & (IN_FLIGHT - 1);
        // ORDERING: Release (R1): the entry was written before; pairs with A1 in SharedFlight::take.
        word.store(IN_FLIGHT | generation, Ordering::Release);
        // Both are below 2^16.
        let low = u32::try_from(generation << 16 | u64::from(place)).unwrap_or(0);
        Ok(Place { key: self.key, low })
    }

    /// Takes the entry of a `wr_id`'s lower half, where it is in flight.
    pub(crate) fn take(&self, low: u32) -> Option<(Entry<B, Posted>, Ticket)> {
        let index = (low & 0xffff) as usize;
        let generation = u64::from(low >> 16);
        let word = self.words.get(index)?;
        let taken = word.compare_exchange(
            IN_FLIGHT | generation,
            generation,
            // ORDERING: Acquire (A1): the entry was written before; pairs with R1 in SharedFlight::put.
            Ordering::Acquire,
            // ORDERING: Relaxed: nothing is read then.
            Ordering::Relaxed,
        );
        taken.ok()?;
        // SAFETY: the mark was exchanged here, so the entry is this thread's until the place is given back.
        let content = unsafe { self.entries[index].with(Option::take) };
        self.free.give_back(u32::try_from(index).unwrap_or(0));
        content
    }

    /// Takes every buffer that is in flight. For when the device has none of them any more.
    pub(super) fn take_all(&self) -> impl Iterator<Item = B> {
        let mut places = 0..self.depth();
        iter::from_fn(move || {
            places.find_map(|place| {
                // ORDERING: Relaxed: taking it checks the word again.
                let generation = self.words[place as usize].load(Ordering::Relaxed) & (IN_FLIGHT - 1);
                let low = u32::try_from(generation << 16).unwrap_or(0) | place;
                self.take(low)?.0.buffer
            })
        })
    }
}

/// Another one for each queue of this process.
fn next_key() -> u32 {
    static KEYS: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    // ORDERING: Relaxed: only that they differ counts.
    SHARED | KEYS.fetch_add(1, core::sync::atomic::Ordering::Relaxed)
}
