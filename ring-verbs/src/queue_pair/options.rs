//! How a queue pair is made.
//!
//! # Safety
//!
//! The library's queue pair belongs to the `Pair` that it is put into, whose flights are made for it.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use super::claim::{Claim, SharedClaim};
use super::direct::{self, Direct, Posting};
use super::kinds::{Reset, Transport};
use super::receive::ReceiveQueue;
use super::send::{Capacities, SendQueue};
use super::{Pair, QueuePair, Receives};
use crate::Errno;
use crate::buffer::{Buffer, PIECES_MAX};
use crate::completion_queue::{self, CompletionTarget};
use crate::domain::{Domain, ProtectionDomain};
use crate::error::{Error, Operation};
use crate::shared_receive_queue::SharedReceiveQueue;
use crate::sys::{self, QpInitAttrMask, ibv_qp, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq};

/// The options of a queue pair.
#[derive(Debug, Clone)]
pub struct QueuePairOptions {
    sends: u32,
    receives: u32,
    pieces: u32,
    max_inline: u32,
    signal_every: u32,
    batch: u32,
    posting: Posting,
}

impl QueuePairOptions {
    /// For `sends` requests and `receives` receives in flight at most.
    pub fn new(sends: u32, receives: u32) -> Self {
        Self { sends, receives, pieces: 1, max_inline: 0, signal_every: 1, batch: 16, posting: Posting::Auto }
    }

    /// Pieces of a buffer, at most [`PIECES_MAX`]. By default 1.
    pub fn pieces(mut self, pieces: u32) -> Self {
        self.pieces = pieces;
        self
    }

    /// Bytes that a request can carry itself. By default 0. What a device can depends on the kind of the queue pair and
    /// is told by no query: too many, and the queue pair is refused with EINVAL.
    pub fn max_inline(mut self, bytes: u32) -> Self {
        self.max_inline = bytes;
        self
    }

    /// Every how many requests one gets a completion of its own, which brings back the buffers of those before it. By
    /// default 1; rounded down to a power of two, and at most as many as `sends`. More cost less, and the last few stay in
    /// flight until more are posted: end with a [`signaled`](super::Request::signaled) one.
    pub fn signal_every(mut self, requests: u32) -> Self {
        self.signal_every = requests;
        self
    }

    /// Requests of a [`Batch`](super::Batch), at most: by default 16, and never more than `sends`.
    pub fn batch(mut self, requests: u32) -> Self {
        self.batch = requests;
        self
    }

    /// How requests go to the device. By default what is best there.
    pub fn posting(mut self, posting: Posting) -> Self {
        self.posting = posting;
        self
    }

    /// Makes it: of the transport `T`, with completions of its sends in `send` and of its receives in `receive`: a
    /// [`CompletionQueue`](crate::CompletionQueue) each, or its target, or twice the same. Name the transport:
    /// `let pair: QueuePair<Rc, _> = ...`.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] where the device does not have queues of these sizes, [`Error::CompletionQueueFull`] where a
    /// completion queue has no room for all requests of both, [`Error::OtherDevice`] where they do not belong together,
    /// [`Error::Refused`] with EINVAL mostly for too many bytes carried, [`Error::NotSupported`] for the transport.
    pub fn build<T: Transport, B: Buffer>(
        &self,
        domain: &ProtectionDomain,
        send: &impl AsRef<CompletionTarget<B>>,
        receive: &impl AsRef<CompletionTarget<B>>,
    ) -> Result<QueuePair<T, Reset, B>, Error> {
        let (send, receive) = (&send.as_ref().0, &receive.as_ref().0);
        self.check(domain, send, receive)?;
        let sends = Claim::new(send, self.sends)?;
        let receives = Claim::new(receive, self.receives)?;
        let made = self.make::<T, B>(domain, send, receive, ptr::null_mut())?;
        let sends = sends.enter(made.number())?;
        let receives = receives.enter(made.number())?.take();
        // SAFETY: the flight was made for it.
        let queue = unsafe { ReceiveQueue::new(receives, self.receives, self.pieces) };
        Ok(made.finish(self, sends.take(), Receives::Own(queue), send, receive))
    }

    /// As [`Self::build`], with receives out of a queue that it shares with other queue pairs. The number of its own
    /// receives is without effect; those of the shared queue are claimed of `receive` once, for as long as a queue pair uses
    /// both.
    ///
    /// # Errors
    ///
    /// As of [`Self::build`].
    pub fn build_shared<T: Transport, B: Buffer>(
        &self,
        domain: &ProtectionDomain,
        send: &impl AsRef<CompletionTarget<B>>,
        receive: &impl AsRef<CompletionTarget<B>>,
        shared: &SharedReceiveQueue<B>,
    ) -> Result<QueuePair<T, Reset, B>, Error> {
        let (send, receive) = (&send.as_ref().0, &receive.as_ref().0);
        self.check(domain, send, receive)?;
        let shared = shared.shared();
        domain.domain.open.same_as(&shared.domain().open, Operation::CreateQueuePair)?;
        let sends = Claim::new(send, self.sends)?;
        let claim = SharedClaim::new(receive, shared.flight())?;
        let made = self.make::<T, B>(domain, send, receive, shared.as_raw())?;
        let sends = sends.enter(made.number())?;
        claim.take();
        let receives = Receives::Shared(ManuallyDrop::new(Arc::clone(shared)));
        Ok(made.finish(self, sends.take(), receives, send, receive))
    }

