//! What is not given to a driver, or does not come back from one, since memory would be written that somebody has.
//!
//! # Safety
//!
//! The buffers here have no bytes, or are never dropped before their device.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use ring_verbs::sys::WcStatus;
use ring_verbs::{
    Buffer, CompletionQueueOptions, Pieces, QueuePair, Rc, Rejection, RemoteMemory, Request, Rts,
};

use crate::device::{Answer, Bad, Refusal};
use crate::rig::{Rig, drain, options, ready};

const REMOTE: RemoteMemory = RemoteMemory { address: 0x1000, bytes: 64, key: 5 };

#[test]
fn reads_and_atomics_carry_nothing() {
    let rig = Rig::new();
    let mut pair = rig.pair(&options().max_inline(64));
    let requests =
        [Request::read(REMOTE), Request::fetch_and_add(REMOTE, 1), Request::compare_and_swap(REMOTE, 1, 2)];
    for request in &requests {
        assert_eq!(pair.post_inline(request, &[7; 16]), Err(Rejection::NeedsBuffer));
        let mut batch = pair.batch();
        assert_eq!(batch.push_inline(request, &[7; 16]), Err(Rejection::NeedsBuffer));
        batch.post().unwrap();
    }
    assert!(rig.device.posted().is_empty());
}

#[test]
fn an_atomic_needs_room_for_its_word() {
    let rig = Rig::new();
    let mut pair = rig.pair(&options());
    for request in [Request::fetch_and_add(REMOTE, 1), Request::compare_and_swap(REMOTE, 1, 2)] {
        // A buffer here has three bytes.
        let rejected = pair.post(&request, rig.buffer(1)).unwrap_err();
        assert_eq!((rejected.reason, rejected.buffer.number()), (Rejection::NeedsWord, 1));
    }
    assert!(rig.device.posted().is_empty());
}

/// A buffer of one piece without bytes.
#[derive(Debug)]
struct Empty;

// SAFETY: it has no bytes.
unsafe impl Buffer for Empty {
    fn add_pieces(&self, pieces: &mut Pieces) {
        pieces.add(core::ptr::dangling(), 0, 0x77);
    }
}

#[test]
fn a_piece_without_bytes_is_left_out() {
    let rig = Rig::new();
    let queue = CompletionQueueOptions::new(16).build::<Empty>(&rig.context).unwrap();
    let mut pair: QueuePair<Rc, Rts, _> =
        ready(options().max_inline(8).build(&rig.domain, &queue, &queue).unwrap());
    pair.post(&Request::send(), Empty).unwrap();
    pair.post_inline(&Request::send(), b"").unwrap();
    pair.post_receive(Empty).unwrap();
    let posted = rig.device.posted();
    assert_eq!(posted.len(), 3);
    assert!(posted.iter().all(|posted| posted.pieces.is_empty()));
}

/// Soft-RoCE's library, where it has queued a request and the kernel does not take its call: the next post's call has
/// the request done, so its buffer must not be in somebody's hands.
#[test]
fn a_request_that_is_not_named_as_refused_is_in_flight() {
    for bad in [Bad::Nothing, Bad::Foreign] {
        let mut rig = Rig::new();
        let mut pair = rig.pair(&options().max_inline(8));
        let refusal = Refusal { taken: 0, answer: Answer::errno(libc::ENOMEM), bad };
        rig.device.refuse(refusal);
        assert_eq!(pair.post(&Request::send(), rig.buffer(1)).unwrap().number(), 0);
        rig.device.refuse(refusal);
        assert_eq!(pair.post_inline(&Request::send(), b"x").unwrap().number(), 1);
        assert_eq!(pair.sends_in_flight(), 2);
        pair.post(&Request::send(), rig.buffer(2)).unwrap();
        rig.device.complete(&rig.device.posted()[0], WcStatus::SUCCESS);
        let completions = rig.drain();
        assert_eq!(completions.len(), 3);
        assert!(completions[1].buffer.is_none());
        assert_eq!(completions[0].buffer.as_ref().unwrap().number(), 1);
    }
}

thread_local! {
    /// Whether the next drop panics.
    static IS_ARMED: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug)]
struct Panicking(u8);

impl Drop for Panicking {
    fn drop(&mut self) {
        assert!(!IS_ARMED.replace(false), "as it is told");
    }
}

// SAFETY: it has no bytes.
unsafe impl Buffer for Panicking {
    fn add_pieces(&self, _: &mut Pieces) {}
}

#[test]
fn a_batch_whose_drop_panics_is_not_posted_later() {
    let rig = Rig::new();
    let mut queue = CompletionQueueOptions::new(16).build::<Panicking>(&rig.context).unwrap();
    let mut pair = ready(options().build(&rig.domain, &queue, &queue).unwrap());
    let mut batch = pair.batch();
    for number in 0..3 {
        batch.push(&Request::send(), Panicking(number)).map_err(|rejected| rejected.reason).unwrap();
    }
    IS_ARMED.set(true);
    catch_unwind(AssertUnwindSafe(|| drop(batch))).unwrap_err();
    pair.post(&Request::send(), Panicking(9)).map_err(|rejected| rejected.reason).unwrap();
    let posted = rig.device.posted();
    assert_eq!(posted.len(), 1);
    rig.device.complete(&posted[0], WcStatus::SUCCESS);
    let came: Vec<_> =
        drain(&mut queue).iter().map(|completion| completion.buffer.as_ref().unwrap().0).collect();
    assert_eq!(came, [9], "what was never posted does not end as done");
}

#[test]
fn a_queue_of_many_at_a_time_takes_no_more_than_it_holds() {
    let rig = Rig::new();
    let queue = CompletionQueueOptions::new(16).batch(u32::MAX).build::<Empty>(&rig.context).unwrap();
    assert_eq!(queue.capacity(), 16);
}
