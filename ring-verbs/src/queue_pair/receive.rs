//! The receive side of a queue pair.
//!
//! # Safety
//!
//! As in the send side: a buffer is in the flight before the device has its request.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ffi::c_int;
use core::ptr;

use super::Posted;
use super::rejected::{Rejected, Rejection};
use crate::Errno;
use crate::buffer::{Buffer, Pieces, piece_list};
use crate::completion::{Opcode, Ticket};
use crate::flight::{Entry, Flight, Poster};
use crate::sys::{self, ibv_qp, ibv_recv_wr};

/// Posts buffers to receive into.
pub(super) struct ReceiveQueue<B> {
    poster: Poster<B, Posted>,
    pieces_max: usize,
}

impl<B> ReceiveQueue<B> {
    /// # Safety
    ///
    /// Nothing else posts to the flight.
    pub(super) unsafe fn new(flight: Arc<Flight<B, Posted>>, depth: u32, pieces: u32) -> Self {
        Self {
            // SAFETY: the caller's promise.
            poster: unsafe { Poster::new(flight, depth) },
            pieces_max: pieces as usize,
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.poster.in_flight()
    }

    pub(super) fn depth(&self) -> u32 {
        self.poster.depth()
    }

    pub(super) fn leave(&self) {
        self.poster.leave();
    }

    /// Begins anew with another flight, after a reset.
    ///
    /// # Safety
    ///
    /// As [`Self::new`]; the device has none of what is in the old one.
    pub(super) unsafe fn renew(&mut self, flight: Arc<Flight<B, Posted>>) {
        // SAFETY: the caller's promise; every post is published at once.
        unsafe { self.poster.renew(flight) };
    }

    /// # Safety
    ///
    /// The queue pair is this queue's, and is in a state in which it takes receives.
    #[inline(always)]
    pub(super) unsafe fn post(&mut self, pair: *mut ibv_qp, buffer: B) -> Result<Ticket, Rejected<B>>
    where
        B: Buffer,
    {
        if !self.poster.has_room() {
            return Err(Rejected { buffer, reason: Rejection::Full });
        }
        let mut list = piece_list();
        let mut added = Pieces::new(&mut list);
        buffer.add_pieces(&mut added);
        let (pieces, most) = (added.count(), self.pieces_max);
        if pieces > most {
            return Err(Rejected { buffer, reason: Rejection::TooManyPieces { pieces, most } });
        }
        let position = self.poster.position();
        let mut wr = ibv_recv_wr {
            wr_id: self.poster.wr_id(position),
            next: ptr::null_mut(),
            sg_list: list.as_mut_ptr().cast(),
            num_sge: c_int::try_from(pieces).unwrap_or(0),
        };
        let operation = Posted::new(Opcode::Receive);
        // SAFETY: there is room.
        unsafe { self.poster.write(Entry { buffer: Some(buffer), operation }) };
        self.poster.publish();
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair is there, and so is the request, until the call returns.
        match unsafe { sys::post_recv(pair, &raw mut wr, &raw mut bad) } {
            0 => Ok(Ticket(position)),
            code => self.refused(code),
        }
    }

    #[cold]
    fn refused(&mut self, code: i32) -> Result<Ticket, Rejected<B>> {
        let errno = Errno::check(code).err().unwrap_or(Errno(libc::EIO));
        // SAFETY: the driver has refused the newest one.
        let entry = unsafe { self.poster.take_back() };
        match entry.buffer {
            Some(buffer) => Err(Rejected { buffer, reason: Rejection::Driver(errno) }),
            None => unreachable!("a receive has a buffer"),
        }
    }
}
