//! Posts, and posts that the driver refuses.

use ring_verbs::sys::{SendFlags, WcStatus, WrOpcode};
use ring_verbs::{Errno, Error, Failure, Rejection, RemoteMemory, Request};

use crate::device::{Answer, Bad, Refusal};
use crate::rig::{Rig, numbers, options};

#[test]
fn a_request_is_posted_as_it_was_made() {
    let rig = Rig::new();
    let mut pair = rig.pair(&options().max_inline(16));
    let remote = RemoteMemory { address: 0x1000, bytes: 64, key: 5 };
    pair.post(&Request::send().solicited(), rig.buffer(1)).unwrap();
    pair.post(&Request::write_with_immediate(remote, 7), rig.buffer(2)).unwrap();
    pair.post_inline(&Request::send(), b"inline").unwrap();
    pair.post_receive(rig.buffer(3)).unwrap();

    let posted = rig.device.posted();
    let opcodes: Vec<_> = posted.iter().map(|posted| posted.opcode).collect();
    let expected = [WrOpcode::SEND, WrOpcode::RDMA_WRITE_WITH_IMM, WrOpcode::SEND].map(Some);
    assert_eq!(opcodes, [&expected[..], &[None]].concat());
    let flags: Vec<_> = posted[..3].iter().map(|posted| posted.flags).collect();
    let signaled = SendFlags::SIGNALED;
    assert_eq!(flags, [signaled | SendFlags::SOLICITED, signaled, signaled | SendFlags::INLINE]);
    assert_eq!(posted[0].data, [1, 0xaa, 0x55]);
    assert_eq!(posted[0].pieces[0].lkey, 0x77);
    assert_eq!(posted[2].data, b"inline");
    assert_eq!(rig.device.state().rings, 4);
}

#[test]
fn every_so_many_have_a_completion_of_their_own() {
    let rig = Rig::new();
    // Rounded down to 2.
    let mut pair = rig.pair(&options().signal_every(3));
    for (number, request) in [Request::send(), Request::send(), Request::send().signaled(), Request::send()]
        .iter()
        .chain(&[Request::send(), Request::send(), Request::send()])
        .zip(0..)
        .map(|(request, number)| (number, request))
    {
        pair.post(request, rig.buffer(number)).unwrap();
    }
    let signaled: Vec<_> =
        rig.device.posted().iter().map(|posted| posted.flags.contains(SendFlags::SIGNALED)).collect();
    assert_eq!(signaled, [false, true, true, true, false, true, false]);
}

/// Posts a batch of four of which the driver takes so many.
fn refuse_at(taken: usize, answer: Answer) {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options().signal_every(4));
    pair.post(&Request::send(), rig.buffer(9)).unwrap();
    rig.device.refuse(Refusal { taken, answer, bad: Bad::Named });
    let mut batch = pair.batch();
    for number in 0..4 {
        batch.push(&Request::send(), rig.buffer(number)).unwrap();
    }
    let rejected = batch.post().unwrap_err();
    assert_eq!(rejected.errno, Errno(libc::ENOMEM), "{answer:?}");
    let back: Vec<_> = rejected.buffers.iter().flatten().map(|buffer| usize::from(buffer.number())).collect();
    assert!(back.iter().copied().eq(taken..4), "{back:?}");
    drop(rejected);
    assert_eq!(rig.alive(), 1 + taken);
    assert_eq!(usize::try_from(pair.sends_in_flight()).unwrap(), 1 + taken);

    // One with a completion of its own brings back everything that was taken.
    let ticket = pair.post(&Request::send().signaled(), rig.buffer(8)).unwrap();
    assert_eq!(ticket.number(), 1 + taken as u64);
    let posted = rig.device.posted();
    assert_eq!(posted.len(), 2 + taken);
    let last = posted.last().unwrap();
    assert!(last.flags.contains(SendFlags::SIGNALED));
    rig.device.complete(last, WcStatus::SUCCESS);
    let completions = rig.drain();
    let expected = [9].into_iter().chain(0..u8::try_from(taken).unwrap()).chain([8]);
    assert!(numbers(&completions).into_iter().eq(expected));
    assert!(completions.iter().all(|completion| completion.result().is_ok()));
    drop(completions);
    assert_eq!((rig.alive(), pair.sends_in_flight()), (0, 0));
}

#[test]
fn what_a_driver_refuses_of_a_batch_comes_back() {
    for taken in 0..4 {
        for answer in Answer::ways(libc::ENOMEM) {
            refuse_at(taken, answer);
        }
    }
}