    /// Has the library make it.
    fn make<T: Transport, B>(
        &self,
        domain: &ProtectionDomain,
        send: &completion_queue::Shared<B>,
        receive: &completion_queue::Shared<B>,
        shared: *mut ibv_srq,
    ) -> Result<Made, Error> {
        let is_shared = !shared.is_null();
        let mut attributes = ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: send.as_raw(),
            recv_cq: receive.as_raw(),
            srq: shared,
            cap: ibv_qp_cap {
                max_send_wr: self.sends,
                max_recv_wr: if is_shared { 0 } else { self.receives },
                max_send_sge: self.pieces,
                max_recv_sge: if is_shared { 0 } else { self.pieces },
                max_inline_data: self.max_inline,
            },
            qp_type: T::TYPE,
            sq_sig_all: 0,
        };
        let (raw, direct) = self.create(domain, &mut attributes)?;
        let max_inline = attributes.cap.max_inline_data;
        Ok(Made { raw, direct, domain: Arc::clone(&domain.domain), max_inline, is_used: false })
    }

    /// Makes one that takes requests by calls where that is wanted and can be had, and else any.
    fn create(
        &self,
        domain: &ProtectionDomain,
        attributes: &mut ibv_qp_init_attr,
    ) -> Result<(NonNull<ibv_qp>, Option<Direct>), Error> {
        let operation = Operation::CreateQueuePair;
        let open = &domain.domain.open;
        let is_soft_roce = open.is_soft_roce()?;
        if self.posting == Posting::Calls || self.posting == Posting::Auto && !is_soft_roce {
            let mut extended = ibv_qp_init_attr_ex {
                send_cq: attributes.send_cq,
                recv_cq: attributes.recv_cq,
                srq: attributes.srq,
                cap: attributes.cap,
                qp_type: attributes.qp_type,
                comp_mask: QpInitAttrMask::PD | QpInitAttrMask::SEND_OPS_FLAGS,
                pd: domain.as_raw(),
                send_ops_flags: direct::operations(attributes.qp_type),
                ..ibv_qp_init_attr_ex::default()
            };
            // SAFETY: all that it is made of is there, and so are the attributes.
            let raw = unsafe { sys::create_qp_ex(open.functions, open.raw.as_ptr(), &raw mut extended) };
            if let Some(raw) = NonNull::new(raw) {
                attributes.cap = extended.cap;
                // SAFETY: the queue pair was just made, with operations.
                let calls = NonNull::new(unsafe { (open.functions.ibv_qp_to_qp_ex)(raw.as_ptr()) });
                return Ok((raw, calls.map(|calls| Direct::new(calls, attributes.qp_type, !is_soft_roce))));
            }
            if self.posting == Posting::Calls {
                return Err(Error::of(operation, Errno::last()));
            }
        }
        // SAFETY: all that it is made of is there, and so are the attributes.
        let raw = unsafe { (open.functions.ibv_create_qp)(domain.as_raw(), attributes) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::of(operation, Errno::last()))?;
        Ok((raw, None))
    }

    fn check<B>(
        &self,
        domain: &ProtectionDomain,
        send: &completion_queue::Shared<B>,
        receive: &completion_queue::Shared<B>,
    ) -> Result<(), Error> {
        let open = &domain.domain.open;
        open.require_operations(Operation::CreateQueuePair)?;
        open.same_as(&send.open, Operation::CreateQueuePair)?;
        open.same_as(&receive.open, Operation::CreateQueuePair)?;
        let attributes = open.attributes()?;
        Error::at_most("send requests of a queue pair", self.sends, attributes.max_qp_wr)?;
        Error::at_most("receives of a queue pair", self.receives, attributes.max_qp_wr)?;
        Error::at_most("pieces of a request", self.pieces, attributes.max_sge)?;
        Error::at_most("pieces of a request", self.pieces, PIECES_MAX as u64)
    }
}

/// A queue pair of the library, destroyed again if nothing comes of it.
struct Made {
    raw: NonNull<ibv_qp>,
    direct: Option<Direct>,
    domain: Arc<Domain>,
    max_inline: u32,
    is_used: bool,
}

impl Made {
    fn number(&self) -> u32 {
        // SAFETY: just made, and nobody writes this.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    fn finish<T: Transport, B>(
        mut self,
        options: &QueuePairOptions,
        sends: completion_queue::Queue<B>,
        receive: Receives<B>,
        send_queue: &Arc<completion_queue::Shared<B>>,
        receive_queue: &Arc<completion_queue::Shared<B>>,
    ) -> QueuePair<T, Reset, B> {
        self.is_used = true;
        let capacities = Capacities {
            depth: options.sends,
            pieces: options.pieces,
            max_inline: self.max_inline,
            signal_every: options.signal_every,
            batch: options.batch.min(options.sends),
            direct: self.direct,
            context: self.domain.open.raw,
        };
        let pair = Pair {
            raw: self.raw,
            // SAFETY: the flight was made for it.
            send: unsafe { SendQueue::new(sends, &capacities) },
            receive,
            send_queue: ManuallyDrop::new(Arc::clone(send_queue)),
            receive_queue: ManuallyDrop::new(Arc::clone(receive_queue)),
            domain: ManuallyDrop::new(Arc::clone(&self.domain)),
        };
        QueuePair { pair: Box::new(pair), kind: PhantomData }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if !self.is_used {
            // SAFETY: nobody else has it.
            unsafe { (self.domain.open.functions.ibv_destroy_qp)(self.raw.as_ptr()) };
        }
    }
}
