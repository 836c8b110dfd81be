//! Polling a completion queue one by one.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::c_int;

use ring_verbs::sys::{CqWcFlags, WcFlags, WcOpcode, WcStatus, ibv_cq_ex, ibv_poll_cq_attr};

use super::code;
use crate::device::{Call, Scripted, Stamped, WALL_CLOCK_NS};

/// The operations of a queue that tells what the flags say: without the flag there is no operation.
pub(super) fn operations(flags: CqWcFlags) -> ibv_cq_ex {
    assert!(flags.contains(CqWcFlags::STANDARD));
    ibv_cq_ex {
        start_poll: Some(start_poll),
        next_poll: Some(next_poll),
        end_poll: Some(end_poll),
        read_opcode: Some(read_opcode),
        read_vendor_err: Some(read_vendor_err),
        read_byte_len: Some(read_byte_len),
        read_imm_data: Some(read_imm_data),
        read_qp_num: Some(read_qp_num),
        read_src_qp: Some(read_src_qp),
        read_wc_flags: Some(read_wc_flags),
        read_slid: Some(read_slid),
        read_sl: Some(read_sl),
        read_dlid_path_bits: Some(read_dlid_path_bits),
        read_completion_ts: flags.contains(CqWcFlags::COMPLETION_TIMESTAMP).then_some(read_ticks as _),
        read_completion_wallclock_ns: flags
            .contains(CqWcFlags::COMPLETION_TIMESTAMP_WALLCLOCK)
            .then_some(read_wall_clock as _),
        // Of no completion.
        wr_id: u64::MAX,
        status: WcStatus(77),
        ..ibv_cq_ex::default()
    }
}

unsafe extern "C" fn start_poll(queue: *mut ibv_cq_ex, attributes: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: the attributes are there.
    assert_eq!(unsafe { (*attributes).comp_mask }, 0);
    // SAFETY: the queue is there.
    unsafe { go_on(queue, Call::StartPoll) }
}

unsafe extern "C" fn next_poll(queue: *mut ibv_cq_ex) -> c_int {
    // SAFETY: the queue is there.
    unsafe { go_on(queue, Call::NextPoll) }
}

/// Goes to the next completion.
///
/// # Safety
///
/// The queue is there.
unsafe fn go_on(queue: *mut ibv_cq_ex, call: Call) -> c_int {
    let device = device_of!(queue);
    // SAFETY: the queue is there.
    let number = unsafe { (*queue).handle };
    let mut state = device.state();
    state.turns.push(call);
    let is_begun = state.polls.remove(&number).is_some();
    assert_eq!(is_begun, call == Call::NextPoll, "a poll is begun once before anything else");
    let answer = state.answer(call);
    let next = if answer.is_some() { None } else { state.next(number) };
    // A start that fails begins nothing; a poll goes on until it is ended.
    if is_begun || next.is_some() {
        state.polls.insert(number, next);
    }
    let (wr_id, status) = next.map_or((u64::MAX, WcStatus(77)), |next| (next.wc.wr_id, next.wc.status));
    // SAFETY: the queue is there, and only this writes what its poll stands at.
    unsafe { ((*queue).wr_id, (*queue).status) = (wr_id, status) };
    match answer {
        Some(answer) => code(answer),
        None if next.is_some() => 0,
        None => libc::ENOENT,
    }
}

unsafe extern "C" fn end_poll(queue: *mut ibv_cq_ex) {
    let device = device_of!(queue);
    // SAFETY: the queue is there.
    let number = unsafe { (*queue).handle };
    let mut state = device.state();
    state.turns.push(Call::EndPoll);
    assert!(state.polls.remove(&number).is_some(), "what is ended was begun");
}

/// What the poll stands at.
///
/// # Safety
///
/// The queue is there.
unsafe fn standing(queue: *mut ibv_cq_ex) -> Stamped {
    let device = device_of!(queue);
    // SAFETY: the queue is there.
    let number = unsafe { (*queue).handle };
    let standing = device.state().polls.get(&number).copied().flatten();
    standing.expect("it is read while a poll stands at something")
}

macro_rules! readers {
    ($($name:ident: $type:ty = $read:expr;)*) => {$(
        unsafe extern "C" fn $name(queue: *mut ibv_cq_ex) -> $type {
            let read: fn(Stamped) -> $type = $read;
            // SAFETY: the queue is there.
            read(unsafe { standing(queue) })
        }
    )*};
}

readers! {
    read_opcode: WcOpcode = |at| at.wc.opcode;
    read_vendor_err: u32 = |at| at.wc.vendor_err;
    read_byte_len: u32 = |at| at.wc.byte_len;
    read_imm_data: u32 = |at| at.wc.imm.bits();
    read_qp_num: u32 = |at| at.wc.qp_num;
    read_src_qp: u32 = |at| at.wc.src_qp;
    read_wc_flags: WcFlags = |at| at.wc.wc_flags;
    read_slid: u32 = |at| at.wc.slid.into();
    read_sl: u8 = |at| at.wc.sl;
    read_dlid_path_bits: u8 = |at| at.wc.dlid_path_bits;
    read_ticks: u64 = |at| at.ticks;
    read_wall_clock: u64 = |at| WALL_CLOCK_NS + at.ticks;
}
