//! The ring's words in the region, and where frames lie among them.
//!
//! # Safety
//!
//! A [`Memory`] is made only for a region whose length was checked against the ring's, and the handle that has
//! the `Memory` keeps the region. The ring's size is a private copy, and a [`Frame`] is made only when its header and
//! its bytes lie in the ring in one piece, so every address formed here lies in the region whatever a peer writes.
//! References are made to atomics only.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use super::frame::{Frame, frame_bytes};
use super::layout::Layout;
use crate::header::Shape;
use crate::pair::Header;
use crate::sync::bytes::{WORD_BYTES, Word, Words};
use crate::sync::{self, Ordering};
use crate::{Error, Liveness, Region, Role};

/// The bit of a header word that says that the frame is padding, and that the message is at the ring's start.
pub(super) const PADDING: u64 = 1 << 63;

/// A word, as positions count.
pub(super) const WORD: u64 = WORD_BYTES as u64;

/// Addresses and private copies of the shape. The handle that has it keeps the region.
#[derive(Debug)]
pub(super) struct Memory {
    header: NonNull<Header>,
    words: Words,
    /// Bytes of the ring less 1.
    mask: u64,
}

// SAFETY: the pointers are into the region, which the handle keeps and sends along.
unsafe impl Send for Memory {}

impl Memory {
    /// Makes an empty ring.
    pub(super) fn create(
        region: &impl Region,
        layout: &Layout,
        liveness: &impl Liveness,
    ) -> Result<(), Error> {
        Header::create(region, layout.bytes(), &layout.shape(), layout.start, liveness, || {
            let memory = Self::over(region, layout);
            // SAFETY: the words lie in the region, aligned to 8.
            unsafe { memory.words.make(layout.ring_bytes) };
            // The frontier. What the other words hold does not matter.
            // ORDERING: Relaxed: the magic word publishes the ring (R4).
            memory.word(layout.start).store(0, Ordering::Relaxed);
        })
    }

    /// Compares the guards in the region with this kind of ring.
    pub(super) fn check(region: &impl Region) -> Result<Shape, Error> {
        Header::check(region, super::KIND, Layout::ELEMENT_BYTES, WORD_BYTES)
    }

    /// Attaches to the ring in the region and takes a role. The word says that the caller owns it.
    pub(super) fn attach(
        region: &impl Region,
        role: Role,
        liveness: &impl Liveness,
    ) -> Result<(Self, u64), Error> {
        let read = || Layout::read(region);
        let (layout, owner) = Header::attach(region, super::KIND, role, liveness, read)?;
        Ok((Self::over(region, &layout), owner))
    }

    /// The addresses for a region that is known to be long enough.
    pub(super) fn over(region: &impl Region, layout: &Layout) -> Self {
        let header = region.base().cast::<Header>();
        // SAFETY: the region holds the header and the words.
        let words = Words::over(unsafe { header.add(1) }.cast(), layout.ring_bytes);
        Self { header, words, mask: layout.ring_bytes as u64 - 1 }
    }

