//! What the driver itself answers to what the safe layer does not let through.
//!
//! # Safety
//!
//! The library is asked for what it must refuse, with objects that are there and arguments that live as long as the
//! call. Where it took a request by mistake, the test fails.
#![allow(unsafe_code)]

use core::ptr;

use ring_verbs::sys::{self, Functions, QpAttrMask, SendFlags, WrOpcode};
use ring_verbs::{
    AccessFlags, CompletionQueue, Error, ExposedRegion, MemoryRegion, Operation, QpState, QueuePair,
    QueuePairOptions, Rc, Rejection, Request, Reset, Rts, Slab,
};

use crate::Tests;
use crate::objects::nothing_is_left;
use crate::rig::{Rig, completions};

pub(crate) const TESTS: Tests = &[
    ("a_post_in_reset", a_post_in_reset),
    ("from_reset_to_rtr", from_reset_to_rtr),
    ("too_many_pieces_or_inline_bytes", too_many_pieces_or_inline_bytes),
    ("an_empty_region", an_empty_region),
    ("a_remote_right_without_the_local_one", a_remote_right_without_the_local_one),
    ("a_full_queue", a_full_queue),
    ("objects_in_use", objects_in_use),
];

fn functions() -> &'static Functions {
    Functions::load().expect("libibverbs")
}

fn fresh(rig: &Rig) -> (QueuePair<Rc, Reset>, CompletionQueue<Slab>) {
    let queue = rig.completion_queue(64);
    let pair = QueuePairOptions::new(16, 16).build(&rig.domain, &queue, &queue).expect("a queue pair");
    (pair, queue)
}

/// What a request without a buffer is answered.
fn post_raw(pair: *mut sys::ibv_qp, pieces: &mut [sys::ibv_sge], flags: SendFlags) -> i32 {
    let mut wr = sys::ibv_send_wr {
        wr_id: u64::MAX,
        opcode: WrOpcode::SEND,
        send_flags: flags,
        sg_list: pieces.as_mut_ptr(),
        num_sge: i32::try_from(pieces.len()).expect("few"),
        ..sys::ibv_send_wr::default()
    };
    let mut bad = ptr::null_mut();
    // SAFETY: the queue pair is there, and so are the request and its pieces during the call.
    unsafe { sys::post_send(pair, &raw mut wr, &raw mut bad) }
}

fn a_post_in_reset() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let (pair, _queue) = fresh(&rig);
        assert_eq!(post_raw(pair.as_raw(), &mut [], SendFlags::SIGNALED), libc::EINVAL);
    });
}

fn from_reset_to_rtr() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let (pair, _queue) = fresh(&rig);
        let mut attributes = sys::ibv_qp_attr { qp_state: QpState::RTR, ..sys::ibv_qp_attr::default() };
        // SAFETY: the queue pair is there, and so are the attributes.
        let code =
            unsafe { (functions().ibv_modify_qp)(pair.as_raw(), &raw mut attributes, QpAttrMask::STATE) };
        assert_eq!(code, libc::EINVAL);
        assert_eq!(pair.state().unwrap(), QpState::RESET);
    });
}

fn too_many_pieces_or_inline_bytes() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let pair = rig.pair::<Rc>(&QueuePairOptions::new(4, 4).max_inline(64));
        let none = sys::ibv_sge { addr: 0, length: 0, lkey: 0 };
        // More than any device has.
        assert_eq!(post_raw(pair.a.as_raw(), &mut [none; 64], SendFlags::SIGNALED), libc::EINVAL);
        let mut bytes = vec![0_u8; 64 << 10];
        let piece =
            sys::ibv_sge { addr: bytes.as_mut_ptr().expose_provenance() as u64, length: 64 << 10, lkey: 0 };
        let flags = SendFlags::SIGNALED | SendFlags::INLINE;
        assert_eq!(post_raw(pair.a.as_raw(), &mut [piece], flags), libc::EINVAL);

        let asked = QueuePairOptions::new(4, 4).max_inline(1 << 20);
        let refused = asked.build::<Rc, Slab>(&rig.domain, &pair.queue, &pair.queue).unwrap_err();
        assert_eq!(refused.errno(), Some(ring_verbs::Errno(libc::EINVAL)));
        let asked = QueuePairOptions::new(4, 4).pieces(1000);
        let refused = asked.build::<Rc, Slab>(&rig.domain, &pair.queue, &pair.queue).unwrap_err();
        assert!(matches!(refused, Error::TooMany { asked: 1000, .. }), "{refused}");
    });
}

