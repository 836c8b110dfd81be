//! Polling and arming completion queues.
//!
//! # Safety
//!
//! Each function calls what the provider has put into a table for just this purpose. What the manual pages ask of
//! its arguments is asked of the caller.
#![allow(unsafe_code)]

use core::ffi::c_int;

use super::super::{WcFlags, WcOpcode, ibv_cq, ibv_cq_ex, ibv_poll_cq_attr, ibv_wc, ibv_wc_tm_info};
use super::NOT_SUPPORTED;

/// Takes up to `num_entries` completions; how many, or a negative number.
///
/// # Safety
///
/// The queue is valid, and `wc` has room for that many.
#[inline]
pub unsafe fn poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the queue is valid.
    let context = unsafe { (*cq).context };
    // SAFETY: its context is open for as long as it lives.
    let poll = unsafe { (*context).ops.poll_cq };
    match poll {
        // SAFETY: the caller's promise.
        Some(poll) => unsafe { poll(cq, num_entries, wc) },
        None => -NOT_SUPPORTED,
    }
}

/// Arms the queue: the next completion, or the next solicited or failed one, raises an event.
///
/// # Safety
///
/// The queue is valid, and has a channel.
#[inline]
pub unsafe fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the queue is valid.
    let context = unsafe { (*cq).context };
    // SAFETY: its context is open for as long as it lives.
    let arm = unsafe { (*context).ops.req_notify_cq };
    match arm {
        // SAFETY: the caller's promise.
        Some(arm) => unsafe { arm(cq, solicited_only) },
        None => NOT_SUPPORTED,
    }
}

/// The queue that an extended one begins with.
#[inline]
#[must_use]
pub fn cq_ex_to_cq(cq: *mut ibv_cq_ex) -> *mut ibv_cq {
    cq.cast()
}

/// Goes to the first completion; ENOENT if there is none. After any error there is no end to call.
///
/// # Safety
///
/// The queue is valid, nobody polls it at the same time, and the attributes are valid.
#[inline]
pub unsafe fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: the queue is valid.
    match unsafe { (*cq).start_poll } {
        // SAFETY: the caller's promise.
        Some(start) => unsafe { start(cq, attr) },
        None => NOT_SUPPORTED,
    }
}

/// Goes to the next completion; ENOENT if there is none, and then the end is still to be called.
///
/// # Safety
///
/// The queue is valid, and a poll of it has been started.
#[inline]
pub unsafe fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: the queue is valid.
    match unsafe { (*cq).next_poll } {
        // SAFETY: the caller's promise.
        Some(next) => unsafe { next(cq) },
        None => NOT_SUPPORTED,
    }
}

/// Ends the poll.
///
/// # Safety
///
/// The queue is valid, and a poll of it has been started.
#[inline]
pub unsafe fn end_poll(cq: *mut ibv_cq_ex) {
    // SAFETY: the queue is valid.
    if let Some(end) = unsafe { (*cq).end_poll } {
        // SAFETY: the caller's promise.
        unsafe { end(cq) };
    }
}

/// Declares functions that read a value of the completion that a poll stands at.
macro_rules! readers {
    ($($(#[$meta:meta])* fn $name:ident -> $type:ty = $field:ident;)*) => {$(
        $(#[$meta])*
        ///
        /// None where the provider cannot tell.
        ///
        /// # Safety
        ///
        /// The queue is valid and was made to tell this; a poll of it stands at a completion.
        #[inline]
        pub unsafe fn $name(cq: *mut ibv_cq_ex) -> Option<$type> {
            // SAFETY: the queue is valid.
            let read = unsafe { (*cq).$field };
            // SAFETY: the caller's promise.
            read.map(|read| unsafe { read(cq) })
        }
    )*};
}

readers! {
    /// What has completed.
    fn wc_read_opcode -> WcOpcode = read_opcode;
    /// The vendor's number for an error.
    fn wc_read_vendor_err -> u32 = read_vendor_err;
    /// How many bytes came.
    fn wc_read_byte_len -> u32 = read_byte_len;
    /// The immediate data in network byte order.
    fn wc_read_imm_data -> u32 = read_imm_data;
    /// The key that was invalidated.
    fn wc_read_invalidated_rkey -> u32 = read_imm_data;
    /// The queue pair that it is of.
    fn wc_read_qp_num -> u32 = read_qp_num;
    /// The queue pair that sent a datagram.
    fn wc_read_src_qp -> u32 = read_src_qp;
    /// What the completion brings.
    fn wc_read_wc_flags -> WcFlags = read_wc_flags;
    /// The local identifier of the sender.
    fn wc_read_slid -> u32 = read_slid;
    /// The service level.
    fn wc_read_sl -> u8 = read_sl;
    /// The path bits of the destination.
    fn wc_read_dlid_path_bits -> u8 = read_dlid_path_bits;
    /// When it completed, in ticks of the device's clock.
    fn wc_read_completion_ts -> u64 = read_completion_ts;
    /// When it completed, in nanoseconds of the wall clock.
    fn wc_read_completion_wallclock_ns -> u64 = read_completion_wallclock_ns;
    /// The tag of the virtual network.
    fn wc_read_cvlan -> u16 = read_cvlan;
    /// The tag of the rule that steered it.
    fn wc_read_flow_tag -> u32 = read_flow_tag;
}

/// Reads what the completion says of a tag; false where the provider cannot tell.
///
/// # Safety
///
/// As for the other readers, and `tm_info` is valid for the result.
#[inline]
pub unsafe fn wc_read_tm_info(cq: *mut ibv_cq_ex, tm_info: *mut ibv_wc_tm_info) -> bool {
    // SAFETY: the queue is valid.
    let read = unsafe { (*cq).read_tm_info };
    // SAFETY: the caller's promise.
    read.map(|read| unsafe { read(cq, tm_info) }).is_some()
}
