//! Requests, made once and posted many times.
//!
//! # Safety
//!
//! A request for a datagram holds the address handle that it names. The library's form of a request is written to
//! through a shared reference, by one post at a time: a request is not shared between threads.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;

use super::kinds::{Connected, Rc, Transport, Ud};
use super::posted::Posted;
use crate::address::AddressHandle;
use crate::completion::Opcode;
use crate::memory::RemoteMemory;
use crate::sys::{
    SendFlags, WrOpcode, ibv_send_wr, ibv_send_wr_atomic, ibv_send_wr_imm, ibv_send_wr_rdma, ibv_send_wr_ud,
    ibv_send_wr_wr,
};

/// What is to be done, but for the buffer. Of a kind that the transport `T` can do.
///
/// It is prepared once, in the library's form, and posted many times: a post adds the buffer's pieces and its number.
///
/// ```
/// use ring_verbs::{Rc, RemoteMemory, Request};
///
/// let memory = RemoteMemory { address: 0x1000, bytes: 4096, key: 7 };
/// let mut request = Request::<Rc>::write(memory).signaled();
/// request.set_remote(RemoteMemory { address: 0x2000, ..memory }); // and post it again
/// ```
pub struct Request<T> {
    wr: UnsafeCell<ibv_send_wr>,
    /// Those of each post; in `wr` stand those of the last one.
    flags: SendFlags,
    posted: Posted,
    transport: PhantomData<T>,
}

// SAFETY: the raw parts are numbers, a pointer to what `posted` owns, and to pieces of a post that has returned.
unsafe impl<T> Send for Request<T> {}

impl<T: Transport> Request<T> {
    fn new(code: WrOpcode, opcode: Opcode) -> Self {
        let wr = ibv_send_wr { opcode: code, ..ibv_send_wr::default() };
        Self {
            wr: UnsafeCell::new(wr),
            flags: SendFlags::empty(),
            posted: Posted::new(opcode),
            transport: PhantomData,
        }
    }

    fn with_flag(mut self, flag: SendFlags) -> Self {
        self.flags |= flag;
        self
    }

    fn with_immediate(mut self, code: WrOpcode, immediate: u32) -> Self {
        let wr = self.wr.get_mut();
        wr.imm = ibv_send_wr_imm { imm_data: immediate.to_be() };
        wr.opcode = code;
        self
    }

    /// Has the receiver's completion wake it, where it waits for solicited ones only. Without effect on writes without
    /// an immediate value, reads and atomics.
    pub fn solicited(self) -> Self {
        self.with_flag(SendFlags::SOLICITED)
    }

    /// Has a completion of its own, whatever [`signal_every`](super::QueuePairOptions::signal_every) says.
    pub fn signaled(self) -> Self {
        self.with_flag(SendFlags::SIGNALED)
    }
}

impl<T: Connected> Request<T> {
    /// The buffer, to one that the peer has posted.
    pub fn send() -> Self {
        Self::new(WrOpcode::SEND, Opcode::Send)
    }

    /// As [`Self::send`], with a value that comes with the receiver's completion.
    pub fn send_with_immediate(immediate: u32) -> Self {
        Self::send().with_immediate(WrOpcode::SEND_WITH_IMM, immediate)
    }

    /// The buffer, into the peer's memory from the start of `to` on. The peer is not told.
    pub fn write(to: RemoteMemory) -> Self {
        let mut request = Self::new(WrOpcode::RDMA_WRITE, Opcode::Write);
        request.set_remote(to);
        request
    }

    /// As [`Self::write`]; then the peer is told, by a completion of one of its receives.
    pub fn write_with_immediate(to: RemoteMemory, immediate: u32) -> Self {
        let code = WrOpcode::RDMA_WRITE_WITH_IMM;
        let mut request = Self::new(code, Opcode::WriteWithImmediate).with_immediate(code, immediate);
        request.set_remote(to);
        request
    }

