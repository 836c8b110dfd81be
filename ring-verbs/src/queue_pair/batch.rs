//! Requests that go to the device together.
//!
//! # Safety
//!
//! Only a queue pair in RTS has batches, and bytes that a request carries are borrowed for longer than its batch lives.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use super::kinds::{Rts, Transport};
use super::rejected::{Rejected, Rejection};
use super::request::Request;
use super::{Pair, QueuePair};
use crate::buffer::Buffer;
use crate::completion::Ticket;
use crate::{Errno, Error};

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
    pub(super) fn new(queue_pair: &'a mut QueuePair<T, Rts, B>) -> Self {
        queue_pair.pair.send.begin();
        Self { queue_pair }
    }

    /// Adds a request.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the buffer: [`Rejection::BatchFull`] where the batch holds as many as the queue pair was made
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

impl<B> From<BatchRejected<B>> for Error {
    fn from(rejected: BatchRejected<B>) -> Self {
        Self::Rejected(Rejection::Driver(rejected.errno))
    }
}
