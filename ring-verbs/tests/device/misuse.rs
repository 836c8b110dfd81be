//! What the device answers to misuse, and that every buffer comes back all the same.
//!
//! soft-RoCE's answers are as of Linux 6.1; where 6.12 has another, either is taken.
//!
//! # Safety
//!
//! A [`Forged`] buffer names memory that is not its own, or none. Each test keeps the memory it names until the device
//! is done, and touches it no other way meanwhile.
#![allow(unsafe_code)]

use core::time::Duration;
use std::thread;

use ring_verbs::{
    AccessFlags, AckTimeout, Buffer, Completion, CompletionQueue, ExposedRegion, Failure, Pieces,
    ProtectionDomain, QpState, QueuePair, QueuePairOptions, Rc, Rejection, RemoteMemory, Request, Retries,
    Rts, RtsAttributes, Slab, WcStatus,
};

use crate::Tests;
use crate::objects::nothing_is_left;
use crate::rig::{PACKET_NUMBER, Rig, all_rights, completions, connect_across};

pub(crate) const TESTS: Tests = &[
    ("an_unknown_local_key", an_unknown_local_key),
    ("a_local_key_of_another_domain", a_local_key_of_another_domain),
    ("a_piece_beyond_its_region", a_piece_beyond_its_region),
    ("a_read_into_memory_that_may_not_be_written", a_read_into_memory_that_may_not_be_written),
    ("an_unknown_remote_key", an_unknown_remote_key),
    ("a_remote_key_of_another_domain", a_remote_key_of_another_domain),
    ("beyond_the_remote_region", beyond_the_remote_region),
    ("a_right_that_the_region_lacks", a_right_that_the_region_lacks),
    ("a_right_that_the_queue_pair_lacks", a_right_that_the_queue_pair_lacks),
    ("a_receive_that_is_too_short", a_receive_that_is_too_short),
    ("a_receive_with_a_bad_key", a_receive_with_a_bad_key),
    ("no_receive_at_all", no_receive_at_all),
    ("a_peer_that_is_gone", a_peer_that_is_gone),
    ("posts_to_a_pair_that_has_failed", posts_to_a_pair_that_has_failed),
    ("a_misaligned_atomic", a_misaligned_atomic),
    ("more_pieces_than_the_pair_was_made_for", more_pieces_than_the_pair_was_made_for),
    ("more_bytes_than_a_request_carries", more_bytes_than_a_request_carries),
];

/// A key that no region has: soft-RoCE's keys are an index and 8 bits, and this index is beyond all.
const NO_KEY: u32 = 0xffff_ff00;

/// A slab, counted by its pool, that names something else instead of its bytes.
#[derive(Debug)]
struct Forged {
    pieces: Vec<(u64, u32, u32)>,
    _slab: Slab,
}

// SAFETY: by the section above, the tests keep what it names; the device refuses what is nobody's.
unsafe impl Buffer for Forged {
    fn add_pieces(&self, pieces: &mut Pieces) {
        for (address, length, key) in &self.pieces {
            let address = usize::try_from(*address).expect("an address");
            pieces.add(core::ptr::without_provenance(address), *length, *key);
        }
    }
}

/// Two connected queue pairs whose buffers can be forged.
struct Stage {
    rig: Rig,
    a: QueuePair<Rc, Rts, Forged>,
    b: QueuePair<Rc, Rts, Forged>,
    queue: CompletionQueue<Forged>,
    /// Memory for both, with every right.
    memory: ExposedRegion<Vec<u8>>,
}

impl Stage {
    fn new() -> Self {
        Self::with(all_rights(), &RtsAttributes::new(PACKET_NUMBER).reads(4))
    }

    fn with(rights: AccessFlags, rts: &RtsAttributes) -> Self {
        let rig = Rig::new();
        let queue = rig.completion_queue(256);
        let options = QueuePairOptions::new(16, 16).max_inline(64).pieces(2);
        let [a, b] = [(); 2].map(|()| options.build(&rig.domain, &queue, &queue).expect("a queue pair"));
        let [a, b] = connect_across([(&rig, a), (&rig, b)], rights, rts);
        let memory = exposed(&rig.domain, all_rights() | AccessFlags::LOCAL_WRITE);
        Self { rig, a, b, queue, memory }
    }

    fn forge(&self, address: u64, length: u32, key: u32) -> Forged {
        Forged { pieces: vec![(address, length, key)], _slab: self.rig.pool.take().expect("a slab") }
    }

    /// The first bytes of a region, as a buffer.
    fn part(&self, region: &ExposedRegion<Vec<u8>>, bytes: u32) -> Forged {
        self.forge(region.remote().address, bytes, region.local_key())
    }

    fn good(&self, bytes: u32) -> Forged {
        self.part(&self.memory, bytes)
    }

