//! What is posted.

use core::ffi::{c_int, c_void};

use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{SendFlags, WrOpcode, ibv_ah, ibv_mw, ibv_mw_bind_info};

/// A piece of a message, in a memory region.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ibv_sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

const_assert_eq!(size_of::<ibv_sge>(), 16);

/// A piece of a message that is copied when it is posted.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_data_buf {
    pub addr: *mut c_void,
    pub length: usize,
}

/// What a send request carries, by its opcode.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_imm {
    /// In network byte order.
    pub imm_data: u32,
    pub invalidate_rkey: u32,
}

/// Where the other side's memory is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_send_wr_rdma {
    pub remote_addr: u64,
    pub rkey: u32,
}

/// Where the other side's 8 bytes are, and what happens to them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_send_wr_atomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

/// Whom a datagram goes to.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_send_wr_ud {
    pub ah: *mut ibv_ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

/// What a send request needs, by its opcode and by the transport.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_wr {
    pub rdma: ibv_send_wr_rdma,
    pub atomic: ibv_send_wr_atomic,
    pub ud: ibv_send_wr_ud,
}

const_assert_eq!(size_of::<ibv_send_wr_wr>(), 32);

/// Which shared receive queue a message goes to, of an extended connection.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_send_wr_xrc {
    pub remote_srqn: u32,
}

/// What the transport needs.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_qp_type {
    pub xrc: ibv_send_wr_xrc,
}

/// Which memory window is bound to what.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_send_wr_bind_mw {
    pub mw: *mut ibv_mw,
    pub rkey: u32,
    pub bind_info: ibv_mw_bind_info,
}

/// The header of a packet that the device cuts into pieces.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_send_wr_tso {
    pub hdr: *mut c_void,
    pub hdr_sz: u16,
    pub mss: u16,
}

/// What the rarer opcodes need.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_bind_or_tso {
    pub bind_mw: ibv_send_wr_bind_mw,
    pub tso: ibv_send_wr_tso,
}

/// A send request, one of a list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr {
    pub wr_id: u64,
    pub next: *mut ibv_send_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
    pub opcode: WrOpcode,
    pub send_flags: SendFlags,
    pub imm: ibv_send_wr_imm,
    pub wr: ibv_send_wr_wr,
    pub qp_type: ibv_send_wr_qp_type,
    pub bind_or_tso: ibv_send_wr_bind_or_tso,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_send_wr>(), 128);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_send_wr, wr), 40);

/// A receive request, one of a list.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_recv_wr {
    pub wr_id: u64,
    pub next: *mut ibv_recv_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_recv_wr>(), 32);
