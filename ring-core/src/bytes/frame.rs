//! One message's place in the ring.
//!
//! # Safety
//!
//! A [`Frame`] is made only where its header and its message lie in the ring in one piece, as [`Frame::new`] asks, and
//! only becomes shorter. So what it reads and writes lies in the region whatever a peer writes.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use super::memory::WORD;
use crate::sync::bytes::{Access, WORD_BYTES, Words};

/// A message's place in the ring, in one piece. Used only while the handle that made it keeps the region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// Position of the header.
    at: u64,
    /// Bytes of the message.
    len: usize,
    words: Words,
    /// Offset of the message in the ring.
    offset: usize,
}

impl Frame {
    /// The frame at a position, which lies `offset` bytes behind the ring's start.
    ///
    /// # Safety
    ///
    /// Its header and its message lie in the ring in one piece, and the ring is kept as long as the frame is used.
    #[inline(always)]
    pub(super) unsafe fn new(at: u64, len: usize, words: Words, offset: usize) -> Self {
        Self { at, len, words, offset: offset + WORD_BYTES }
    }

    #[inline(always)]
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Position of the next frame.
    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        self.at.wrapping_add(frame_bytes(self.len))
    }

    /// Gives up the bytes from `len` on. At least one stays, and there are as many.
    #[inline(always)]
    pub(super) fn shorten(&mut self, len: usize) {
        debug_assert!(0 < len && len <= self.len, "a shorter frame");
        self.len = len;
    }

    /// Copies the whole message in.
    ///
    /// # Panics
    ///
    /// When it has another length.
    #[inline(always)]
    pub(super) fn write(&self, bytes: &[u8]) {
        assert!(bytes.len() == self.len, "the bytes that the frame is for");
        // SAFETY: the frame's words lie in the ring, and the message begins at a word.
        unsafe { self.words.write(self.offset, bytes) };
    }

    /// Copies a part of the message in.
    ///
    /// # Panics
    ///
    /// When it goes beyond the message's end.
    pub(super) fn write_at(&self, offset: usize, bytes: &[u8]) {
        let fits = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len);
        assert!(fits, "{} bytes at {offset} in a message of {}", bytes.len(), self.len);
        // SAFETY: the part lies in the message.
        unsafe { self.words.write_at(self.offset + offset, bytes) };
    }

    /// Copies the message out, to the front of `bytes` and as much of it as fits, and returns how many bytes.
    #[inline(always)]
    pub(super) fn read(&self, bytes: &mut [u8]) -> usize {
        let len = self.len.min(bytes.len());
        // SAFETY: the frame's words lie in the ring, and the message begins at a word.
        unsafe { self.words.read(self.offset, &mut bytes[..len]) };
        len
    }

    /// Address of the message, a multiple of 8.
    #[inline(always)]
    pub(super) fn address(&self) -> NonNull<u8> {
        // SAFETY: the message lies in the ring.
        unsafe { self.words.address(self.offset) }
    }

    /// Tells loom that a grant reads the message for as long as the result lives.
    #[inline(always)]
    pub(super) fn reading(&self) -> Access {
        // SAFETY: the message lies in the ring.
        unsafe { self.words.reading(self.offset, self.len) }
    }

    /// Tells loom that a grant writes the message.
    #[inline(always)]
    pub(super) fn writing(&self) -> Access {
        // SAFETY: the message lies in the ring.
        unsafe { self.words.writing(self.offset, self.len) }
    }
}

/// Bytes of a frame for a message that fits one.
#[inline(always)]
pub(super) fn frame_bytes(len: usize) -> u64 {
    // As `next_multiple_of`, without its look at whether it is one already.
    (len as u64 + (2 * WORD - 1)) & !(WORD - 1)
}
