//! Receives that several queue pairs share.
//!
//! | edge | from | to |
//! |---|---|---|
//! | R1 → A1 | `SharedFlight::put` marks a place | `SharedFlight::take` takes it: the entry is there |
//!
//! # Safety
//!
//! The library's queue is destroyed after its queue pairs: each holds it by a reference count. Buffers of receives that
//! the device has lie in the flight until the queue is destroyed; where that fails they stay there.
#![allow(unsafe_code)]

mod flight;

use alloc::sync::Arc;
use core::ffi::c_int;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

pub(crate) use flight::SharedFlight;
use static_assertions::assert_impl_all;

use crate::Errno;
use crate::buffer::{Buffer, PIECES_MAX, Pieces, piece_list};
use crate::completion::Ticket;
use crate::domain::{Domain, ProtectionDomain};
use crate::error::{Error, Operation};
use crate::queue_pair::{Rejected, Rejection};
use crate::sys::{self, SrqAttrMask, ibv_recv_wr, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};

/// Buffers to receive into, for whichever of several queue pairs a message comes first. `B` is what the buffers are.
///
/// Its receives end in the completion queues of the queue pairs, in any order. When one of these is driven to error,
/// the receives stay with the others; a receive that was under way ends with an error.
///
/// A completion queue has room for all of its receives from the first queue pair that uses both until the last one is
/// dropped and a poll has found the completion queue empty.
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// # let domain = ring_verbs::ProtectionDomain::new(&context)?;
/// use ring_verbs::{CompletionQueueOptions, PoolOptions, QueuePairOptions, Rc, SharedReceiveQueue};
///
/// let pool = PoolOptions::new(4096, 64).build(&domain)?;
/// let queue = CompletionQueueOptions::new(128).build(&context)?;
/// let mut shared = SharedReceiveQueue::new(&domain, 64, 1)?;
/// let options = QueuePairOptions::new(16, 0);
/// let one = options.build_shared::<Rc, _>(&domain, &queue, &queue, &shared)?;
/// let other = options.build_shared::<Rc, _>(&domain, &queue, &queue, &shared)?;
/// while let Some(slab) = pool.take() {
///     shared.post_receive(slab)?; // for whichever of the two a message comes first
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedReceiveQueue<B> {
    shared: Arc<Shared<B>>,
    pieces_max: usize,
    posted: u64,
}

/// What queue pairs hold of it.
pub(crate) struct Shared<B> {
    raw: NonNull<ibv_srq>,
    flight: ManuallyDrop<Arc<SharedFlight<B>>>,
    domain: ManuallyDrop<Arc<Domain>>,
}

// SAFETY: the library's verbs can be called from any thread, and buffers can be sent.
unsafe impl<B: Send> Send for Shared<B> {}
// SAFETY: as above; buffers are only moved.
unsafe impl<B: Send> Sync for Shared<B> {}

// Its parts can be sent, and so it can.
assert_impl_all!(SharedReceiveQueue<crate::Slab>: Send);

impl<B: Buffer> SharedReceiveQueue<B> {
    /// For `receives` in flight at most, of buffers with at most `pieces` pieces.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] where the device does not have a queue of this size, or none at all; [`Error::Refused`] where
    /// it has no more of them.
    pub fn new(domain: &ProtectionDomain, receives: u32, pieces: u32) -> Result<Self, Error> {
        let attributes = domain.domain.open.attributes()?;
        Error::at_most("receives of a shared queue", receives, attributes.max_srq_wr)?;
        Error::at_most("receives of a shared queue", receives, flight::DEPTH_MAX)?;
        Error::at_most("pieces of a receive", pieces, attributes.max_srq_sge)?;
        Error::at_most("pieces of a receive", pieces, PIECES_MAX as u64)?;
        let mut attributes = ibv_srq_init_attr {
            srq_context: ptr::null_mut(),
            attr: ibv_srq_attr { max_wr: receives, max_sge: pieces, srq_limit: 0 },
        };
        let functions = domain.domain.open.functions;
        // SAFETY: the domain is there, and so are the attributes.
        let raw = unsafe { (functions.ibv_create_srq)(domain.as_raw(), &raw mut attributes) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::of(Operation::CreateSharedQueue, Errno::last()))?;
        let shared = Shared {
            raw,
            flight: ManuallyDrop::new(Arc::new(SharedFlight::new(receives))),
            domain: ManuallyDrop::new(Arc::clone(&domain.domain)),
        };
        Ok(Self { shared: Arc::new(shared), pieces_max: pieces as usize, posted: 0 })
    }