    /// Posts to `a`, whose completion has one of these states. A second post behind it is flushed.
    fn fails(&mut self, request: &Request<Rc>, buffer: Forged, expected: &[WcStatus]) {
        self.a.post(request, buffer).unwrap();
        let first = completions(&mut self.queue, 1).pop().unwrap();
        assert_eq!(first.queue_pair(), self.a.number());
        expect(&first, expected);
        self.a.post(&Request::send(), self.good(8)).unwrap();
        let second = completions(&mut self.queue, 1).pop().unwrap();
        assert_eq!(status(&second), WcStatus::WR_FLUSH_ERR);
        assert_eq!(self.a.state().unwrap(), QpState::ERR);
    }

    /// Nothing is in flight, and what is dropped comes back.
    fn ends(mut self) {
        assert_eq!(self.a.sends_in_flight(), 0, "sends of a");
        assert_eq!(self.b.sends_in_flight(), 0, "sends of b");
        let receives = self.a.receives_in_flight() + self.b.receives_in_flight();
        assert_eq!(self.rig.pool.out(), receives);
        drop((self.a, self.b));
        let left = usize::try_from(receives).unwrap();
        for completion in completions(&mut self.queue, left) {
            assert_eq!(completion.result(), Err(Failure::Discarded));
        }
        assert!(self.queue.poll().unwrap().is_none());
        assert_eq!(self.rig.pool.out(), 0);
    }
}

fn exposed(domain: &ProtectionDomain, access: AccessFlags) -> ExposedRegion<Vec<u8>> {
    ExposedRegion::new(domain, vec![0; 4096], access).expect("a region")
}

fn status<B>(completion: &Completion<B>) -> WcStatus {
    completion.result().unwrap_err().status().expect("the device says why")
}

#[track_caller]
fn expect<B>(completion: &Completion<B>, expected: &[WcStatus]) {
    assert!(completion.buffer.is_some(), "the buffer comes back");
    let status = status(completion);
    assert!(expected.contains(&status), "{status:?} instead of {expected:?}");
}

/// Of a request whose own memory is wrong.
const LOCAL_KEY: &[WcStatus] = &[WcStatus::LOC_QP_OP_ERR, WcStatus::WR_FLUSH_ERR];
const LOCAL_RIGHT: &[WcStatus] = &[WcStatus::LOC_PROT_ERR, WcStatus::WR_FLUSH_ERR];

fn an_unknown_local_key() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let forged = stage.forge(stage.memory.remote().address, 8, NO_KEY);
        stage.fails(&Request::send(), forged, LOCAL_KEY);
        stage.ends();
    });
}

fn a_local_key_of_another_domain() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let other = ProtectionDomain::new(&stage.rig.context).unwrap();
        let memory = exposed(&other, AccessFlags::LOCAL_WRITE);
        let forged = stage.part(&memory, 8);
        stage.fails(&Request::send(), forged, LOCAL_KEY);
        stage.ends();
    });
}

fn a_piece_beyond_its_region() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let forged = stage.good(4096 + 8);
        stage.fails(&Request::send(), forged, LOCAL_RIGHT);
        stage.ends();
    });
}

fn a_read_into_memory_that_may_not_be_written() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let memory = exposed(&stage.rig.domain, AccessFlags::REMOTE_READ);
        let forged = stage.part(&memory, 8);
        let request = Request::read(stage.memory.remote());
        stage.fails(&request, forged, LOCAL_RIGHT);
        stage.ends();
    });
}

/// A write to memory of the peer's that it does not let itself be written to. Both stop.
fn is_not_let_in(mut stage: Stage, remote: RemoteMemory) {
    let buffer = stage.good(8);
    stage.fails(&Request::write(remote), buffer, &[WcStatus::REM_ACCESS_ERR]);
    assert_eq!(stage.b.state().unwrap(), QpState::ERR, "the peer's queue pair");
    stage.ends();
}

fn an_unknown_remote_key() {
    nothing_is_left(|| {
        let stage = Stage::new();
        let remote = RemoteMemory { key: NO_KEY, ..stage.memory.remote() };
        is_not_let_in(stage, remote);
    });
}

fn a_remote_key_of_another_domain() {
    nothing_is_left(|| {
        let stage = Stage::new();
        let other = ProtectionDomain::new(&stage.rig.context).unwrap();
        let memory = exposed(&other, all_rights() | AccessFlags::LOCAL_WRITE);
        is_not_let_in(stage, memory.remote());
    });
}

fn beyond_the_remote_region() {
    nothing_is_left(|| {
        let stage = Stage::new();
        let remote = stage.memory.remote();
        assert_eq!(remote.part(4092, 8), None);
        let beyond = RemoteMemory { address: remote.address + 4092, ..remote };
        is_not_let_in(stage, beyond);
    });
}

fn a_right_that_the_region_lacks() {
    nothing_is_left(|| {
        let stage = Stage::new();
        let memory = exposed(&stage.rig.domain, AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ);
        is_not_let_in(stage, memory.remote());
    });
}

fn a_right_that_the_queue_pair_lacks() {
    nothing_is_left(|| {
        let mut stage = Stage::with(AccessFlags::REMOTE_READ, &RtsAttributes::new(PACKET_NUMBER));
        let buffer = stage.good(8);
        let request = Request::write(stage.memory.remote());
        stage.fails(&request, buffer, &[WcStatus::REM_INV_REQ_ERR]);
        stage.ends();
    });
}