#[test]
fn a_refused_request_comes_back_with_the_reason() {
    for answer in Answer::ways(libc::ENOMEM) {
        let mut rig = Rig::new();
        let mut pair = rig.pair(&options().max_inline(8));
        let refusal = Refusal { taken: 0, answer, bad: Bad::Named };
        rig.device.refuse(refusal);
        let rejected = pair.post(&Request::send(), rig.buffer(1)).unwrap_err();
        assert_eq!(rejected.reason, Rejection::Driver(Errno(libc::ENOMEM)));
        assert_eq!(rejected.buffer.number(), 1);
        drop(rejected);

        rig.device.refuse(refusal);
        let rejected = pair.post_receive(rig.buffer(2)).unwrap_err();
        assert_eq!(rejected.reason, Rejection::Driver(Errno(libc::ENOMEM)));
        assert_eq!(rejected.buffer.number(), 2);
        let error = Error::from(rejected);
        assert_eq!(error.errno(), Some(Errno(libc::ENOMEM)));
        assert_eq!(error.to_string(), Rejection::Driver(Errno(libc::ENOMEM)).to_string());
        assert_eq!(rig.alive(), 0, "an error keeps no buffer");

        rig.device.refuse(refusal);
        let reason = pair.post_inline(&Request::send(), b"inline").unwrap_err();
        assert_eq!(reason, Rejection::Driver(Errno(libc::ENOMEM)));
        assert_eq!((pair.sends_in_flight(), pair.receives_in_flight()), (0, 0));

        // Nothing of it is in the way.
        assert_eq!(pair.post(&Request::send(), rig.buffer(3)).unwrap().number(), 0);
        let posted = rig.device.posted();
        rig.device.complete(&posted[0], WcStatus::SUCCESS);
        assert_eq!(numbers(&rig.drain()), [3]);
    }
}

/// The queue is driven to an error, or a driver is broken: where it stopped nobody knows, and a buffer that may be with
/// the device is not given back.
#[test]
fn what_a_driver_does_not_name_may_be_in_flight() {
    for bad in [Bad::Nothing, Bad::Foreign] {
        let mut rig = Rig::new();
        let mut pair = rig.pair(&options());
        rig.device.refuse(Refusal { taken: 1, answer: Answer::errno(libc::EINVAL), bad });
        let mut batch = pair.batch();
        for number in 0..3 {
            batch.push(&Request::send(), rig.buffer(number)).unwrap();
        }
        let rejected = batch.post().unwrap_err();
        assert_eq!((rejected.errno, rejected.buffers.len()), (Errno(libc::EINVAL), 0));
        assert_eq!(pair.sends_in_flight(), 3);

        // What was taken has its completion, the rest is discarded at the end.
        rig.device.complete(&rig.device.posted()[0], WcStatus::SUCCESS);
        assert_eq!(numbers(&rig.drain()), [0]);
        drop(pair);
        let discarded = rig.drain();
        assert_eq!(numbers(&discarded), [1, 2]);
        assert!(discarded.iter().all(|completion| completion.result() == Err(Failure::Discarded)));
        drop(discarded);
        assert_eq!(rig.alive(), 0);
    }
}

#[test]
fn a_batch_that_is_dropped_is_not_posted() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options());
    let mut batch = pair.batch();
    batch.push(&Request::send(), rig.buffer(1)).unwrap();
    batch.push(&Request::send(), rig.buffer(2)).unwrap();
    drop(batch);
    assert_eq!((rig.alive(), pair.sends_in_flight(), rig.device.state().rings), (0, 0, 0));
    pair.post(&Request::send(), rig.buffer(3)).unwrap();
    rig.device.complete(&rig.device.posted()[0], WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), [3]);
}

#[test]
fn a_batch_is_one_ring_of_the_doorbell() {
    let rig = Rig::new();
    let mut pair = rig.pair(&options().batch(4));
    let mut batch = pair.batch();
    for number in 0..4 {
        batch.push(&Request::send(), rig.buffer(number)).unwrap();
    }
    assert_eq!(batch.push(&Request::send(), rig.buffer(4)).unwrap_err().reason, Rejection::BatchFull);
    batch.post().unwrap();
    assert_eq!(rig.device.state().rings, 1);
    let data: Vec<_> = rig.device.posted().iter().map(|posted| posted.data[0]).collect();
    assert_eq!(data, [0, 1, 2, 3]);
    assert_eq!(pair.batch().post().map_err(|rejected| rejected.errno), Ok(()), "nothing is no error");
    assert_eq!(rig.device.state().rings, 1);
}