fn an_empty_region() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let refused = MemoryRegion::new(&rig.domain, Vec::with_capacity(7)).unwrap_err();
        assert!(refused.memory.capacity() >= 7, "the memory comes back");
        let expected =
            Error::Refused { operation: Operation::Register, errno: ring_verbs::Errno(libc::EINVAL) };
        assert_eq!(refused.error, expected);
    });
}

fn a_remote_right_without_the_local_one() {
    nothing_is_left(|| {
        let rig = Rig::new();
        for access in [AccessFlags::REMOTE_WRITE, AccessFlags::REMOTE_ATOMIC] {
            let refused = ExposedRegion::new(&rig.domain, vec![1_u8; 64], access).unwrap_err();
            assert_eq!(refused.error, Error::RemoteWithoutLocal);
            let mut memory = refused.memory;
            assert_eq!(memory, [1; 64]);
            let at = memory.as_mut_ptr().cast();
            // SAFETY: the domain is there, and the memory during the call, which must fail.
            let raw = unsafe {
                (functions().ibv_reg_mr)(
                    rig.domain.as_raw(),
                    at,
                    memory.len(),
                    i32::from_ne_bytes(access.bits().to_ne_bytes()),
                )
            };
            let errno = std::io::Error::last_os_error().raw_os_error();
            assert!(raw.is_null());
            assert_eq!(errno, Some(libc::EINVAL));
        }
    });
}

/// The driver rounds up what it was asked for; what was asked for is what a queue pair holds here.
fn a_full_queue() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let mut pair = rig.pair::<Rc>(&QueuePairOptions::new(16, 16));
        // The peer takes none, and waits: so nothing ends meanwhile.
        for _ in 0..16 {
            pair.a.post(&Request::send(), rig.slab(b"x")).unwrap();
        }
        assert_eq!(pair.a.post(&Request::send(), rig.slab(b"x")).unwrap_err().reason, Rejection::Full);
        assert_eq!(pair.a.sends_in_flight(), 16);
        let more =
            (0..1000).find_map(|taken| match post_raw(pair.a.as_raw(), &mut [], SendFlags::SIGNALED) {
                0 => None,
                code => Some((taken, code)),
            });
        let (taken, code) = more.expect("it is full at some time");
        assert_eq!(code, libc::ENOMEM, "after {taken} more");

        // The queue keeps to its own: what it does not know is passed over.
        let a: QueuePair<Rc, Rts> = pair.a;
        drop(a.into_error().unwrap());
        let ended = completions(&mut pair.queue, 16);
        assert!(ended.iter().all(|completion| completion.result().is_err() && completion.buffer.is_some()));
        drop(ended);
        assert!(pair.queue.poll().unwrap().is_none());
        assert_eq!(rig.pool.out(), 0);
    });
}

fn objects_in_use() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let (pair, queue) = fresh(&rig);
        // SAFETY: the domain is there, and stays: a region is registered in it, and a queue pair made.
        assert_eq!(unsafe { (functions().ibv_dealloc_pd)(rig.domain.as_raw()) }, libc::EBUSY);
        // SAFETY: the queue is there, and stays: a queue pair uses it.
        assert_eq!(unsafe { (functions().ibv_destroy_cq)(queue.as_raw()) }, libc::EBUSY);
        drop(pair);
        assert!({ queue }.poll().unwrap().is_none());
    });
}
