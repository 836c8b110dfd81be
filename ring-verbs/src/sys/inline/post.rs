//! Posting: by a list of requests, or by calls that build them.
//!
//! # Safety
//!
//! Each function calls what the provider has put into a table for just this purpose. What the manual pages ask of
//! its arguments is asked of the caller.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use super::super::{
    ibv_ah, ibv_data_buf, ibv_mw, ibv_mw_bind_info, ibv_qp, ibv_qp_ex, ibv_recv_wr, ibv_send_wr, ibv_sge,
    ibv_srq,
};
use super::NOT_SUPPORTED;

/// Posts a list of send requests. On an error `bad_wr` is the first that was not posted.
///
/// # Safety
///
/// Queue pair and list are valid; what the requests point to stays so until they have completed.
#[inline]
pub unsafe fn post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad_wr: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the queue pair is valid.
    let context = unsafe { (*qp).context };
    // SAFETY: its context is open for as long as it lives.
    let post = unsafe { (*context).ops.post_send };
    match post {
        // SAFETY: the caller's promise.
        Some(post) => unsafe { post(qp, wr, bad_wr) },
        None => {
            // SAFETY: the pointer is valid for the result.
            unsafe { bad_wr.write(wr) };
            NOT_SUPPORTED
        }
    }
}

/// Posts a list of receive requests. On an error `bad_wr` is the first that was not posted.
///
/// # Safety
///
/// Queue pair and list are valid; what the requests point to stays so until they have completed.
#[inline]
pub unsafe fn post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the queue pair is valid.
    let context = unsafe { (*qp).context };
    // SAFETY: its context is open for as long as it lives.
    let post = unsafe { (*context).ops.post_recv };
    match post {
        // SAFETY: the caller's promise.
        Some(post) => unsafe { post(qp, wr, bad_wr) },
        None => {
            // SAFETY: the pointer is valid for the result.
            unsafe { bad_wr.write(wr) };
            NOT_SUPPORTED
        }
    }
}

/// Posts a list of receive requests to a shared queue. On an error `bad_wr` is the first that was not posted.
///
/// # Safety
///
/// Queue and list are valid; what the requests point to stays so until they have completed.
#[inline]
pub unsafe fn post_srq_recv(srq: *mut ibv_srq, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the queue is valid.
    let context = unsafe { (*srq).context };
    // SAFETY: its context is open for as long as it lives.
    let post = unsafe { (*context).ops.post_srq_recv };
    match post {
        // SAFETY: the caller's promise.
        Some(post) => unsafe { post(srq, wr, bad_wr) },
        None => {
            // SAFETY: the pointer is valid for the result.
            unsafe { bad_wr.write(wr) };
            NOT_SUPPORTED
        }
    }
}

/// Declares functions that call the field of their name in an extended queue pair.
macro_rules! builders {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$meta])*
        ///
        /// Returns 0, or EOPNOTSUPP where the provider has no such operation, and nothing has happened.
        ///
        /// # Safety
        ///
        /// The queue pair is valid and was made for this operation; the call stands where the manual page of
        /// `ibv_wr_post` lets it stand, and its arguments are what that asks for.
        #[inline]
        pub unsafe fn $name(qp: *mut ibv_qp_ex $(, $argument: $type)*) -> c_int {
            // SAFETY: the queue pair is valid.
            match unsafe { (*qp).$name } {
                Some(build) => {
                    // SAFETY: the caller's promise.
                    unsafe { build(qp $(, $argument)*) };
                    0
                }
                None => NOT_SUPPORTED,
            }
        }
    )*};
}

builders! {
    /// Begins a batch, under the provider's lock.
    fn wr_start();
    /// Gives the batch up.
    fn wr_abort();
    /// Begins a compare-and-swap of 8 bytes.
    fn wr_atomic_cmp_swp(rkey: u32, remote_addr: u64, compare: u64, swap: u64);
    /// Begins a fetch-and-add of 8 bytes.
    fn wr_atomic_fetch_add(rkey: u32, remote_addr: u64, add: u64);
    /// Begins the binding of a memory window.
    fn wr_bind_mw(mw: *mut ibv_mw, rkey: u32, bind_info: *const ibv_mw_bind_info);
    /// Begins the invalidation of a local key.
    fn wr_local_inv(invalidate_rkey: u32);
    /// Begins a read.
    fn wr_rdma_read(rkey: u32, remote_addr: u64);
    /// Begins a write.
    fn wr_rdma_write(rkey: u32, remote_addr: u64);
    /// Begins a write with immediate data, in network byte order.
    fn wr_rdma_write_imm(rkey: u32, remote_addr: u64, imm_data: u32);
    /// Begins a message.
    fn wr_send();
    /// Begins a message with immediate data, in network byte order.
    fn wr_send_imm(imm_data: u32);
    /// Begins a message that invalidates a key of the receiver.
    fn wr_send_inv(invalidate_rkey: u32);
    /// Says whom the datagram goes to.
    fn wr_set_ud_addr(ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32);
    /// Gives the request's data, which is copied.
    fn wr_set_inline_data(addr: *mut c_void, length: usize);
    /// Gives the request's data in pieces, which are copied.
    fn wr_set_inline_data_list(num_buf: usize, buf_list: *const ibv_data_buf);
    /// Gives the request's one buffer.
    fn wr_set_sge(lkey: u32, addr: u64, length: u32);
    /// Gives the request's buffers.
    fn wr_set_sge_list(num_sge: usize, sg_list: *const ibv_sge);
    /// Begins an atomic write of 8 bytes.
    fn wr_atomic_write(rkey: u32, remote_addr: u64, atomic_wr: *const c_void);
}

/// Posts the batch; on an error none of it is posted.
///
/// # Safety
///
/// The queue pair is valid, and a batch has been begun; what the requests point to stays valid until they have
/// completed.
#[inline]
pub unsafe fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    // SAFETY: the queue pair is valid.
    match unsafe { (*qp).wr_complete } {
        // SAFETY: the caller's promise.
        Some(complete) => unsafe { complete(qp) },
        None => NOT_SUPPORTED,
    }
}
