//! Posting requests.
//!
//! # Safety
//!
//! Only queue pairs in RTS give requests to the device, and bytes that a request carries are borrowed until it has.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use super::kinds::{CanReceive, Rts, Transport};
use super::rejected::{Rejected, Rejection};
use super::request::Request;
use super::{Pair, QueuePair, Receives};
use crate::Errno;
use crate::buffer::Buffer;
use crate::completion::Ticket;
use crate::timing::Deadline;

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
        self.pair.send.begin();
        Batch { queue_pair: self }
    }
}

/// Requests that are posted together. Dropped, they are not posted, and their buffers are dropped.
///
/// ```no_run
/// use ring_verbs::{QueuePair, Rc, Request, Rts, Slab};
///
/// fn send_all(
///     pair: &mut QueuePair<Rc, Rts>,
///     slabs: Vec<Slab>,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let request = Request::send();
///     let mut batch = pair.batch();
///     for slab in slabs {
///         batch.push(&request, slab)?;
///     }
///     batch.post()?; // rings the doorbell once
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Batch<'a, T: Transport, B: Buffer> {
    queue_pair: &'a mut QueuePair<T, Rts, B>,
}

impl<'a, T: Transport, B: Buffer> Batch<'a, T, B> {
    /// Adds a request.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the buffer: [`Rejection::Full`] also where the batch holds as many as the queue pair was made
    /// for.
    #[inline]
    pub fn push(&mut self, request: &Request<T>, buffer: B) -> Result<Ticket, Rejected<B>> {
        self.queue_pair.pair.send.push(request, buffer)
    }

    /// Adds a request that carries its bytes, which are read when the batch is posted.
    ///
    /// # Errors
    ///
    /// As [`QueuePair::post_inline`], and as [`Self::push`].
    #[inline]
    pub fn push_inline(&mut self, request: &Request<T>, bytes: &'a [u8]) -> Result<Ticket, Rejection> {
        // SAFETY: the bytes are borrowed for longer than the batch lives.
        unsafe { self.queue_pair.pair.send.push_inline(request, bytes) }
    }

    /// Gives them to the device.
    ///
    /// # Errors
    ///
    /// [`BatchRejected`] with the buffers of those that it did not take: the first of these and all after it.
    #[inline]
    pub fn post(self) -> Result<(), BatchRejected<B>> {
        let Pair { raw, send, .. } = &mut *self.queue_pair.pair;
        let mut buffers = Vec::new();
        // SAFETY: the queue pair is the queue's, and was driven to RTS.
        match unsafe { send.ring(raw.as_ptr(), |buffer| buffers.push(buffer)) } {
            Ok(()) => Ok(()),
            Err(errno) => {
                buffers.reverse();
                Err(BatchRejected { buffers, errno })
            }
        }
    }
}

impl<T: Transport, B: Buffer> Drop for Batch<'_, T, B> {
    fn drop(&mut self) {
        // Nothing is left of what was posted.
        self.queue_pair.pair.send.abandon(drop);
    }
}

/// Requests of a batch that the driver did not take.
#[derive(Debug, thiserror::Error)]
#[error("the driver refuses {} requests of the batch: {errno}", .buffers.len())]
pub struct BatchRejected<B> {
    /// Their buffers, in the order of the requests; none for those that carried their bytes. What was before them is in
    /// flight.
    pub buffers: Vec<Option<B>>,
    /// Why.
    pub errno: Errno,
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
