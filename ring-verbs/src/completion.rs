//! How a request ended.

use core::ffi::c_int;
use core::fmt;

use crate::Errno;
use crate::error::{Error, Operation};
use crate::flight::Entry;
use crate::queue_pair::Posted;
use crate::sys::{WcFlags, WcOpcode, WcStatus, ibv_wc};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Opcode {
    /// To a buffer that the peer has posted.
    Send = 0,
    /// Into the peer's memory.
    Write = 1,
    /// Into the peer's memory; the immediate value takes a buffer that the peer has posted.
    WriteWithImmediate = 2,
    /// Out of the peer's memory.
    Read = 3,
    /// A word of the peer's memory, exchanged if it has a value.
    CompareAndSwap = 4,
    /// A word of the peer's memory, added to.
    FetchAndAdd = 5,
    /// From a peer's send.
    Receive = 6,
    /// A peer has written into memory of ours, and this buffer was taken for the immediate value. It is as it was.
    ReceiveImmediateOfWrite = 7,
}

impl Opcode {
    /// The one of a number below 8: the numbers are [`Self`]'s own, in order.
    pub(crate) fn from_number(number: usize) -> Self {
        const ALL: [Opcode; 8] = [
            Opcode::Send,
            Opcode::Write,
            Opcode::WriteWithImmediate,
            Opcode::Read,
            Opcode::CompareAndSwap,
            Opcode::FetchAndAdd,
            Opcode::Receive,
            Opcode::ReceiveImmediateOfWrite,
        ];
        ALL[number % ALL.len()]
    }
}

/// Which post of its queue this was: counted from 0, for each queue pair's sends and receives apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

impl Ticket {
    /// The number of posts before it.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Who sent, where that is not the connection's peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    /// The sender's queue pair.
    pub queue_pair: u32,
    /// Whether the first 40 bytes of the buffer hold the packet's global header. (They are left free in any case.)
    pub has_global_header: bool,
    /// The sender's address in an InfiniBand subnet.
    pub lid: u16,
    /// What the packet had as service level.
    pub service_level: u8,
    /// Which of this port's addresses in an InfiniBand subnet it came to.
    pub path_bits: u8,
}

/// A request that has ended, and its buffer.
///
/// Of one that was [done](Self::result), with a completion of its own or by a later one's:
///
/// | [`opcode`](Self::opcode) | what is so |
/// |---|---|
/// | `Send`, `Write`, `WriteWithImmediate` | The buffer is as it was, and can be written to again. On a reliable connection the peer's device has taken the bytes, which is not to say that its program has seen them; else they have left. |
/// | `Read` | The buffer holds the peer's bytes, each as it was at some time between post and completion. |
/// | `CompareAndSwap`, `FetchAndAdd` | The first 8 bytes of the buffer hold what the word was before. |
/// | `Receive` | The first [`bytes`](Self::bytes) of the buffer hold the message. What the peer has written before it, by the same queue pair, is in this program's memory. |
/// | `ReceiveImmediateOfWrite` | The write that brought the value is in this program's memory, and so is what the peer has written before it, by the same queue pair. The buffer is as it was. |
///
/// A program that is written to learns of it by the latter two only, or by polling a word that is written last, where
/// [`writes_arrive_in_order`](crate::QueuePair::writes_arrive_in_order).
///
/// Of one that failed nothing can be said: what a read, an atomic or a receive was to fill may hold a part of it, or
/// anything; what was to be sent or written is as it was here, and may have come to the peer, whole or in part, or not at
/// all. The buffer can be used for something else.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion<B> {
    /// What was posted, back again. None where there was none: bytes that were copied into the request. Ask for the rest
    /// before it is moved out.
    pub buffer: Option<B>,
    /// An [`Opcode`], as a number: a poll copies words, and the accessors make values of them when asked. A field with a
    /// spare value would hold the tag of `Option<Completion>`, and be made in each poll.
    posted: usize,
    ticket: Ticket,
    queue_pair: u32,
    status: WcStatus,
    vendor_error: u32,
    /// The rest is of success, and as the device says it.
    opcode: WcOpcode,
    bytes: u32,
    flags: WcFlags,
    /// In network byte order.
    immediate: u32,
    source_pair: u32,
    source_lid: u16,
    service_level: u8,
    path_bits: u8,
    /// 0: none.
    timestamp: u64,
}