    /// Posts a buffer to receive into. Of a datagram, the first 40 bytes are left for the packet's global header.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the buffer: the queue is full, the buffer has too many pieces, or the driver does not take
    /// it.
    #[inline]
    pub fn post_receive(&mut self, buffer: B) -> Result<Ticket, Rejected<B>> {
        let mut list = piece_list();
        let mut added = Pieces::new(&mut list);
        buffer.add_pieces(&mut added);
        let (pieces, most) = (added.count(), self.pieces_max);
        if pieces > most {
            return Err(Rejected { buffer, reason: Rejection::TooManyPieces { pieces, most } });
        }
        let flight = &self.shared.flight;
        let ticket = Ticket(self.posted);
        let place = match flight.put(buffer, ticket) {
            Ok(place) => place,
            Err(buffer) => return Err(Rejected { buffer, reason: Rejection::Full }),
        };
        let mut wr = ibv_recv_wr {
            wr_id: place.wr_id(),
            next: ptr::null_mut(),
            sg_list: list.as_mut_ptr().cast(),
            num_sge: c_int::try_from(pieces).unwrap_or(0),
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the queue is there, and so is the request, until the call returns.
        let code = unsafe { sys::post_srq_recv(self.shared.as_raw(), &raw mut wr, &raw mut bad) };
        let refused = Errno::check(code).err().and_then(|errno| Some((errno, flight.take(place.low())?)));
        if let Some((errno, (entry, _))) = refused {
            if let Some(buffer) = entry.buffer {
                return Err(Rejected { buffer, reason: Rejection::Driver(errno) });
            }
        }
        self.posted += 1;
        Ok(ticket)
    }

    /// Asks for one asynchronous event when fewer than `receives` are left for the device.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with EINVAL for more than it holds.
    pub fn arm_limit(&mut self, receives: u32) -> Result<(), Error> {
        let mut attributes = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: receives };
        let modify = self.shared.domain.open.functions.ibv_modify_srq;
        // SAFETY: the queue is there, and so are the attributes.
        let returned = unsafe { modify(self.shared.as_raw(), &raw mut attributes, SrqAttrMask::LIMIT) };
        Errno::check(returned).map_err(|errno| Error::of(Operation::ModifySharedQueue, errno))
    }

    /// Receives that have not been seen to end.
    pub fn in_flight(&self) -> u32 {
        self.shared.flight.in_flight()
    }

    /// For calls that this crate does not have. It is destroyed with the last queue pair that uses it.
    pub fn as_raw(&self) -> *mut ibv_srq {
        self.shared.as_raw()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<B>> {
        &self.shared
    }

    /// Ends it, and gives back the buffers that have not come out of a completion queue: those that no message has
    /// taken, those of messages that were not polled, and those that a queue pair had begun to fill when it was dropped
    /// (they count as [in flight](Self::in_flight) until now). None where queue pairs use it still, or where the
    /// device does not let it go: then the buffers go with it, later or never.
    pub fn into_buffers(self) -> Option<alloc::vec::Vec<B>> {
        let flight = Arc::clone(&self.shared.flight);
        Arc::into_inner(self.shared)?.destroy().then(|| flight.take_all().collect())
    }
}

impl<B> Shared<B> {
    pub(crate) fn as_raw(&self) -> *mut ibv_srq {
        self.raw.as_ptr()
    }

    pub(crate) fn flight(&self) -> &Arc<SharedFlight<B>> {
        &self.flight
    }

    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Destroys it; false: the device does not let it go.
    fn destroy(self) -> bool {
        let mut this = ManuallyDrop::new(self);
        this.end()
    }

    /// For who never uses it again.
    fn end(&mut self) -> bool {
        let open = &self.domain.open;
        // SAFETY: no queue pair uses it any more, and this is called once.
        if !open.is_ours() || unsafe { (open.functions.ibv_destroy_srq)(self.raw.as_ptr()) } != 0 {
            // The device has the buffers, for ever.
            return false;
        }
        // SAFETY: neither is used again, by the promise of the callers.
        unsafe { ManuallyDrop::drop(&mut self.flight) };
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.domain) };
        true
    }
}

impl<B> Drop for Shared<B> {
    fn drop(&mut self) {
        let flight = Arc::clone(&self.flight);
        // Where the device does not let it go the flight has leaked its own reference, and keeps the buffers.
        if self.end() {
            // Completion queues know the flight still; the device does not.
            flight.take_all().for_each(drop);
        }
    }
}

impl<B> fmt::Debug for Shared<B> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Shared").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl<B> fmt::Debug for SharedReceiveQueue<B> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("SharedReceiveQueue")
            .field("in_flight", &self.shared.flight.in_flight())
            .finish_non_exhaustive()
    }
}
