//! Requests that are built by calls, in the device's own form, between a start and a completion of the batch.
//!
//! # Safety
//!
//! The queue pair is that of the send queue that has this, and was made for all operations of its transport. Between
//! start and completion nothing else is called, since drivers hold a lock there.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::ptr::NonNull;

use super::send::Link;
use crate::sys::{self, QpSendOpsFlags, QpType, SendFlags, WrOpcode, ibv_qp_ex, ibv_send_wr};

/// How requests go to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Posting {
    /// By calls, where the driver has them and they are sound, and else as a list.
    #[default]
    Auto,
    /// As a list of work requests, which every driver takes: `ibv_post_send`.
    List,
    /// By calls: `ibv_wr_start` to `ibv_wr_complete`. A queue pair of a driver without them is refused.
    Calls,
}

/// A queue pair that takes requests by calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Direct {
    raw: NonNull<ibv_qp_ex>,
    is_datagram: bool,
    /// Not soft-RoCE's, which before version 64 of the library writes a wrong length for requests of several pieces, and
    /// which may have queued what it says to have failed.
    is_sound: bool,
}

/// The operations of a transport.
pub(super) fn operations(transport: QpType) -> QpSendOpsFlags {
    let sends = QpSendOpsFlags::SEND | QpSendOpsFlags::SEND_WITH_IMM;
    let writes = QpSendOpsFlags::RDMA_WRITE | QpSendOpsFlags::RDMA_WRITE_WITH_IMM;
    let rest =
        QpSendOpsFlags::RDMA_READ | QpSendOpsFlags::ATOMIC_CMP_AND_SWP | QpSendOpsFlags::ATOMIC_FETCH_AND_ADD;
    match transport {
        QpType::RC => sends | writes | rest,
        QpType::UC => sends | writes,
        _ => sends,
    }
}

impl Direct {
    pub(super) fn new(raw: NonNull<ibv_qp_ex>, transport: QpType, is_sound: bool) -> Self {
        Self { raw, is_datagram: transport == QpType::UD, is_sound }
    }

    #[inline(always)]
    pub(super) fn is_sound(self) -> bool {
        self.is_sound
    }

    /// Whether all of these can go this way.
    #[inline(always)]
    pub(super) fn takes(self, links: &[Link]) -> bool {
        self.is_sound || links.iter().all(|link| link.wr.num_sge <= 1)
    }

    /// Posts them, all or none; 0, or the error number.
    ///
    /// # Safety
    ///
    /// The queue pair is there, and so are the pieces.
    pub(super) unsafe fn post(self, links: &[Link]) -> c_int {
        let raw = self.raw.as_ptr();
        // SAFETY: the caller's promise: the queue pair is there.
        unsafe { sys::wr_start(raw) };
        for link in links {
            // SAFETY: a batch was begun.
            unsafe { self.begin(&link.wr) };
            // SAFETY: a request was begun, and its pieces are there.
            unsafe { self.add_pieces(link) };
        }
        // SAFETY: a batch was begun.
        unsafe { sys::wr_complete(raw) }
    }

    /// Begins a request. An operation that the driver lacks is none of those that the queue pair was made for.
    ///
    /// # Safety
    ///
    /// A batch was begun.
    unsafe fn begin(self, wr: &ibv_send_wr) {
        let raw = self.raw.as_ptr();
        // SAFETY: the queue pair is there.
        unsafe { (*raw).wr_id = wr.wr_id };
        // SAFETY: as above. That bytes are copied is said by the call that copies them too, but soft-RoCE wants the flag.
        unsafe { (*raw).wr_flags = wr.send_flags };
        let immediate = wr.imm.bits();
        match wr.opcode {
            WrOpcode::SEND => {
                // SAFETY: a batch was begun.
                unsafe { sys::wr_send(raw) };
            }
            WrOpcode::SEND_WITH_IMM => {
                // SAFETY: as above.
                unsafe { sys::wr_send_imm(raw, immediate) };
            }
            WrOpcode::ATOMIC_CMP_AND_SWP | WrOpcode::ATOMIC_FETCH_AND_ADD => {
                // SAFETY: requests of these kinds have this member.
                let atomic = unsafe { wr.wr.atomic };
                let (key, at) = (atomic.rkey, atomic.remote_addr);
                if wr.opcode == WrOpcode::ATOMIC_FETCH_AND_ADD {
                    // SAFETY: a batch was begun.
                    unsafe { sys::wr_atomic_fetch_add(raw, key, at, atomic.compare_add) };
                } else {
                    // SAFETY: as above.
                    unsafe { sys::wr_atomic_cmp_swp(raw, key, at, atomic.compare_add, atomic.swap) };
                }
            }
            _ => {
                // SAFETY: what is left are writes and reads, which have this member.
                let rdma = unsafe { wr.wr.rdma };
                let (key, at) = (rdma.rkey, rdma.remote_addr);
                match wr.opcode {
                    // SAFETY: a batch was begun.
                    WrOpcode::RDMA_WRITE => unsafe { sys::wr_rdma_write(raw, key, at) },
                    // SAFETY: as above.
                    WrOpcode::RDMA_WRITE_WITH_IMM => unsafe {
                        sys::wr_rdma_write_imm(raw, key, at, immediate)
                    },
                    // SAFETY: as above.
                    _ => unsafe { sys::wr_rdma_read(raw, key, at) },
                };
            }
        }
    }

    /// # Safety
    ///
    /// A request was begun.
    unsafe fn add_pieces(self, link: &Link) {
        let raw = self.raw.as_ptr();
        if self.is_datagram {
            // SAFETY: requests for datagrams have this member.
            let ud = unsafe { link.wr.wr.ud };
            // SAFETY: a request was begun.
            unsafe { sys::wr_set_ud_addr(raw, ud.ah, ud.remote_qpn, ud.remote_qkey) };
        }
        let pieces = link.pieces();
        match *pieces {
            [piece] if link.wr.send_flags.contains(SendFlags::INLINE) => {
                let at = core::ptr::with_exposed_provenance_mut(usize::try_from(piece.addr).unwrap_or(0));
                // SAFETY: a request was begun, and the bytes are there.
                unsafe { sys::wr_set_inline_data(raw, at, piece.length as usize) };
            }
            [piece] => {
                // SAFETY: a request was begun.
                unsafe { sys::wr_set_sge(raw, piece.lkey, piece.addr, piece.length) };
            }
            _ => {
                // SAFETY: a request was begun, and the pieces are there.
                unsafe { sys::wr_set_sge_list(raw, pieces.len(), pieces.as_ptr()) };
            }
        }
    }
}
