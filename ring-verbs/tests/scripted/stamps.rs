//! Completions that say when the device saw them, which are taken out one by one.
//!
//! # Safety
//!
//! Each test is one thread.
#![allow(unsafe_code)]

use ring_verbs::sys::{
    CqCreateFlags, CqInitAttrMask, CqWcFlags, WcFlags, WcOpcode, WcStatus, ibv_wc, ibv_wc_imm,
};
use ring_verbs::{
    Completion, CompletionQueue, CompletionQueueOptions, Errno, Error, Failure, Operation, QueuePair, Rc,
    RemoteMemory, Request, Rts, Timestamps,
};

use crate::device::{Answer, Call, Posted, Scripted, WALL_CLOCK_NS};
use crate::rig::{Rig, Tracked, drain, numbers, options, ready};

const START: Call = Call::StartPoll;
const NEXT: Call = Call::NextPoll;
const END: Call = Call::EndPoll;

/// A queue with time stamps that takes so many at a time out, and a pair that uses it.
fn stamped(rig: &Rig, batch: u32) -> (CompletionQueue<Tracked>, QueuePair<Rc, Rts, Tracked>) {
    let queue_options = CompletionQueueOptions::new(64).batch(batch).timestamps(Timestamps::DeviceClock);
    let queue = queue_options.build(&rig.context).unwrap();
    let pair = ready(options().build(&rig.domain, &queue, &queue).unwrap());
    (queue, pair)
}

/// Posts so many sends.
fn post(rig: &Rig, pair: &mut QueuePair<Rc, Rts, Tracked>, count: u8) -> Vec<Posted> {
    for number in 0..count {
        pair.post(&Request::send(), rig.buffer(number)).unwrap();
    }
    rig.device.posted()
}

fn turns(rig: &Rig) -> Vec<Call> {
    core::mem::take(&mut rig.device.state().turns)
}

#[test]
fn completions_are_stamped_by_the_clock_that_was_asked_for() {
    let flags = [CqWcFlags::COMPLETION_TIMESTAMP, CqWcFlags::COMPLETION_TIMESTAMP_WALLCLOCK];
    let clocks = [Timestamps::DeviceClock, Timestamps::WallClock];
    for ((clock, flag), start) in clocks.into_iter().zip(flags).zip([0, WALL_CLOCK_NS]) {
        let rig = Rig::new();
        let queue_options = CompletionQueueOptions::new(64).vector(1).timestamps(clock);
        let mut queue = queue_options.build(&rig.context).unwrap();
        let told = rig.device.state().extended[0];
        assert_eq!((told.cqe, told.comp_vector, told.wc_flags), (64, 1, CqWcFlags::STANDARD | flag));
        assert_eq!((told.comp_mask, told.flags), (CqInitAttrMask::empty(), CqCreateFlags::empty()));

        let mut pair = ready(options().build(&rig.domain, &queue, &queue).unwrap());
        let posted = post(&rig, &mut pair, 3);
        for (posted, ticks) in posted.iter().zip([1000, 1020, 5000]) {
            rig.device.state().ticks = ticks;
            rig.device.complete(posted, WcStatus::SUCCESS);
        }
        let completions = drain(&mut queue);
        let stamps: Vec<_> = completions.iter().map(Completion::timestamp).collect();
        assert_eq!(stamps, [1000, 1020, 5000].map(|ticks| Some(start + ticks)));
        assert_eq!(numbers(&completions), [0, 1, 2]);
    }
}

#[test]
fn what_has_no_time_of_its_own_has_no_stamp() {
    let mut rig = Rig::new();
    let (mut queue, _) = stamped(&rig, 16);
    let mut pair = ready(options().signal_every(2).build(&rig.domain, &queue, &queue).unwrap());
    let posted = post(&rig, &mut pair, 3);
    rig.device.state().ticks = 70;
    rig.device.complete(&posted[1], WcStatus::SUCCESS);
    rig.device.complete(&posted[2], WcStatus::WR_FLUSH_ERR);
    let completions = drain(&mut queue);
    let stamps: Vec<_> = completions.iter().map(|done| (done.result().is_ok(), done.timestamp())).collect();
    assert_eq!(stamps, [(true, None), (true, Some(70)), (false, None)]);
    let failure = Failure::Device { status: WcStatus::WR_FLUSH_ERR, vendor_error: 0x55 };
    assert_eq!(completions[2].result(), Err(failure));

    // Of a queue that was made without.
    let mut pair = rig.pair(&options());
    let posted = post(&rig, &mut pair, 1);
    rig.device.complete(&posted[0], WcStatus::SUCCESS);
    assert_eq!(rig.drain()[0].timestamp(), None);
}