    #[inline(always)]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header lies in the region; it consists of atomics.
        unsafe { self.header.as_ref() }
    }

    #[inline(always)]
    pub(super) fn ring_bytes(&self) -> u64 {
        self.mask + 1
    }

    /// Bytes of the longest message: a frame of half the ring, the padding before it, which is shorter than the frame,
    /// and the 0 behind it take the whole ring at most.
    #[inline(always)]
    pub(super) fn longest(&self) -> u64 {
        self.ring_bytes() / 2 - WORD
    }

    /// Most bytes that can be in use: the frontier takes a word.
    #[inline(always)]
    pub(super) fn most_used(&self) -> u64 {
        self.ring_bytes() - WORD
    }

    /// Whether a position, or a number of bytes in use, can be one: all frames are whole words.
    #[inline(always)]
    pub(super) fn is_whole(bytes: u64) -> bool {
        bytes % WORD == 0
    }

    #[expect(clippy::cast_possible_truncation, reason = "the ring's size is a `usize`")]
    #[inline(always)]
    fn offset(&self, position: u64) -> usize {
        (position & self.mask) as usize
    }

    /// Bytes from a position to the ring's end.
    #[inline(always)]
    fn to_end(&self, position: u64) -> u64 {
        self.ring_bytes() - (position & self.mask)
    }

    /// The word at a position, as a header.
    #[inline(always)]
    pub(super) fn word(&self, position: u64) -> &Word {
        // SAFETY: the offset is below the ring's size, and the handle that has `self` keeps the region.
        unsafe { self.words.word(self.offset(position) / WORD_BYTES) }
    }

    /// The frame for a message of `len` bytes pushed at `tail`: there, or behind padding at the ring's start. None
    /// when no frame can be as long, or so short.
    #[inline(always)]
    pub(super) fn frame_for(&self, tail: u64, len: usize) -> Option<Frame> {
        if (len as u64).wrapping_sub(1) >= self.longest() {
            return None;
        }
        let to_end = self.to_end(tail);
        let padding = if frame_bytes(len) > to_end { to_end } else { 0 };
        Some(self.frame(tail.wrapping_add(padding), len))
    }

    /// The frame that the header `word` at `position` announces. None when the peer is broken or hostile: there is
    /// none such.
    #[inline(always)]
    pub(super) fn announced(&self, position: u64, word: u64) -> Option<Frame> {
        if word & PADDING == 0 {
            return self.message(position, word);
        }
        let padding = WORD.wrapping_add(word ^ PADDING);
        if padding != self.to_end(position) || padding > self.longest() {
            return None;
        }
        let position = position.wrapping_add(padding);
        // ORDERING: Relaxed: the header of the padding (A1) has brought it.
        self.message(position, self.word(position).load(Ordering::Relaxed))
    }

    /// The frame of a message whose header, at `position`, is `word`.
    #[inline(always)]
    fn message(&self, position: u64, word: u64) -> Option<Frame> {
        // From 1 to the longest, so 0 and padding are none.
        if word.wrapping_sub(1) >= self.longest() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "shorter than the ring")]
        let len = word as usize;
        (frame_bytes(len) <= self.to_end(position)).then(|| self.frame(position, len))
    }

    /// A frame that was found to lie in the ring in one piece.
    #[inline(always)]
    fn frame(&self, at: u64, len: usize) -> Frame {
        debug_assert!(frame_bytes(len) <= self.to_end(at), "a frame in one piece");
        // SAFETY: the callers have compared the frame's bytes with those to the ring's end.
        unsafe { Frame::new(at, len, self.words, self.offset(at)) }
    }

    /// Bytes of published frames from `from` on, where nobody overwrites them meanwhile: the lengths, each checked,
    /// lead to the frontier.
    ///
    /// Each step is 16 bytes or more and the sum is bounded by the ring, so it ends whatever a peer writes.
    pub(super) fn published_from(&self, from: u64) -> Result<u64, Error> {
        let mut position = from;
        while let Some(end) = self.next(position)? {
            position = end;
            if position.wrapping_sub(from) > self.most_used() {
                return Err(Error::Corrupted);
            }
        }
        Ok(position.wrapping_sub(from))
    }

    /// Where the frame at a position ends, padding before it included. None: the frontier is there.
    fn next(&self, position: u64) -> Result<Option<u64>, Error> {
        // ORDERING: Acquire (A1): the frame, and the 0 behind it or what has replaced that; pairs with R1 in
        // Producer::publish.
        match self.word(position).load(Ordering::Acquire) {
            0 => Ok(None),
            word => Ok(Some(self.announced(position, word).ok_or(Error::Corrupted)?.end())),
        }
    }

    /// The tail, and a credit as of later, for who watches while both sides are at work.
    ///
    /// It stops after as many steps as a ring has frames at most, whatever a peer writes. It has then come a ring
    /// farther than the credit where it began, and the tail was not beyond that.
    pub(super) fn find_tail(&self) -> Result<(u64, u64), Error> {
        // ORDERING: Acquire (A2): that the frames have come so far; pairs with R2 in Consumer::return_credit.
        let look = || self.header().credit.credit.load(Ordering::Acquire);
        let mut credit = look();
        let mut position = credit;
        for _ in 0..=self.ring_bytes() / (2 * WORD) {
            if !Self::is_whole(credit) {
                return Err(Error::Corrupted);
            }
            let next = self.next(position);
            // ORDERING: Acquire (A1): keeps the look at the credit behind those at the words. A header brings the credit
            // that its producer had seen (R1). Bytes of a message, where a header was before, do so on processors whose
            // stores become visible to all at once; elsewhere, since a push has no fence, they may be taken for a header,
            // and this one answer is wrong. Unmodelled: headers and payload are apart in models; pairs with
            // R1 in Producer::publish.
            sync::fence(Ordering::Acquire);
            credit = look();
            if (1..=u64::MAX / 2).contains(&credit.wrapping_sub(position)) {
                // What was at the position may be overwritten. The credit is always where a frame begins.
                position = credit;
            } else if let Some(end) = next? {
                position = end;
            } else {
                break;
            }
        }
        Ok((position, credit))
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Word>() == 8);
