//! Driving a queue pair from state to state.

use core::marker::PhantomData;

use super::QueuePair;
use super::kinds::{Connected, Errored, Init, Reset, Rtr, Rts, Transport, Ud};
use crate::address::Route;
use crate::error::Error;
use crate::sys::{AccessFlags, Mtu, QpAttrMask, QpState, ibv_qp_attr};
use crate::timing::{AckTimeout, Retries, RnrTimer};

/// A queue pair in the state `To`, or the one that was in `From` and why it stays there.
pub(crate) type Driven<T, From, To, B> = Result<QueuePair<T, To, B>, TransitionError<QueuePair<T, From, B>>>;

impl<T, S, B> QueuePair<T, S, B> {
    /// Has the device change its state; the mask names the other attributes that are set.
    fn drive<To>(mut self, attributes: &mut ibv_qp_attr, mask: QpAttrMask) -> Driven<T, S, To, B> {
        match self.pair.modify(attributes, mask | QpAttrMask::STATE) {
            Ok(()) => Ok(QueuePair { pair: self.pair, kind: PhantomData }),
            Err(error) => Err(TransitionError { queue_pair: self, error }),
        }
    }
}

/// What a queue pair of a connection needs to be initialised.
#[derive(Debug, Clone)]
pub struct InitAttributes {
    port: u8,
    partition: u16,
    access: AccessFlags,
}

impl InitAttributes {
    /// On a port, in the partition at index 0, without rights for the peer.
    pub fn new(port: u8) -> Self {
        Self { port, partition: 0, access: AccessFlags::empty() }
    }

    /// The index of its partition in the port's table. By default 0.
    pub fn partition_index(mut self, index: u16) -> Self {
        self.partition = index;
        self
    }

    /// What the peer may do through it, with memory that allows the same: `REMOTE_WRITE`, `REMOTE_READ`,
    /// `REMOTE_ATOMIC`. By default nothing.
    pub fn access(mut self, access: AccessFlags) -> Self {
        self.access = access;
        self
    }
}

impl<T: Connected, B> QueuePair<T, Reset, B> {
    /// Gives it a port, and the peer rights. Receives can be posted then.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair: EINVAL for a port or an index that is not there.
    pub fn into_init(self, to: &InitAttributes) -> Driven<T, Reset, Init, B> {
        let mut raw = ibv_qp_attr {
            qp_state: QpState::INIT,
            port_num: to.port,
            pkey_index: to.partition,
            qp_access_flags: to.access,
            ..ibv_qp_attr::default()
        };
        self.drive(&mut raw, QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::ACCESS_FLAGS)
    }
}

/// What a queue pair of a connection has to know of its peer to receive.
#[derive(Debug, Clone)]
pub struct RtrAttributes {
    route: Route,
    mtu: Mtu,
    queue_pair: u32,
    packet_number: u32,
    reads: u8,
    timer: RnrTimer,
}

impl RtrAttributes {
    /// The way to the peer, what a packet carries (the smaller of both ports), the peer's queue pair, and the number of
    /// its first packet: 24 bits, of its choice.
    pub fn new(route: Route, mtu: Mtu, queue_pair: u32, packet_number: u32) -> Self {
        Self {
            route,
            mtu,
            queue_pair,
            packet_number: packet_number & 0xff_ffff,
            reads: 1,
            timer: RnrTimer::default(),
        }
    }

    /// Reads and atomics of the peer's that are served at a time; the peer's [`RtsAttributes::reads`] is not more. By
    /// default 1. Unreliable connections have none.
    pub fn reads(mut self, reads: u8) -> Self {
        self.reads = reads;
        self
    }

    /// How long the peer waits before it tries again, where no buffer is posted. By default 0.64 ms. Unreliable
    /// connections lose the message.
    pub fn receiver_not_ready(mut self, timer: RnrTimer) -> Self {
        self.timer = timer;
        self
    }

    fn to_raw(&self) -> (ibv_qp_attr, QpAttrMask) {
        let raw = ibv_qp_attr {
            qp_state: QpState::RTR,
            ah_attr: self.route.to_raw(),
            path_mtu: self.mtu,
            dest_qp_num: self.queue_pair,
            rq_psn: self.packet_number,
            max_dest_rd_atomic: self.reads,
            min_rnr_timer: self.timer.encoding(),
            ..ibv_qp_attr::default()
        };
        let mask = QpAttrMask::AV | QpAttrMask::PATH_MTU | QpAttrMask::DEST_QPN | QpAttrMask::RQ_PSN;
        (raw, mask)
    }
}

/// What a queue pair of a connection needs to send.
#[derive(Debug, Clone)]
pub struct RtsAttributes {
    packet_number: u32,
    reads: u8,
    timeout: AckTimeout,
    retries: Retries,
    receiver_not_ready: Retries,
}

impl RtsAttributes {
    /// The number of the first packet: 24 bits, best chosen at random, and what the peer was told.
    pub fn new(packet_number: u32) -> Self {
        Self {
            packet_number: packet_number & 0xff_ffff,
            reads: 1,
            timeout: AckTimeout::default(),
            retries: Retries::Times(6),
            receiver_not_ready: Retries::Forever,
        }
    }

