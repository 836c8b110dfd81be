//! Taking completions out one by one, with the time at which the device saw each.
//!
//! # Safety
//!
//! `raw` is an extended completion queue that was made to tell what is read of it here. Values are read only while a
//! poll stands at a completion: after a start that found one, or a next that did, and before its end.
#![allow(unsafe_code)]

use super::options::Timestamps;
use crate::sys::{self, WcFlags, WcOpcode, WcStatus, ibv_cq_ex, ibv_poll_cq_attr, ibv_wc};

/// Takes completions out; how many, or the error number of a poll that could not begin.
///
/// # Safety
///
/// The queue is there, extended, and made for these time stamps.
pub(super) unsafe fn poll(
    raw: *mut ibv_cq_ex,
    stamps: Timestamps,
    polled: &mut [ibv_wc],
    stamped: &mut [u64],
) -> Result<usize, i32> {
    let mut attributes = ibv_poll_cq_attr { comp_mask: 0 };
    // SAFETY: the caller's promise.
    let mut code = unsafe { sys::start_poll(raw, &raw mut attributes) };
    // A poll that did not begin must not be ended.
    match code {
        0 => {}
        libc::ENOENT => return Ok(0),
        code => return Err(code),
    }
    let mut count = 0;
    while code == 0 && count < polled.len().min(stamped.len()) {
        // SAFETY: the poll stands at a completion.
        (polled[count], stamped[count]) = unsafe { read(raw, stamps) };
        count += 1;
        if count < polled.len() {
            // SAFETY: a poll was begun. Where this is an error, the next start finds it as well.
            code = unsafe { sys::next_poll(raw) };
        }
    }
    // SAFETY: a poll was begun.
    unsafe { sys::end_poll(raw) };
    Ok(count)
}

/// The completion that the poll stands at, and its time stamp.
///
/// # Safety
///
/// It stands at one.
unsafe fn read(raw: *mut ibv_cq_ex, stamps: Timestamps) -> (ibv_wc, u64) {
    // SAFETY: the queue is there, and the poll has written this.
    let (wr_id, status) = (unsafe { (*raw).wr_id }, unsafe { (*raw).status });
    let mut wc = ibv_wc { wr_id, status, ..ibv_wc::default() };
    // SAFETY: the poll stands at a completion, and this can be told of each.
    wc.qp_num = unsafe { sys::wc_read_qp_num(raw) }.unwrap_or(0);
    if wc.status != WcStatus::SUCCESS {
        // SAFETY: as above.
        wc.vendor_err = unsafe { sys::wc_read_vendor_err(raw) }.unwrap_or(0);
        return (wc, 0);
    }
    // SAFETY: as above.
    wc.opcode = unsafe { sys::wc_read_opcode(raw) }.unwrap_or(WcOpcode::SEND);
    // SAFETY: as above.
    wc.byte_len = unsafe { sys::wc_read_byte_len(raw) }.unwrap_or(0);
    // SAFETY: as above.
    wc.wc_flags = unsafe { sys::wc_read_wc_flags(raw) }.unwrap_or(WcFlags::empty());
    // SAFETY: as above.
    wc.src_qp = unsafe { sys::wc_read_src_qp(raw) }.unwrap_or(0);
    // SAFETY: as above.
    let lid = unsafe { sys::wc_read_slid(raw) }.unwrap_or(0);
    wc.slid = u16::try_from(lid).unwrap_or(u16::MAX);
    // SAFETY: as above.
    wc.sl = unsafe { sys::wc_read_sl(raw) }.unwrap_or(0);
    // SAFETY: as above.
    wc.dlid_path_bits = unsafe { sys::wc_read_dlid_path_bits(raw) }.unwrap_or(0);
    if wc.wc_flags.contains(WcFlags::WITH_IMM) {
        // SAFETY: as above.
        wc.imm.imm_data = unsafe { sys::wc_read_imm_data(raw) }.unwrap_or(0);
    }
    let stamp = match stamps {
        // SAFETY: as above.
        Timestamps::DeviceClock => unsafe { sys::wc_read_completion_ts(raw) },
        // SAFETY: as above.
        Timestamps::WallClock => unsafe { sys::wc_read_completion_wallclock_ns(raw) },
    };
    (wc, stamp.unwrap_or(0))
}
