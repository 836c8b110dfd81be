//! Posting one request: the usual way, in few instructions, and the others.
//!
//! What is unusual leaves the usual way by a call that does not come back to it, with the buffer put aside, so that the
//! usual way keeps everything in registers.
//!
//! # Safety
//!
//! A buffer is in the flight before the device has its request, and comes out only if the device has refused it.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::ptr;

use super::{SendQueue, errno_of, post_send};
use crate::buffer::{Buffer, Pieces, piece_list};
use crate::completion::Ticket;
use crate::flight::Entry;
use crate::queue_pair::rejected::{Rejected, Rejection};
use crate::queue_pair::request::Request;
use crate::sys::{ibv_qp, ibv_send_wr};

impl<B> SendQueue<B> {
    /// Posts one request with a buffer. What a forgotten batch left in the chain is dropped.
    ///
    /// # Safety
    ///
    /// The queue pair is this queue's, and is in a state in which it takes requests.
    #[inline(always)]
    pub(in crate::queue_pair) unsafe fn post<T>(
        &mut self,
        pair: *mut ibv_qp,
        request: &Request<T>,
        buffer: B,
    ) -> Result<Ticket, Rejected<B>>
    where
        B: Buffer,
    {
        let (position, has_room) = self.poster.next_alone();
        if !has_room || request.posted().is_special() {
            self.aside = Some(buffer);
            // SAFETY: the caller's promise.
            let ticket = unsafe { self.post_unusual(pair, request) };
            return ticket.ok_or_else(|| self.take_rejected());
        }
        let mut list = piece_list();
        let mut added = Pieces::new(&mut list);
        buffer.add_pieces(&mut added);
        let (pieces, most) = (added.count(), self.pieces_max);
        // One piece is always taken: where a buffer has no more, there is nothing to be compared.
        if pieces > 1 && pieces > most {
            return Err(Rejected { buffer, reason: Rejection::TooManyPieces { pieces, most } });
        }
        let operation = request.posted().copy_plain();
        // SAFETY: there is room, and the chain is empty.
        unsafe { self.poster.put(position, Entry { buffer: Some(buffer), operation }) };
        // SAFETY: no other post of the request is under way: it is not shared between threads.
        let wr = unsafe { &mut *request.raw() };
        wr.wr_id = self.poster.wr_id(position);
        wr.sg_list = list.as_mut_ptr().cast();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "there are few pieces"
        )]
        let count = pieces as c_int;
        wr.num_sge = count;
        wr.send_flags = self.signal(request.flags(), position);
        // SAFETY: the queue pair is there, and so is the request, until the call returns.
        let code = unsafe { post_send(pair, wr, &raw mut self.bad) };
        if code == 0 {
            return Ok(Ticket(position));
        }
        let ticket = self.refused_alone(code, wr, Ticket(position));
        ticket.ok_or_else(|| self.take_rejected())
    }

    /// Puts the newest post's buffer aside, where the driver names it as bad. Otherwise it may be in flight: see
    /// [`Self::refused`].
    #[cold]
    #[inline(never)]
    fn refused_alone(&mut self, code: i32, wr: *const ibv_send_wr, ticket: Ticket) -> Option<Ticket> {
        let bad = core::mem::replace(&mut self.bad, ptr::null_mut());
        if !ptr::eq(bad, wr) {
            return Some(ticket);
        }
        // SAFETY: the driver has refused it.
        let entry = unsafe { self.poster.take_back() };
        (self.aside, self.reason) = (entry.buffer, Rejection::Driver(errno_of(code)));
        None
    }

    /// What was put aside, back to the caller.
    #[inline(always)]
    fn take_rejected(&mut self) -> Rejected<B> {
        match self.aside.take() {
            Some(buffer) => Rejected { buffer, reason: self.reason },
            None => unreachable!("it was put aside"),
        }
    }

    /// As [`Self::post`], of a request that the usual way is not for, or not before a closer look. The buffer is the one put
    /// aside, and so it is where it is rejected.
    ///
    /// # Safety
    ///
    /// As of [`Self::post`].
    #[inline(never)]
    unsafe fn post_unusual<T>(&mut self, pair: *mut ibv_qp, request: &Request<T>) -> Option<Ticket>
    where
        B: Buffer,
    {
        let goes_alone = !request.posted().is_special() && self.filled == 0 && self.direct.is_none();
        if goes_alone && self.poster.has_room() {
            self.poster.go_alone();
            let buffer = self.aside.take()?;
            // SAFETY: the caller's promise.
            return match unsafe { self.post(pair, request, buffer) } {
                Ok(ticket) => Some(ticket),
                Err(rejected) => self.put_aside(rejected),
            };
        }
        // SAFETY: the caller's promise.
        unsafe { self.post_chained(pair, request) }
    }

    /// As [`Self::post_unusual`], by way of the chain.
    ///
    /// # Safety
    ///
    /// As of [`Self::post`].
    unsafe fn post_chained<T>(&mut self, pair: *mut ibv_qp, request: &Request<T>) -> Option<Ticket>
    where
        B: Buffer,
    {
        self.begin();
        let buffer = self.aside.take()?;
        let ticket = match self.push(request, buffer) {
            Ok(ticket) => ticket,
            Err(rejected) => return self.put_aside(rejected),
        };
        let mut returned = None;
        // SAFETY: the caller's promise.
        let rung = unsafe { self.ring(pair, |buffer| returned = buffer) };
        let (Err(errno), Some(buffer)) = (rung, returned) else { return Some(ticket) };
        self.put_aside(Rejected { buffer, reason: Rejection::Driver(errno) })
    }

    fn put_aside(&mut self, rejected: Rejected<B>) -> Option<Ticket> {
        (self.aside, self.reason) = (Some(rejected.buffer), rejected.reason);
        None
    }
}
