//! Posting requests, one at a time.
//!
//! # Safety
//!
//! Only queue pairs that were driven to a state that takes them give requests to the device, and bytes that a request
//! carries are borrowed until it has them.
#![allow(unsafe_code)]

use super::kinds::{CanReceive, Rts, Transport};
use super::rejected::{Rejected, Rejection};
use super::request::Request;
use super::{Batch, Pair, QueuePair, Receives};
use crate::buffer::Buffer;
use crate::completion::Ticket;
use crate::deadline::Deadline;

impl<T: Transport, B: Buffer> QueuePair<T, Rts, B> {
    /// Posts a request. The buffer comes back with its completion; at once where it was not posted.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the buffer: the queue is full, the buffer has too many pieces, or too few bytes for an atomic,
    /// the address handle is another device's, or the driver does not take the request.
    #[inline(always)]
    pub fn post(&mut self, request: &Request<T>, buffer: B) -> Result<Ticket, Rejected<B>> {
        let Pair { raw, send, .. } = &mut *self.pair;
        // SAFETY: the queue pair is the queue's, and was driven to RTS.
        unsafe { send.post(raw.as_ptr(), request, buffer) }
    }

    /// Posts a request that carries its bytes: they can be used again at once, and its completion has no buffer.
    ///
    /// # Errors
    ///
    /// [`Rejection`]: the queue is full, there are more bytes than [`max_inline`](QueuePair::max_inline), the request is
    /// a read or an atomic, the address handle is another device's, or the driver does not take the request.
    #[inline]
    pub fn post_inline(&mut self, request: &Request<T>, bytes: &[u8]) -> Result<Ticket, Rejection> {
        let Pair { raw, send, .. } = &mut *self.pair;
        send.begin();
        // SAFETY: the bytes are borrowed until this returns.
        let ticket = unsafe { send.push_inline(request, bytes) }?;
        let mut is_back = false;
        // SAFETY: the queue pair is the queue's, and was driven to RTS.
        match unsafe { send.ring(raw.as_ptr(), |_| is_back = true) } {
            Err(errno) if is_back => Err(Rejection::Driver(errno)),
            _ => Ok(ticket),
        }
    }

    /// As [`Self::post`], and [`overdue`](Self::overdue) tells of it when it has not ended by the deadline.
    ///
    /// # Errors
    ///
    /// As of [`Self::post`].
    pub fn post_by(
        &mut self,
        request: &Request<T>,
        buffer: B,
        deadline: Deadline,
    ) -> Result<Ticket, Rejected<B>> {
        let ticket = self.post(request, buffer)?;
        self.pair.send.note(ticket, deadline);
        Ok(ticket)
    }

    /// Several requests that go to the device together, with one ring of its doorbell.
    pub fn batch<'a>(&'a mut self) -> Batch<'a, T, B> {
        Batch::new(self)
    }
}

impl<T: Transport, S: CanReceive, B: Buffer> QueuePair<T, S, B> {
    /// Posts a buffer to receive into. Of a datagram, the first 40 bytes are left for the packet's global header.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the buffer: the queue is full, the buffer has too many pieces, or the driver does not take the
    /// request.
    #[inline]
    pub fn post_receive(&mut self, buffer: B) -> Result<Ticket, Rejected<B>> {
        let Pair { raw, receive, .. } = &mut *self.pair;
        let Receives::Own(queue) = receive else {
            return Err(Rejected { buffer, reason: Rejection::Shared });
        };
        // SAFETY: the queue pair is the queue's, and was driven to a state that takes receives.
        unsafe { queue.post(raw.as_ptr(), buffer) }
    }
}
