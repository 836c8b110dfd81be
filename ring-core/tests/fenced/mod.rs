//! A region between words that nothing may touch.
//!
//! # Safety
//!
//! [`Fenced`] is part of a heap region that it owns; its words are reached as atomics.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "not every test reads")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use ring_core::{HeapRegion, Region};

/// Words that nothing may touch lie on both sides of the ring.
#[derive(Debug)]
pub(crate) struct Fenced {
    memory: HeapRegion,
    bytes: usize,
}

const FENCE: usize = 4096;
const FENCE_WORD: u64 = 0xa5a5_a5a5_a5a5_a5a5;

impl Fenced {
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        let fenced = Self { memory: HeapRegion::new(bytes + 2 * FENCE), bytes };
        fenced.fences().for_each(|word| word.store(FENCE_WORD, Ordering::Relaxed));
        Arc::new(fenced)
    }

    fn fences(&self) -> impl Iterator<Item = &AtomicU64> {
        let offsets = (0..FENCE).chain(FENCE + self.bytes..2 * FENCE + self.bytes);
        offsets.step_by(8).map(|offset| self.at(offset))
    }

    fn at(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.memory.bytes() && offset % 8 == 0);
        // SAFETY: the word lies in the memory.
        let word = unsafe { self.memory.base().add(offset) };
        // SAFETY: aligned, and shared as atomics only.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
    }

    /// The word at a byte offset in the ring.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.bytes);
        self.at(FENCE + offset)
    }

    pub(crate) fn write(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    /// Every word of the ring.
    pub(crate) fn contents(&self) -> Vec<u64> {
        (0..self.bytes).step_by(8).map(|offset| self.read(offset)).collect()
    }

    pub(crate) fn assert_fences(&self) {
        let untouched = self.fences().all(|word| word.load(Ordering::Relaxed) == FENCE_WORD);
        assert!(untouched, "touched outside the region");
    }
}

// SAFETY: part of a heap region, aligned as it since the fence is a multiple of the alignment.
unsafe impl Region for Fenced {
    fn base(&self) -> NonNull<u8> {
        // SAFETY: the fence lies in the memory.
        unsafe { self.memory.base().add(FENCE) }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