/// Of a request whose queue pair was destroyed: none of the device's.
const DISCARDED: WcStatus = WcStatus(u32::MAX);

impl<B> Completion<B> {
    /// Whether it was done. When not, the buffer's contents are anything.
    ///
    /// # Errors
    ///
    /// [`Failure`], with what to look at.
    #[inline(always)]
    pub fn result(&self) -> Result<(), Failure> {
        match self.status {
            WcStatus::SUCCESS => Ok(()),
            DISCARDED => Err(Failure::Discarded),
            status => Err(Failure::Device { status, vendor_error: self.vendor_error }),
        }
    }

    /// What it was to do.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        let is_immediate_only = self.is_receive() && self.opcode == WcOpcode::RECV_RDMA_WITH_IMM;
        if is_immediate_only { Opcode::ReceiveImmediateOfWrite } else { Opcode::from_number(self.posted) }
    }

    /// The number of the queue pair.
    #[inline]
    pub fn queue_pair(&self) -> u32 {
        self.queue_pair
    }

    /// Which post.
    #[inline]
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// How many bytes came into the buffer, by a receive or a read; of a datagram with the 40 bytes of its header. Of
    /// [`ReceiveImmediateOfWrite`](Opcode::ReceiveImmediateOfWrite) how many the peer wrote elsewhere. Of a read without a
    /// completion of its own 0, though it has filled its buffer, and of an atomic, which brings 8.
    #[inline]
    pub fn bytes(&self) -> u32 {
        let is_read = self.posted == Opcode::Read as usize;
        if self.is_receive() || self.is_done() && is_read { self.bytes } else { 0 }
    }

    /// What the peer passed beside the message.
    #[inline]
    pub fn immediate(&self) -> Option<u32> {
        (self.is_receive() && self.flags.contains(WcFlags::WITH_IMM)).then(|| u32::from_be(self.immediate))
    }

    /// The sender of a datagram.
    #[inline]
    pub fn source(&self) -> Option<Source> {
        (self.is_receive() && self.source_pair != 0).then(|| Source {
            queue_pair: self.source_pair,
            has_global_header: self.flags.contains(WcFlags::GRH),
            lid: self.source_lid,
            service_level: self.service_level,
            path_bits: self.path_bits,
        })
    }

    /// When the device saw it, by the clock that the completion queue was made with; none where it was made without, for
    /// a failure, and for a request without a completion of its own.
    #[inline]
    pub fn timestamp(&self) -> Option<u64> {
        (self.is_done() && self.timestamp != 0).then_some(self.timestamp)
    }

    #[inline(always)]
    fn is_done(&self) -> bool {
        self.status == WcStatus::SUCCESS
    }

    /// Whether a message came.
    #[inline(always)]
    fn is_receive(&self) -> bool {
        self.is_done() && self.posted == Opcode::Receive as usize
    }

    /// One that the device says has ended.
    #[inline(always)]
    pub(crate) fn ended(wc: &ibv_wc, entry: Entry<B, Posted>, position: u64, timestamp: u64) -> Self {
        Self {
            buffer: entry.buffer,
            posted: entry.operation.number(),
            ticket: Ticket(position),
            queue_pair: wc.qp_num,
            status: wc.status,
            vendor_error: wc.vendor_err,
            opcode: wc.opcode,
            bytes: wc.byte_len,
            flags: wc.wc_flags,
            immediate: wc.imm.bits(),
            source_pair: wc.src_qp,
            source_lid: wc.slid,
            service_level: wc.sl,
            path_bits: wc.dlid_path_bits,
            timestamp,
        }
    }

    /// One that asked for no completion of its own, and is done, since a later one has ended.
    #[inline(always)]
    pub(crate) fn implied(entry: Entry<B, Posted>, queue_pair: u32, position: u64) -> Self {
        // Receives each have a completion of their own: one that was passed over tells nothing of its buffer.
        let is_receive = entry.operation.number() == Opcode::Receive as usize;
        let status = if is_receive { DISCARDED } else { WcStatus::SUCCESS };
        let wc = ibv_wc { status, qp_num: queue_pair, ..ibv_wc::default() };
        Self::ended(&wc, entry, position, 0)
    }

    /// One whose queue pair was destroyed.
    pub(crate) fn discarded(entry: Entry<B, Posted>, queue_pair: u32, position: u64) -> Self {
        let wc = ibv_wc { status: DISCARDED, qp_num: queue_pair, ..ibv_wc::default() };
        Self::ended(&wc, entry, position, 0)
    }
}