    /// Reads and atomics that are under way at a time; the peer's [`RtrAttributes::reads`] is not less. By default 1.
    pub fn reads(mut self, reads: u8) -> Self {
        self.reads = reads;
        self
    }

    /// How long an acknowledgement may take. By default 67.1 ms.
    pub fn timeout(mut self, timeout: AckTimeout) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often it is sent again where no acknowledgement comes. By default 6 times.
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// How often it is sent again where the peer has posted no buffer. By default for ever.
    pub fn receiver_not_ready(mut self, retries: Retries) -> Self {
        self.receiver_not_ready = retries;
        self
    }

    fn to_raw(&self) -> (ibv_qp_attr, QpAttrMask) {
        let raw = ibv_qp_attr {
            qp_state: QpState::RTS,
            sq_psn: self.packet_number,
            max_rd_atomic: self.reads,
            timeout: self.timeout.encoding(),
            retry_cnt: self.retries.encoding(),
            rnr_retry: self.receiver_not_ready.encoding(),
            ..ibv_qp_attr::default()
        };
        (raw, QpAttrMask::SQ_PSN)
    }
}

impl<T: Connected, B> QueuePair<T, Init, B> {
    /// Connects it, so that it receives. An unreliable connection uses neither [`RtrAttributes::reads`] nor the timer.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair: EINVAL for an attribute out of range, ENETUNREACH or ETIMEDOUT where
    /// there is no way to the peer.
    pub fn into_rtr(self, to: &RtrAttributes) -> Driven<T, Init, Rtr, B> {
        let (mut raw, mask) = to.to_raw();
        self.drive(&mut raw, mask | T::TO_RECEIVE)
    }
}

impl<T: Connected, B> QueuePair<T, Rtr, B> {
    /// Has it send as well. An unreliable connection uses the packet number only.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair: EINVAL for an attribute out of range.
    pub fn into_rts(self, to: &RtsAttributes) -> Driven<T, Rtr, Rts, B> {
        let (mut raw, mask) = to.to_raw();
        self.drive(&mut raw, mask | T::TO_SEND)
    }
}

impl<B> QueuePair<Ud, Reset, B> {
    /// Gives it a port, and the partition at index 0. Datagrams are taken only with this `key`.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair: EINVAL for a port that is not there.
    pub fn into_init(self, port: u8, key: u32) -> Driven<Ud, Reset, Init, B> {
        let mut raw =
            ibv_qp_attr { qp_state: QpState::INIT, port_num: port, qkey: key, ..ibv_qp_attr::default() };
        self.drive(&mut raw, QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY)
    }
}

impl<B> QueuePair<Ud, Init, B> {
    /// Has it receive.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair.
    pub fn into_rtr(self) -> Driven<Ud, Init, Rtr, B> {
        let mut raw = ibv_qp_attr { qp_state: QpState::RTR, ..ibv_qp_attr::default() };
        self.drive(&mut raw, QpAttrMask::empty())
    }
}

impl<B> QueuePair<Ud, Rtr, B> {
    /// Has it send as well.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair.
    pub fn into_rts(self) -> Driven<Ud, Rtr, Rts, B> {
        let mut raw = ibv_qp_attr { qp_state: QpState::RTS, ..ibv_qp_attr::default() };
        self.drive(&mut raw, QpAttrMask::SQ_PSN)
    }
}

impl<T: Transport, S, B> QueuePair<T, S, B> {
    /// Stops it. What is in flight comes out of the completion queues with `WR_FLUSH_ERR`, where the device has not
    /// done it already: poll until nothing is [in flight](QueuePair::sends_in_flight). From any state.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair.
    pub fn into_error(self) -> Driven<T, S, Errored, B> {
        let mut raw = ibv_qp_attr { qp_state: QpState::ERR, ..ibv_qp_attr::default() };
        self.drive(&mut raw, QpAttrMask::empty())
    }

    /// Begins anew, to be connected again. What is in flight comes out of the completion queues as discarded, without
    /// a word on whether it was done: drive it to [error](Self::into_error) and drain it first where that matters.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] with the queue pair; [`Error::CompletionQueueFull`] where something is in flight and a
    /// completion queue has no room for as much again.
    pub fn into_reset(mut self) -> Driven<T, S, Reset, B> {
        let mut raw = ibv_qp_attr { qp_state: QpState::RESET, ..ibv_qp_attr::default() };
        match self.pair.reset(&mut raw) {
            Ok(()) => Ok(QueuePair { pair: self.pair, kind: PhantomData }),
            Err(error) => Err(TransitionError { queue_pair: self, error }),
        }
    }
}

/// A state that a queue pair could not be driven to. It comes back, in the state that it was driven to before.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct TransitionError<Q> {
    /// As it was.
    pub queue_pair: Q,
    /// Why.
    pub error: Error,
}

impl<Q> From<TransitionError<Q>> for Error {
    fn from(failed: TransitionError<Q>) -> Self {
        failed.error
    }
}
