//! Posting.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::ptr;

use ring_verbs::sys::{SendFlags, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_srq};

use super::code;
use crate::device::{Bad, Posted, Refusal, Scripted};
use crate::heap;

/// A request of either kind.
trait WorkRequest: Copy {
    fn next(&self) -> *mut Self;
    /// `queue_pair` is null of a shared receive.
    fn posted(&self, queue_pair: *mut ibv_qp) -> Posted;
}

impl WorkRequest for ibv_send_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn posted(&self, queue_pair: *mut ibv_qp) -> Posted {
        // SAFETY: the pair is there, and so is its queue.
        let completion_queue = unsafe { (*(*queue_pair).send_cq).handle };
        let (opcode, flags) = (Some(self.opcode), self.send_flags);
        posted(queue_pair, self.wr_id, completion_queue, opcode, flags, self.sg_list, self.num_sge)
    }
}

impl WorkRequest for ibv_recv_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn posted(&self, queue_pair: *mut ibv_qp) -> Posted {
        // SAFETY: the pair is there, if it is not null, and so is its queue.
        let completion_queue = unsafe { queue_pair.as_ref().map_or(0, |pair| (*pair.recv_cq).handle) };
        let flags = SendFlags::SIGNALED;
        posted(queue_pair, self.wr_id, completion_queue, None, flags, self.sg_list, self.num_sge)
    }
}

fn posted(
    pair: *mut ibv_qp,
    wr_id: u64,
    completion_queue: u32,
    opcode: Option<ring_verbs::sys::WrOpcode>,
    flags: SendFlags,
    list: *mut ibv_sge,
    count: c_int,
) -> Posted {
    // SAFETY: the pair is there, if it is not null.
    let queue_pair = unsafe { pair.as_ref() }.map_or(0, |pair| pair.qp_num);
    let count = usize::try_from(count).expect("not negative");
    // SAFETY: the list has so many pieces.
    let pieces = unsafe { core::slice::from_raw_parts(list, count) }.to_vec();
    let mut data = Vec::new();
    for piece in &pieces {
        let at = ptr::with_exposed_provenance::<u8>(usize::try_from(piece.addr).expect("an address"));
        // SAFETY: a piece is memory that stays until the request has ended, or until this call has.
        data.extend_from_slice(unsafe { core::slice::from_raw_parts(at, piece.length as usize) });
    }
    Posted { wr_id, queue_pair, completion_queue, opcode, flags, pieces, data }
}

/// Takes a list of requests, as far as it is to.
fn post<W: WorkRequest>(device: Scripted, pair: *mut ibv_qp, mut next: *mut W, bad: *mut *mut W) -> c_int {
    heap::of_the_device(|| {
        let mut state = device.state();
        state.rings += 1;
        let refusal = state.refusal.take();
        let most = refusal.map_or(usize::MAX, |refusal| refusal.taken);
        for _ in 0..most {
            if next.is_null() {
                break;
            }
            // SAFETY: the list ends with NULL.
            let request = unsafe { next.read() };
            state.posted.push(request.posted(pair));
            next = request.next();
        }
        refusal.map_or(0, |refusal| refuse(refusal, next, bad))
    })
}

fn refuse<W>(refusal: Refusal, next: *mut W, bad: *mut *mut W) -> c_int {
    assert!(!next.is_null(), "there was nothing to refuse");
    let named = match refusal.bad {
        Bad::Named => next,
        Bad::Nothing => ptr::null_mut(),
        Bad::Foreign => ptr::dangling_mut(),
    };
    // SAFETY: it can be written.
    unsafe { bad.write(named) };
    code(refusal.answer)
}

pub(crate) unsafe extern "C" fn post_send(
    pair: *mut ibv_qp,
    list: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    post(device_of!(pair), pair, list, bad)
}

pub(crate) unsafe extern "C" fn post_recv(
    pair: *mut ibv_qp,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    post(device_of!(pair), pair, list, bad)
}

pub(crate) unsafe extern "C" fn post_srq_recv(
    queue: *mut ibv_srq,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    post(device_of!(queue), ptr::null_mut(), list, bad)
}
