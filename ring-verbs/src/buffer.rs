//! What a request sends from, or receives into.
//!
//! # Safety
//!
//! This file declares what an implementor of [`Buffer`] promises; the device's accesses rest on it.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use crate::sys::ibv_sge;

/// Pieces that one request gathers from, or scatters to, at most.
pub const PIECES_MAX: usize = 16;

/// Room for the pieces of a request.
pub(crate) type PieceList = [MaybeUninit<ibv_sge>; PIECES_MAX];

/// Room that nothing is written to.
#[inline(always)]
pub(crate) const fn piece_list() -> PieceList {
    [const { MaybeUninit::uninit() }; PIECES_MAX]
}

/// The pieces of a request, while it is made.
#[derive(Debug)]
pub struct Pieces<'a> {
    list: &'a mut PieceList,
    count: usize,
}

impl<'a> Pieces<'a> {
    #[inline(always)]
    pub(crate) fn new(list: &'a mut PieceList) -> Self {
        Self { list, count: 0 }
    }

    /// How many were added, also those beyond the limit. As many of the list are written, as far as there is room.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether an atomic's result has room. Drivers write 8 bytes to each piece, whatever its length is.
    pub(crate) fn holds_a_word(&self) -> bool {
        // SAFETY: the first was written where one was added.
        self.count == 1 && unsafe { self.list[0].assume_init_ref() }.length >= 8
    }

    /// Adds a piece: where it begins, how many bytes it has, and the local key of the region that it lies in.
    ///
    /// More than [`PIECES_MAX`] are counted, and the post is refused. One without bytes is left out: the InfiniBand
    /// specification takes its length for 2^31, and some drivers say so to their devices.
    #[inline(always)]
    pub fn add(&mut self, address: *const u8, length: u32, key: u32) {
        if length == 0 {
            return nothing();
        }
        if let Some(piece) = self.list.get_mut(self.count) {
            *piece =
                MaybeUninit::new(ibv_sge { addr: address.expose_provenance() as u64, length, lkey: key });
        }
        self.count += 1;
    }
}

/// A call for what is rare, so that it stands aside.
#[cold]
#[inline(never)]
fn nothing() {}

/// Registered memory that moves into a request and comes back with its completion.
///
/// Most programs use [`Slab`](crate::Slab)s of a pool. An array is a buffer of several pieces, and so is a `Vec`.
///
/// # Safety
///
/// For as long as the value lives, also after it was moved:
///
/// - the pieces lie in memory that is registered, with the keys that it names, and stays so;
/// - nobody in this program touches that memory but through the value. Whoever owns the value may hand out
///   references; while it is in flight nobody has it, and the device reads and writes.
pub unsafe trait Buffer: Send + 'static {
    /// Names the pieces, in order.
    fn add_pieces(&self, pieces: &mut Pieces<'_>);
}

// SAFETY: each element keeps the promise, and the array owns them.
unsafe impl<B: Buffer, const N: usize> Buffer for [B; N] {
    #[inline(always)]
    fn add_pieces(&self, pieces: &mut Pieces<'_>) {
        self.iter().for_each(|buffer| buffer.add_pieces(pieces));
    }
}

// SAFETY: each element keeps the promise, and the vector owns them.
unsafe impl<B: Buffer> Buffer for alloc::vec::Vec<B> {
    #[inline(always)]
    fn add_pieces(&self, pieces: &mut Pieces<'_>) {
        self.iter().for_each(|buffer| buffer.add_pieces(pieces));
    }
}

// SAFETY: what is in it keeps the promise, and nothing has no pieces.
unsafe impl<B: Buffer> Buffer for Option<B> {
    #[inline(always)]
    fn add_pieces(&self, pieces: &mut Pieces<'_>) {
        self.iter().for_each(|buffer| buffer.add_pieces(pieces));
    }
}

// SAFETY: the box owns a buffer that keeps the promise.
unsafe impl<B: Buffer> Buffer for alloc::boxed::Box<B> {
    #[inline(always)]
    fn add_pieces(&self, pieces: &mut Pieces<'_>) {
        (**self).add_pieces(pieces);
    }
}
