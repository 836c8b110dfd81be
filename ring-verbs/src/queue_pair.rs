//! Queue pairs, whose state is a type.
//!
//! # Safety
//!
//! A pair is destroyed before what it was made with: it holds the domain and the completion queues by reference
//! counts, and leaks them where the device does not let it go, or in a forked child. It is the only poster of its
//! flights. Buffers of requests that the device has lie in the flights, which the completion queues keep until the pair
//! is destroyed.
#![allow(unsafe_code)]

mod batch;
mod claim;
mod direct;
mod drain;
mod kinds;
mod options;
mod post;
mod posted;
mod receive;
mod rejected;
mod request;
mod send;
mod transitions;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::time::Duration;

pub use batch::{Batch, BatchRejected};
pub use direct::Posting;
pub use kinds::{CanReceive, Connected, Errored, Init, Rc, Reset, Rtr, Rts, State, Transport, Uc, Ud};
pub use options::QueuePairOptions;
pub(crate) use posted::Posted;
pub use rejected::{Rejected, Rejection};
pub use request::Request;
#[cfg(feature = "std")]
pub(crate) use transitions::Driven;
pub use transitions::{InitAttributes, RtrAttributes, RtsAttributes, TransitionError};

use crate::Errno;
use crate::completion::Ticket;
use crate::domain::Domain;
use crate::error::{Error, Operation};
use crate::pool::Slab;
use crate::sys::{QpAttrMask, QpState, WrOpcode, ibv_qp, ibv_qp_attr, ibv_qp_init_attr};
use crate::{completion_queue, shared_receive_queue};
use claim::Claim;
use receive::ReceiveQueue;
use send::SendQueue;

/// Two queues of requests: what is to be sent, and where to receive into.
///
/// `T` is the transport ([`Rc`], [`Uc`], [`Ud`]), `S` the state that it was driven to, `B` what its buffers are. It is
/// posted to by one thread at a time, and may move between threads.
///
/// [`Connection`](crate::Connection) drives it to RTS with a peer at the other end of a stream. By hand, with what the
/// peer has told in whatever way:
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// # let domain = ring_verbs::ProtectionDomain::new(&context)?;
/// # let queue = ring_verbs::CompletionQueueOptions::new(32).build::<ring_verbs::Slab>(&context)?;
/// # let port = context.port(1)?;
/// # let (peer_gid, peer_number, their_first_packet, our_first_packet) = (port.choose_gid()?.gid, 17, 1, 2);
/// use ring_verbs::{InitAttributes, QueuePairOptions, Rc, Route, RtrAttributes, RtsAttributes};
///
/// let pair = QueuePairOptions::new(16, 16).build::<Rc, _>(&domain, &queue, &queue)?;
/// println!("tell the peer: {}", pair.number());
/// let route = Route::new(&port.choose_gid()?, peer_gid);
/// let to_receive = RtrAttributes::new(route, port.active_mtu(), peer_number, their_first_packet);
/// let pair = pair.into_init(&InitAttributes::new(port.number()))?;
/// let pair = pair.into_rtr(&to_receive)?;
/// let pair = pair.into_rts(&RtsAttributes::new(our_first_packet))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A buffer moves into a request, and comes back from the completion queue, whatever happens; also when the queue pair
/// is dropped meanwhile. What a state or a transport cannot do is not there:
///
/// ```compile_fail,E0599
/// use ring_verbs::{Init, QueuePair, Rc, Request, Slab};
///
/// fn before_it_is_ready(mut pair: QueuePair<Rc, Init>, slab: Slab) {
///     let _ = pair.post(&Request::send(), slab); // only in RTS
/// }
/// ```
///
/// ```compile_fail,E0599
/// use ring_verbs::{QueuePair, Rc, Reset, RtrAttributes};
///
/// fn out_of_order(pair: QueuePair<Rc, Reset>, attributes: &RtrAttributes) {
///     let _ = pair.into_rtr(attributes); // only from INIT
/// }
/// ```
///
/// ```compile_fail,E0599
/// use ring_verbs::{RemoteMemory, Request, Uc};
///
/// fn read_without_reliability(from: RemoteMemory) -> Request<Uc> {
///     Request::<Uc>::read(from) // only by RC
/// }
/// ```
///
/// ```compile_fail,E0382
/// use ring_verbs::{QueuePair, Rc, Request, Rts, Slab};
///
/// fn used_in_flight(pair: &mut QueuePair<Rc, Rts>, slab: Slab) {
///     let _ = pair.post(&Request::send(), slab);
///     assert_eq!(slab[0], 0); // the device has it
/// }
/// ```
pub struct QueuePair<T, S, B = Slab> {
    pair: Box<Pair<B>>,
    /// No value of them is held, so that they have no say in which threads it may go to.
    kind: PhantomData<fn() -> (T, S)>,
}

