//! Safe reads of the unions whose members are all integers.
//!
//! # Safety
//!
//! Each member of these unions covers all of it, and takes any bits: whichever was written, each can be read.
#![allow(unsafe_code)]

use core::fmt;

use super::{ibv_gid, ibv_send_wr_imm, ibv_wc_imm};

impl ibv_gid {
    /// Its 16 bytes, in network byte order.
    #[must_use]
    pub fn bytes(&self) -> [u8; 16] {
        // SAFETY: both members are 16 bytes of integers.
        unsafe { self.raw }
    }
}

impl From<[u8; 16]> for ibv_gid {
    fn from(raw: [u8; 16]) -> Self {
        Self { raw }
    }
}

impl PartialEq for ibv_gid {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for ibv_gid {}

impl fmt::Debug for ibv_gid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&core::net::Ipv6Addr::from(self.bytes()), formatter)
    }
}

impl ibv_wc_imm {
    /// The immediate data in network byte order, or the key that was invalidated, by the completion's flags.
    #[must_use]
    pub fn bits(self) -> u32 {
        // SAFETY: both members are `u32`.
        unsafe { self.imm_data }
    }
}

impl fmt::Debug for ibv_wc_imm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#010x}", self.bits())
    }
}

impl ibv_send_wr_imm {
    /// The immediate data in network byte order, or the key to invalidate, by the request's opcode.
    #[must_use]
    pub fn bits(self) -> u32 {
        // SAFETY: both members are `u32`.
        unsafe { self.imm_data }
    }
}

impl fmt::Debug for ibv_send_wr_imm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#010x}", self.bits())
    }
}
