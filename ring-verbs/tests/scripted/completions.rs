//! Completions that no good device has.

use ring_verbs::sys::{WcStatus, ibv_wc};
use ring_verbs::{Errno, Error, Failure, Opcode, Operation, RemoteMemory, Request};

use crate::device::{Answer, Call};
use crate::heap;
use crate::rig::{Rig, numbers, options};

#[test]
fn a_queue_that_cannot_be_polled_says_why_and_loses_nothing() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options());
    pair.post(&Request::send(), rig.buffer(1)).unwrap();
    // The manual page knows no error number; some drivers return one.
    let stale = libc::ENOENT;
    for (returned, errno) in [(-1, libc::EIO), (-libc::ENODEV, libc::ENODEV)] {
        rig.device.answer(Call::Poll, Answer { returned, errno: stale });
        let error = rig.queue.poll().unwrap_err();
        assert_eq!(Error::from(error), Error::Refused { operation: Operation::Poll, errno: Errno(errno) });
    }
    rig.device.complete(&rig.device.posted()[0], WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), [1]);
}

#[test]
fn completions_that_nobody_knows_are_counted() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options());
    pair.post(&Request::send(), rig.buffer(1)).unwrap();
    let posted = rig.device.posted().remove(0);
    let strangers = [
        0,
        u64::MAX,
        // Nothing is in flight there, neither before nor behind.
        posted.wr_id + 1,
        posted.wr_id.wrapping_sub(1),
        // Another queue, and another generation of this one.
        posted.wr_id + (9 << 32),
        posted.wr_id + (1 << 48),
    ];
    for wr_id in strangers {
        rig.device.push(posted.completion_queue, ibv_wc { wr_id, ..ibv_wc::default() });
    }
    rig.device.complete(&posted, WcStatus::SUCCESS);
    // It is done, and this is of nobody any more.
    rig.device.complete(&posted, WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), [1]);
    assert_eq!(rig.queue.unknown(), strangers.len() as u64 + 1);
    assert_eq!(rig.alive(), 0);
}

#[test]
fn a_late_completion_is_not_taken_for_that_of_the_next_queue_pair() {
    let mut rig = Rig::new();
    let mut first = rig.pair(&options());
    first.post(&Request::send(), rig.buffer(1)).unwrap();
    let late = rig.device.posted().remove(0);
    drop(first);
    assert_eq!(numbers(&rig.drain()), [1]);

    let mut second = rig.pair(&options());
    second.post(&Request::send(), rig.buffer(2)).unwrap();
    let posted = rig.device.posted().remove(0);
    assert_ne!(late.wr_id, posted.wr_id);
    assert_eq!(
        late.wr_id & 0xffff_0000_ffff,
        posted.wr_id & 0xffff_0000_ffff,
        "the same place, at the same turn"
    );
    rig.device.complete(&late, WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), []);
    assert_eq!((rig.queue.unknown(), second.sends_in_flight()), (1, 1));
    rig.device.complete(&posted, WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), [2]);
}

#[test]
fn a_completion_ends_what_was_posted_before_it() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options());
    for number in 0..4 {
        pair.post(&Request::send(), rig.buffer(number)).unwrap();
        pair.post_receive(rig.buffer(10 + number)).unwrap();
    }
    let posted = rig.device.posted();
    let (sends, receives): (Vec<_>, Vec<_>) = posted.iter().partition(|posted| posted.opcode.is_some());
    // The third before the second and the first.
    for index in [2, 1, 0] {
        rig.device.complete(sends[index], WcStatus::SUCCESS);
    }
    let completions = rig.drain();
    assert_eq!(numbers(&completions), [0, 1, 2]);
    assert!(completions.iter().all(|completion| completion.result().is_ok()));
    assert_eq!(rig.queue.unknown(), 2);

    // A receive that was passed over may hold anything.
    rig.device.complete(receives[1], WcStatus::SUCCESS);
    let completions = rig.drain();
    assert_eq!(numbers(&completions), [10, 11]);
    assert_eq!(completions[0].result(), Err(Failure::Discarded));
    assert_eq!((completions[1].result(), completions[1].bytes()), (Ok(()), 3));
    assert_eq!((pair.sends_in_flight(), pair.receives_in_flight()), (1, 2));
}

/// Only the number, the status and the maker's code of a failed completion mean anything.
#[test]
fn what_a_failed_request_was_is_known_without_the_device() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options());
    let remote = RemoteMemory { address: 0x1000, bytes: 64, key: 5 };
    pair.post(&Request::read(remote), rig.buffer(1)).unwrap();
    pair.post_receive(rig.buffer(2)).unwrap();
    for posted in rig.device.posted() {
        rig.device.complete(&posted, WcStatus::WR_FLUSH_ERR);
    }
    let completions = rig.drain();
    let opcodes: Vec<_> = completions.iter().map(|completion| completion.opcode()).collect();
    assert_eq!(opcodes, [Opcode::Read, Opcode::Receive]);
    for completion in completions {
        let expected = Failure::Device { status: WcStatus::WR_FLUSH_ERR, vendor_error: 0x55 };
        assert_eq!(completion.result(), Err(expected));
        assert_eq!((completion.bytes(), completion.immediate()), (0, None));
    }
}

/// More than are taken out at a time.
#[test]
fn many_completions_come_out_in_order() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&ring_verbs::QueuePairOptions::new(40, 1));
    for number in 0..40 {
        pair.post(&Request::send(), rig.buffer(number)).unwrap();
    }
    rig.device.posted().iter().for_each(|posted| rig.device.complete(posted, WcStatus::SUCCESS));
    assert!(numbers(&rig.drain()).into_iter().eq(0..40));
}

#[test]
fn post_and_poll_take_nothing_from_the_heap() {
    let mut rig = Rig::new();
    let pool = ring_verbs::PoolOptions::new(64, 8).build(&rig.domain).unwrap();
    let mut queue = ring_verbs::CompletionQueueOptions::new(64).build(&rig.context).unwrap();
    let pair = options().signal_every(2).max_inline(8).build(&rig.domain, &queue, &queue).unwrap();
    let mut pair = crate::rig::ready(pair);
    let request = Request::send();
    let mut before = 0;
    for turn in 0..100 {
        // The queue pair is new to the completion queue at first.
        if turn == 1 {
            before = heap::taken();
        }
        pair.post_receive(pool.take().unwrap()).unwrap();
        pair.post(&request, pool.take().unwrap()).unwrap();
        let mut batch = pair.batch();
        batch.push(&request, pool.take().unwrap()).unwrap();
        batch.push_inline(&request, b"inline").unwrap();
        batch.push(&request, pool.take().unwrap()).unwrap();
        batch.post().unwrap();
        heap::of_the_device(|| {
            let posted = rig.device.posted();
            let signaled =
                |posted: &&crate::device::Posted| posted.flags.contains(ring_verbs::sys::SendFlags::SIGNALED);
            posted.iter().filter(signaled).for_each(|posted| rig.device.complete(posted, WcStatus::SUCCESS));
        });
        let mut ended = 0;
        while let Some(completion) = queue.poll().unwrap() {
            completion.result().unwrap();
            ended += 1;
        }
        assert_eq!(ended, 5, "two of the sends have a completion of their own");
    }
    assert_eq!(heap::taken() - before, 0);
    drop(Box::new(before));
    assert_eq!(heap::taken(), before + 1, "what the heap gives is counted");
    assert_eq!(pool.out(), 0);
    drop(rig.drain());
}