/// A request that takes longer than its deadline allows. The device still has it, and its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "request {} should have ended {late:?} ago; its completion brings the buffer back: at once where the queue pair is driven to error",
    .ticket.number()
)]
pub struct Overdue {
    /// Which post.
    pub ticket: Ticket,
    /// How long ago the deadline was.
    pub late: Duration,
}

/// All of a queue pair but its type.
struct Pair<B> {
    raw: NonNull<ibv_qp>,
    send: SendQueue<B>,
    receive: Receives<B>,
    /// What the pair was made with, from here on: dropped by hand, after the device has let the pair go.
    send_queue: ManuallyDrop<Arc<completion_queue::Shared<B>>>,
    receive_queue: ManuallyDrop<Arc<completion_queue::Shared<B>>>,
    domain: ManuallyDrop<Arc<Domain>>,
}

/// Where its receives come from.
#[allow(clippy::large_enum_variant, reason = "it lies in the pair's box, and most pairs have the large one")]
enum Receives<B> {
    /// Its own queue.
    Own(ReceiveQueue<B>),
    /// A queue that it shares with others, and holds.
    Shared(ManuallyDrop<Arc<shared_receive_queue::Shared<B>>>),
}

// SAFETY: the library's verbs can be called from any thread, and buffers can be sent.
unsafe impl<B: Send> Send for Pair<B> {}
// SAFETY: shared, it can be asked, which the library allows from several threads; only who has it alone posts.
unsafe impl<B: Send> Sync for Pair<B> {}

impl<T, S, B> QueuePair<T, S, B> {
    /// Its number, by which peers name it: 24 bits.
    pub fn number(&self) -> u32 {
        self.pair.number()
    }

    /// For calls that this crate does not have. It is destroyed when this is dropped.
    pub fn as_raw(&self) -> *mut ibv_qp {
        self.pair.raw.as_ptr()
    }

    /// Sends, writes, reads and atomics that have not been seen to end.
    pub fn sends_in_flight(&self) -> u32 {
        self.pair.send.in_flight()
    }

    /// Receives of its own queue that have not been seen to end.
    pub fn receives_in_flight(&self) -> u32 {
        match &self.pair.receive {
            Receives::Own(queue) => queue.in_flight(),
            Receives::Shared(_) => 0,
        }
    }

    /// Bytes that a request can carry itself: what the device gave, at least what was asked for.
    pub fn max_inline(&self) -> u32 {
        self.pair.send.max_inline()
    }

    /// A request, [posted with a deadline](QueuePair::post_by), that has not been seen to end by it. Each is told once.
    pub fn overdue(&mut self) -> Option<Overdue> {
        let timed = self.pair.send.overdue()?;
        Some(Overdue { ticket: timed.ticket, late: timed.deadline.late().unwrap_or_default() })
    }

    /// The state that the device has it in, which is the error state after a failure.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn state(&self) -> Result<QpState, Error> {
        Ok(self.pair.query(QpAttrMask::STATE)?.qp_state)
    }

    /// Whether data that the peer writes into memory here arrives in the order of its addresses, and that of one request
    /// after that of the one before, so that a word written last can be polled for; none where the library cannot tell.
    /// Never rely on it where memory is registered with `RELAXED_ORDERING`.
    pub fn writes_arrive_in_order(&self) -> Option<bool> {
        let query = self.pair.domain.open.functions.ibv_query_qp_data_in_order?;
        // SAFETY: the pair is there.
        Some(unsafe { query(self.as_raw(), WrOpcode::RDMA_WRITE, 0) } != 0)
    }

    /// What the device says of it: its state, its way, the MTU and how much it holds; other fields may be 0.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn attributes(&self) -> Result<ibv_qp_attr, Error> {
        let mask = QpAttrMask::STATE | QpAttrMask::AV | QpAttrMask::PATH_MTU | QpAttrMask::CAP;
        self.pair.query(mask)
    }
}