    /// Names other memory of the peer's, for a write or a read. Without effect on a send.
    #[inline(always)]
    pub fn set_remote(&mut self, remote: RemoteMemory) {
        match self.posted.opcode() {
            Opcode::Write | Opcode::WriteWithImmediate | Opcode::Read => {
                let rdma = ibv_send_wr_rdma { remote_addr: remote.address, rkey: remote.key };
                self.wr.get_mut().wr = ibv_send_wr_wr { rdma };
            }
            _ => {}
        }
    }
}

impl Request<Rc> {
    /// The peer's memory from the start of `from` on, into the buffer, which it fills.
    pub fn read(from: RemoteMemory) -> Self {
        let mut request = Self::new(WrOpcode::RDMA_READ, Opcode::Read);
        request.set_remote(from);
        request
    }

    /// The word at the start of `at` becomes `new` if it is `expected`; what it was comes into the buffer, of 8 bytes,
    /// in this machine's order. The address is a multiple of 8.
    pub fn compare_and_swap(at: RemoteMemory, expected: u64, new: u64) -> Self {
        Self::atomic(WrOpcode::ATOMIC_CMP_AND_SWP, Opcode::CompareAndSwap, at, expected, new)
    }

    /// Adds to the word at the start of `at`; what it was comes into the buffer, of 8 bytes, in this machine's order.
    /// The address is a multiple of 8.
    pub fn fetch_and_add(at: RemoteMemory, addend: u64) -> Self {
        Self::atomic(WrOpcode::ATOMIC_FETCH_AND_ADD, Opcode::FetchAndAdd, at, addend, 0)
    }

    fn atomic(code: WrOpcode, opcode: Opcode, at: RemoteMemory, compare_add: u64, swap: u64) -> Self {
        let mut request = Self::new(code, opcode);
        let atomic = ibv_send_wr_atomic { remote_addr: at.address, compare_add, swap, rkey: at.key };
        request.wr.get_mut().wr = ibv_send_wr_wr { atomic };
        request
    }

    /// Waits, in the device, for the reads and atomics posted before.
    pub fn fenced(self) -> Self {
        self.with_flag(SendFlags::FENCE)
    }
}

impl Request<Ud> {
    /// A datagram, to the queue pair of a number, which takes it if `key` is its own.
    pub fn send_to(handle: &AddressHandle, queue_pair: u32, key: u32) -> Self {
        let mut request = Self::new(WrOpcode::SEND, Opcode::Send);
        let ah = handle.handle.raw.as_ptr();
        request.wr.get_mut().wr =
            ibv_send_wr_wr { ud: ibv_send_wr_ud { ah, remote_qpn: queue_pair, remote_qkey: key } };
        request.posted = Posted::with_handle(Opcode::Send, Arc::clone(&handle.handle));
        request
    }

    /// As [`Self::send_to`], with a value that comes with the receiver's completion.
    pub fn send_to_with_immediate(handle: &AddressHandle, queue_pair: u32, key: u32, immediate: u32) -> Self {
        Self::send_to(handle, queue_pair, key).with_immediate(WrOpcode::SEND_WITH_IMM, immediate)
    }
}

impl<T> Request<T> {
    /// The library's form, to be completed by a post.
    #[inline(always)]
    pub(super) fn raw(&self) -> *mut ibv_send_wr {
        self.wr.get()
    }

    #[inline(always)]
    pub(super) fn flags(&self) -> SendFlags {
        self.flags
    }

    #[inline(always)]
    pub(super) fn posted(&self) -> &Posted {
        &self.posted
    }

    pub(super) fn opcode(&self) -> Opcode {
        self.posted.opcode()
    }

    fn copy(&self) -> ibv_send_wr {
        // SAFETY: a post has borrowed this if anybody writes to it, and none is under way in this thread.
        unsafe { *self.wr.get() }
    }
}

impl<T> Clone for Request<T> {
    fn clone(&self) -> Self {
        let wr = UnsafeCell::new(self.copy());
        Self { wr, flags: self.flags, posted: self.posted.clone(), transport: PhantomData }
    }
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Request").field("opcode", &self.posted).field("flags", &self.flags).finish()
    }
}