/// Why a completion queue gives nothing: the device is gone or broken, or the queue has overflowed and is lost. What is in
/// flight comes back when its queue pair is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", Error::from(*self))]
pub struct PollError(isize);

impl PollError {
    pub(crate) fn new(errno: Errno) -> Self {
        Self(errno.0 as isize)
    }

    /// What the driver says.
    pub fn errno(self) -> Errno {
        Errno(c_int::try_from(self.0).unwrap_or(libc::EIO))
    }
}

impl From<PollError> for Error {
    fn from(error: PollError) -> Self {
        Self::of(Operation::Poll, error.errno())
    }
}

/// Why a request was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The device says so.
    Device {
        /// Why.
        status: WcStatus,
        /// What the device's maker knows more about it.
        vendor_error: u32,
    },
    /// Its queue pair was destroyed before the device said anything: it may have been done or not.
    Discarded,
}

impl Failure {
    /// What the device says, where it says anything.
    pub fn status(self) -> Option<WcStatus> {
        match self {
            Self::Device { status, .. } => Some(status),
            Self::Discarded => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { status, vendor_error } => {
                write!(to, "{status:?} (vendor {vendor_error:#x}): {}", explanation(*status))
            }
            Self::Discarded => to.write_str("the queue pair was destroyed while the request was in flight"),
        }
    }
}

impl core::error::Error for Failure {}

/// What it means, and what to look at.
fn explanation(status: WcStatus) -> &'static str {
    match status {
        WcStatus::LOC_LEN_ERR => {
            "the message is longer than the buffers posted for it, or than the port's limit"
        }
        WcStatus::LOC_QP_OP_ERR => "the request names memory that its protection domain does not have",
        WcStatus::LOC_PROT_ERR => {
            "a local piece lies beyond its region, or the region lacks a right (a read or a receive needs LOCAL_WRITE)"
        }
        WcStatus::WR_FLUSH_ERR => {
            "an earlier error stopped the queue pair: the first failure says why, or the peer's, whose request was wrong"
        }
        WcStatus::REM_INV_REQ_ERR => {
            "the peer's queue pair does not allow this, or its buffer is too short: see its access flags"
        }
        WcStatus::REM_ACCESS_ERR => {
            "the peer's memory cannot be reached so: a wrong key, a wrong range, or a right that its region lacks"
        }
        WcStatus::REM_OP_ERR => "the peer could not do it: its buffer is too short, or its memory is gone",
        WcStatus::RETRY_EXC_ERR => {
            "the peer does not answer: is it gone, is its queue pair ready, does the network carry packets of this size?"
        }
        WcStatus::RNR_RETRY_EXC_ERR => "the peer has posted no buffer in time",
        WcStatus::LOC_ACCESS_ERR => "a message with an immediate value met a buffer that may not be written",
        WcStatus::FATAL_ERR => "the device is broken",
        _ => status.description(),
    }
}