impl<B> Pair<B> {
    fn number(&self) -> u32 {
        // SAFETY: the pair is there, and nobody writes this.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    fn query(&self, mask: QpAttrMask) -> Result<ibv_qp_attr, Error> {
        let mut attributes = ibv_qp_attr::default();
        let mut init = ibv_qp_init_attr::default();
        let query = self.domain.open.functions.ibv_query_qp;
        // SAFETY: the pair is there, and both can be written.
        let returned = unsafe { query(self.raw.as_ptr(), &raw mut attributes, mask, &raw mut init) };
        Errno::check(returned).map_err(|errno| Error::of(Operation::QueryQueuePair, errno))?;
        Ok(attributes)
    }

    fn modify(&mut self, attributes: &mut ibv_qp_attr, mask: QpAttrMask) -> Result<(), Error> {
        let modify = self.domain.open.functions.ibv_modify_qp;
        // SAFETY: the pair is there, and so are the attributes that the mask names.
        let returned = unsafe { modify(self.raw.as_ptr(), attributes, mask) };
        let operation = Operation::Modify(attributes.qp_state);
        Errno::check(returned).map_err(|errno| Error::of(operation, errno))
    }

    /// Leaves what is in flight to the completion queues: the device has none of it any more.
    fn leave(&mut self) {
        self.send.leave();
        self.send_queue.say_left(1);
        match &self.receive {
            Receives::Own(queue) => {
                queue.leave();
                self.receive_queue.say_left(1);
            }
            Receives::Shared(queue) => self.receive_queue.leave_shared(queue.flight().key()),
        }
    }

    /// Begins anew. What is in flight is left to the completion queues, and other flights take the place of those that
    /// have any.
    fn reset(&mut self, attributes: &mut ibv_qp_attr) -> Result<(), Error> {
        let number = self.number();
        let sends = (self.send.in_flight() > 0)
            .then(|| Claim::new(&self.send_queue, self.send.depth()))
            .transpose()?;
        let receives = match &self.receive {
            Receives::Own(queue) if queue.in_flight() > 0 => {
                Some(Claim::new(&self.receive_queue, queue.depth())?)
            }
            _ => None,
        };
        let sends = sends.map(|claim| claim.enter(number)).transpose()?;
        let receives = receives.map(|claim| claim.enter(number)).transpose()?;
        self.modify(attributes, QpAttrMask::STATE)?;
        if let Some(entered) = sends {
            // SAFETY: the flight is new, and the device has forgotten what is in the old one.
            unsafe { self.send.renew(entered.take()) };
            self.send_queue.say_left(1);
        }
        if let (Some(entered), Receives::Own(queue)) = (receives, &mut self.receive) {
            // SAFETY: as above.
            unsafe { queue.renew(entered.take()) };
            self.receive_queue.say_left(1);
        }
        Ok(())
    }
}

impl<B> Drop for Pair<B> {
    fn drop(&mut self) {
        let open = &self.domain.open;
        // SAFETY: the pair is there, and this is called once.
        if !open.is_ours() || unsafe { (open.functions.ibv_destroy_qp)(self.raw.as_ptr()) } != 0 {
            // The device has the buffers, for ever: so the queues that keep them stay, and the domain.
            return;
        }
        self.leave();
        // SAFETY: this is the drop, and none of them is used after it.
        unsafe { ManuallyDrop::drop(&mut self.send_queue) };
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.receive_queue) };
        if let Receives::Shared(queue) = &mut self.receive {
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(queue) };
        }
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.domain) };
    }
}

impl<T: Transport, S: State, B> fmt::Debug for QueuePair<T, S, B> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("QueuePair")
            .field("number", &self.number())
            .field("transport", &T::TYPE)
            .field("driven_to", &S::STATE)
            .field("sends_in_flight", &self.sends_in_flight())
            .field("receives_in_flight", &self.receives_in_flight())
            .finish()
    }
}
