//! Words beside the messages, which both processes see.
//!
//! # Safety
//!
//! Words are made over a [`Region`] that is long enough, which `Words::new` checks and the value keeps. All are
//! atomics, and an index beyond them is refused.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};

use anyhow::{Result, ensure};
use ring_core::Region;

/// A pair of lines with a word, and a short one that the kernel can be asked to watch.
#[derive(Debug)]
#[repr(C, align(128))]
struct Line {
    word: AtomicU64,
    futex: AtomicU32,
}

/// So many words, each on a line of its own. They are 0 in fresh memory.
#[derive(Debug)]
pub struct Words<R> {
    first: NonNull<Line>,
    count: usize,
    _region: R,
}

/// Memory for so many words.
#[must_use]
pub const fn word_bytes(count: usize) -> usize {
    count * size_of::<Line>()
}

// SAFETY: the pointer is into the region, which the value keeps and sends along.
unsafe impl<R: Send> Send for Words<R> {}

impl<R: Region> Words<R> {
    /// Words at the beginning of a region.
    ///
    /// # Errors
    ///
    /// When there is too little memory for them.
    pub fn new(region: R, count: usize) -> Result<Self> {
        ensure!(region.bytes() >= word_bytes(count), "too little memory for {count} words");
        Ok(Self { first: region.base().cast(), count, _region: region })
    }

    /// The word of this number, from 0.
    ///
    /// # Panics
    ///
    /// When there are not so many.
    #[must_use]
    pub fn at(&self, index: usize) -> &AtomicU64 {
        &self.line(index).word
    }

    /// The short word beside it.
    ///
    /// # Panics
    ///
    /// As [`at`](Self::at).
    #[must_use]
    pub fn futex(&self, index: usize) -> &AtomicU32 {
        &self.line(index).futex
    }

    fn line(&self, index: usize) -> &Line {
        assert!(index < self.count, "there are {} words", self.count);
        // SAFETY: the index is below the number of lines that `new` found room for.
        let line = unsafe { self.first.add(index) };
        // SAFETY: aligned, as regions are; its words are atomics, and the region is kept.
        unsafe { line.as_ref() }
    }
}