/// What a completion tells but its time.
fn facts(completion: &Completion<Tracked>) -> impl PartialEq + core::fmt::Debug + use<> {
    let kinds = (completion.opcode(), completion.result(), completion.ticket(), completion.queue_pair());
    (kinds, completion.bytes(), completion.immediate(), completion.source())
}

/// The other way to take completions out is the oracle.
#[test]
fn nothing_else_is_lost_by_taking_them_out_one_by_one() {
    let mut rig = Rig::new();
    let (mut queue, mut with) = stamped(&rig, 16);
    let mut without = rig.pair(&options());
    let remote = RemoteMemory { address: 0x1000, bytes: 64, key: 5 };
    let mut told = Vec::new();
    for pair in [&mut with, &mut without] {
        pair.post(&Request::read(remote), rig.buffer(1)).unwrap();
        for number in 2..6 {
            pair.post_receive(rig.buffer(number)).unwrap();
        }
        let posted = rig.device.posted();
        let full = |index: usize, opcode| ibv_wc {
            wr_id: posted[index].wr_id,
            opcode,
            vendor_err: 0x99,
            byte_len: 40 + u32::try_from(index).unwrap(),
            imm: ibv_wc_imm { imm_data: 0x0102_0304_u32.to_be() },
            // The same of both.
            qp_num: 0x77,
            src_qp: 0x3456,
            wc_flags: WcFlags::GRH | WcFlags::WITH_IMM,
            slid: 0x8001,
            sl: 5,
            dlid_path_bits: 3,
            ..ibv_wc::default()
        };
        let mut plain = full(3, WcOpcode::RECV);
        plain.wc_flags = WcFlags::empty();
        let failed =
            ibv_wc { status: WcStatus::LOC_PROT_ERR, opcode: WcOpcode(77), ..full(4, WcOpcode::RECV) };
        let all = [
            full(0, WcOpcode::RDMA_READ),
            full(1, WcOpcode::RECV),
            full(2, WcOpcode::RECV_RDMA_WITH_IMM),
            plain,
            failed,
        ];
        all.into_iter().for_each(|wc| rig.device.push(posted[0].completion_queue, wc));
        told.push(all.len());
    }
    let (with, without) = (drain(&mut queue), rig.drain());
    assert_eq!([with.len(), without.len()], told[..]);
    assert_eq!(with[1].immediate(), Some(0x0102_0304));
    for (with, without) in with.iter().zip(&without) {
        assert_eq!(facts(with), facts(without));
    }
}

#[test]
fn a_poll_that_has_begun_is_ended_and_no_other() {
    let rig = Rig::new();
    let (mut queue, mut pair) = stamped(&rig, 2);
    assert!(queue.poll().unwrap().is_none());
    assert_eq!(turns(&rig), [START], "there was nothing, so that nothing was begun");

    let posted = post(&rig, &mut pair, 3);
    posted.iter().for_each(|posted| rig.device.complete(posted, WcStatus::SUCCESS));
    assert_eq!(numbers(&drain(&mut queue)), [0, 1, 2]);
    // The third stays with the driver until there is room for it.
    assert_eq!(turns(&rig), [START, NEXT, END, START, NEXT, END, START]);
}

#[test]
fn a_poll_that_cannot_begin_says_why_and_is_not_ended() {
    let rig = Rig::new();
    let (mut queue, mut pair) = stamped(&rig, 16);
    let posted = post(&rig, &mut pair, 1);
    let stale = libc::ENOENT;
    for (returned, errno) in
        [(libc::EBUSY, libc::EBUSY), (libc::EIO, libc::EIO), (-libc::ENODEV, libc::ENODEV), (-1, libc::EIO)]
    {
        rig.device.answer(START, Answer { returned, errno: stale });
        let error = queue.poll().unwrap_err();
        assert_eq!(error.errno(), Errno(errno), "{returned}");
        assert_eq!(Error::from(error), Error::Refused { operation: Operation::Poll, errno: Errno(errno) });
        assert_eq!(turns(&rig), [START]);
    }
    rig.device.complete(&posted[0], WcStatus::SUCCESS);
    assert_eq!(numbers(&drain(&mut queue)), [0]);
}

/// What came before the error is given out first. The next poll has the error as well, where it is one that stays.
#[test]
fn an_error_in_the_middle_of_a_poll_loses_nothing() {
    for errno in [libc::EIO, libc::EBUSY] {
        let rig = Rig::new();
        let (mut queue, mut pair) = stamped(&rig, 16);
        let posted = post(&rig, &mut pair, 3);
        posted.iter().for_each(|posted| rig.device.complete(posted, WcStatus::SUCCESS));
        rig.device.answer(NEXT, Answer::errno(errno));
        assert_eq!(queue.poll().unwrap().unwrap().buffer.unwrap().number(), 0);
        assert_eq!(turns(&rig), [START, NEXT, END]);

        rig.device.answer(START, Answer::errno(errno));
        assert_eq!(queue.poll().unwrap_err().errno(), Errno(errno));
        assert_eq!(turns(&rig), [START]);
        assert_eq!(numbers(&drain(&mut queue)), [1, 2]);
        assert_eq!(pair.sends_in_flight(), 0);
    }
}