/// The peer cannot take what is sent: both are told.
fn is_not_taken(mut stage: Stage, receive: Forged) {
    stage.b.post_receive(receive).unwrap();
    stage.a.post(&Request::send(), stage.good(64)).unwrap();
    let number = stage.a.number();
    let both = completions(&mut stage.queue, 2);
    for completion in &both {
        let is_sender = completion.queue_pair() == number;
        expect(completion, if is_sender { &[WcStatus::REM_OP_ERR] } else { LOCAL_KEY });
    }
    assert_ne!(both[0].queue_pair(), both[1].queue_pair());
    drop(both);
    stage.ends();
}

fn a_receive_that_is_too_short() {
    nothing_is_left(|| {
        let stage = Stage::new();
        let short = stage.good(16);
        is_not_taken(stage, short);
    });
}

fn a_receive_with_a_bad_key() {
    nothing_is_left(|| {
        let stage = Stage::new();
        let forged = stage.forge(stage.memory.remote().address, 64, NO_KEY);
        is_not_taken(stage, forged);
    });
}

fn no_receive_at_all() {
    nothing_is_left(|| {
        let rts = RtsAttributes::new(PACKET_NUMBER).receiver_not_ready(Retries::Times(0));
        let mut stage = Stage::with(all_rights(), &rts);
        let buffer = stage.good(8);
        stage.fails(&Request::send(), buffer, &[WcStatus::RNR_RETRY_EXC_ERR]);
        stage.ends();
    });
}

fn a_peer_that_is_gone() {
    nothing_is_left(|| {
        let timeout = AckTimeout::at_least(Duration::from_micros(4000));
        assert_eq!(timeout.encoding(), 10);
        let rts = RtsAttributes::new(PACKET_NUMBER).timeout(timeout).retries(Retries::Times(2));
        let mut stage = Stage::with(all_rights(), &rts);
        let options = QueuePairOptions::new(16, 16);
        let other = options.build::<Rc, _>(&stage.rig.domain, &stage.queue, &stage.queue).unwrap();
        let other = connect_across([(&stage.rig, other), (&stage.rig, gone(&stage))], all_rights(), &rts);
        let [other, gone] = other;
        drop(gone);
        drop(core::mem::replace(&mut stage.a, other));
        let buffer = stage.good(8);
        stage.fails(&Request::send(), buffer, &[WcStatus::RETRY_EXC_ERR]);
        stage.ends();
    });
}

fn gone(stage: &Stage) -> QueuePair<Rc, ring_verbs::Reset, Forged> {
    QueuePairOptions::new(16, 16).build(&stage.rig.domain, &stage.queue, &stage.queue).unwrap()
}

fn posts_to_a_pair_that_has_failed() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let forged = stage.forge(stage.memory.remote().address, 8, NO_KEY);
        // The second post of `fails` is one to a queue pair that has failed.
        stage.fails(&Request::send(), forged, LOCAL_KEY);
        // Of receives, soft-RoCE says nothing then: their buffers come back with the drop.
        stage.a.post_receive(stage.good(8)).unwrap();
        thread::sleep(Duration::from_millis(300));
        match stage.queue.poll().unwrap() {
            Some(completion) => assert_eq!(status(&completion), WcStatus::WR_FLUSH_ERR),
            None => assert_eq!(stage.a.receives_in_flight(), 1),
        }
        stage.ends();
    });
}

fn a_misaligned_atomic() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let odd = stage.memory.remote().part(4, 8).unwrap();
        let rejected = stage.a.post(&Request::fetch_and_add(odd, 1), stage.good(8)).unwrap_err();
        assert_eq!(rejected.reason, Rejection::Driver(ring_verbs::Errno(libc::EINVAL)));
        drop(rejected);
        // It goes on afterwards.
        let even = stage.memory.remote().part(8, 8).unwrap();
        stage.a.post(&Request::fetch_and_add(even, 1), stage.good(8)).unwrap();
        completions(&mut stage.queue, 1)[0].result().unwrap();
        stage.ends();
    });
}

fn more_pieces_than_the_pair_was_made_for() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let mut forged = stage.good(8);
        forged.pieces = vec![forged.pieces[0]; 3];
        let too_many = Rejection::TooManyPieces { pieces: 3, most: 2 };
        let rejected = stage.a.post(&Request::send(), forged).unwrap_err();
        assert_eq!(rejected.reason, too_many);
        let rejected = stage.b.post_receive(rejected.buffer).unwrap_err();
        assert_eq!(rejected.reason, too_many);
        drop(rejected);
        stage.ends();
    });
}

fn more_bytes_than_a_request_carries() {
    nothing_is_left(|| {
        let mut stage = Stage::new();
        let most = stage.a.max_inline();
        let bytes = vec![1; most as usize + 1];
        let rejection = stage.a.post_inline(&Request::send(), &bytes).unwrap_err();
        assert_eq!(rejection, Rejection::TooLong { bytes: bytes.len(), most });
        stage.ends();
    });
}
