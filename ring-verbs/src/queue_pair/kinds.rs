//! What a queue pair's type says: its transport, and the state that it was driven to.

use crate::sys::{QpAttrMask, QpState, QpType};

mod sealed {
    pub trait Sealed {}
}

/// A transport service.
pub trait Transport: sealed::Sealed + 'static {
    #[doc(hidden)]
    const TYPE: QpType;
}

/// A transport with one peer: reliable or unreliable connection.
pub trait Connected: Transport {
    /// What it needs to receive, beside the way, the MTU and the peer's numbers.
    #[doc(hidden)]
    const TO_RECEIVE: QpAttrMask;
    /// What it needs to send, beside the number of its first packet.
    #[doc(hidden)]
    const TO_SEND: QpAttrMask;
}

/// Reliable connection: everything arrives once and in order, or the queue pair fails.
#[derive(Debug, Clone, Copy)]
pub struct Rc;

/// Unreliable connection: sends and writes that may be lost, whole.
#[derive(Debug, Clone, Copy)]
pub struct Uc;

/// Unreliable datagram: sends of one packet to anybody.
#[derive(Debug, Clone, Copy)]
pub struct Ud;

/// The state that a queue pair was driven to. The device may have put it into the error state since.
pub trait State: sealed::Sealed + 'static {
    #[doc(hidden)]
    const STATE: QpState;
}

/// A state in which receives can be posted.
pub trait CanReceive: State {}

/// Made, and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Reset;

/// Has a port and rights; receives can be posted.
#[derive(Debug, Clone, Copy)]
pub struct Init;

/// Ready to receive.
#[derive(Debug, Clone, Copy)]
pub struct Rtr;

/// Ready to send.
#[derive(Debug, Clone, Copy)]
pub struct Rts;

/// Stopped: what was in flight comes back as flushed.
#[derive(Debug, Clone, Copy)]
pub struct Errored;

macro_rules! kinds {
    ($trait:ident, $constant:ident: $type:ident; $($name:ident = $value:ident),*) => {
        $(impl sealed::Sealed for $name {}
        impl $trait for $name {
            const $constant: $type = $type::$value;
        })*
    };
}

kinds!(Transport, TYPE: QpType; Rc = RC, Uc = UC, Ud = UD);
kinds!(State, STATE: QpState; Reset = RESET, Init = INIT, Rtr = RTR, Rts = RTS, Errored = ERR);

impl Connected for Rc {
    const TO_RECEIVE: QpAttrMask = QpAttrMask::MAX_DEST_RD_ATOMIC.union(QpAttrMask::MIN_RNR_TIMER);
    const TO_SEND: QpAttrMask = QpAttrMask::MAX_QP_RD_ATOMIC
        .union(QpAttrMask::RETRY_CNT)
        .union(QpAttrMask::RNR_RETRY)
        .union(QpAttrMask::TIMEOUT);
}

impl Connected for Uc {
    const TO_RECEIVE: QpAttrMask = QpAttrMask::empty();
    const TO_SEND: QpAttrMask = QpAttrMask::empty();
}

impl CanReceive for Init {}
impl CanReceive for Rtr {}
impl CanReceive for Rts {}