/// Nothing will come out of it any more, and so the buffers come back with their queue pair.
#[test]
fn a_queue_that_is_broken_gives_back_what_its_pairs_had() {
    for is_stamped in [true, false] {
        let rig = Rig::new();
        let mut queue_options = CompletionQueueOptions::new(64);
        let mut call = Call::Poll;
        if is_stamped {
            (queue_options, call) = (queue_options.timestamps(Timestamps::WallClock), START);
        }
        let mut queue = queue_options.build(&rig.context).unwrap();
        let mut pair = ready(options().build(&rig.domain, &queue, &queue).unwrap());
        post(&rig, &mut pair, 2);
        let broken = Answer { returned: -libc::EIO, errno: libc::EIO };
        rig.device.state().answers.extend([(call, broken); 16]);
        assert_eq!(queue.poll().unwrap_err().errno(), Errno(libc::EIO));
        drop(pair);
        for number in 0..2 {
            let completion = queue.poll().unwrap().unwrap();
            assert_eq!(completion.result(), Err(Failure::Discarded));
            assert_eq!(completion.buffer.unwrap().number(), number);
        }
        assert_eq!(rig.alive(), 0);
        assert_eq!(queue.poll().unwrap_err().errno(), Errno(libc::EIO));
    }
}

#[test]
fn a_device_without_time_stamps_says_so() {
    let operation = Operation::CreateCompletionQueue;
    let clocks = [Timestamps::DeviceClock, Timestamps::WallClock];
    for clock in clocks {
        let with = CompletionQueueOptions::new(8).timestamps(clock);
        let (device, context) = Scripted::open_plain();
        let error = with.build::<Tracked>(&context).unwrap_err();
        assert_eq!(error, Error::NotSupported { operation });
        drop(context);
        device.require_ended();

        let (device, context) = Scripted::open();
        for (errno, expected) in [
            (libc::EOPNOTSUPP, Error::NotSupported { operation }),
            (libc::ENOMEM, Error::Refused { operation, errno: Errno(libc::ENOMEM) }),
        ] {
            device.answer(Call::CreateExtendedQueue, Answer::errno(errno));
            assert_eq!(with.build::<Tracked>(&context).unwrap_err(), expected);
        }
        drop(with.build::<Tracked>(&context).unwrap());
        drop(context);
        device.require_ended();
    }
}

/// It is extended, since it is made so, and polled as others are.
#[test]
fn a_queue_of_one_thread_is_made_so_and_polled_many_at_a_time() {
    let rig = Rig::new();
    let queue_options = CompletionQueueOptions::new(32);
    // SAFETY: a test is one thread.
    let queue_options = unsafe { queue_options.single_threaded(true) };
    let mut queue = queue_options.build(&rig.context).unwrap();
    let told = rig.device.state().extended[0];
    assert_eq!((told.comp_mask, told.flags), (CqInitAttrMask::FLAGS, CqCreateFlags::SINGLE_THREADED));
    assert_eq!((told.cqe, told.wc_flags), (32, CqWcFlags::STANDARD));
    let mut pair = ready(options().build(&rig.domain, &queue, &queue).unwrap());
    let posted = post(&rig, &mut pair, 2);
    posted.iter().for_each(|posted| rig.device.complete(posted, WcStatus::SUCCESS));
    let completions = drain(&mut queue);
    assert_eq!(numbers(&completions), [0, 1]);
    assert!(completions.iter().all(|completion| completion.timestamp().is_none()));
    assert_eq!(turns(&rig), []);
}

#[test]
fn the_rate_of_the_clock_is_told_where_there_is_one() {
    let operation = Operation::QueryDevice;
    let (device, context) = Scripted::open();
    assert_eq!(context.clock_khz(), Err(Error::NotSupported { operation }));
    device.state().clock_khz = 156_250;
    assert_eq!(context.clock_khz(), Ok(156_250));
    for answer in Answer::ways(libc::EIO) {
        device.answer(Call::QueryExtended, answer);
        let expected = Error::Refused { operation, errno: Errno(libc::EIO) };
        assert_eq!(context.clock_khz(), Err(expected), "{answer:?}");
    }
    let (device, context) = Scripted::open_plain();
    device.state().clock_khz = 156_250;
    assert_eq!(context.clock_khz(), Err(Error::NotSupported { operation }));
}
