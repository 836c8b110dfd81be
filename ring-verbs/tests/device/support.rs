//! What the device can do beyond messages, or says that it cannot.
//!
//! # Safety
//!
//! What is made for one thread is used by the test's thread alone.
#![allow(unsafe_code)]

use core::time::Duration;
use std::time::Instant;

use ring_verbs::{
    AccessFlags, AsyncEvents, CompletionQueueOptions, Deadline, Error, EventSource, EventType, ExposedRegion,
    Failure, Opcode, Operation, PageMemory, Pages, Posting, ProtectionDomain, QueuePairOptions, Rc, Request,
    Slab, Timestamps, Uc,
};

use crate::Tests;
use crate::rig::{PATIENCE, Rig, completions, completions_of};

pub(crate) const TESTS: Tests = &[
    ("requests_go_by_calls", requests_go_by_calls),
    ("an_overflowing_queue_says_so", an_overflowing_queue_says_so),
    ("a_queue_has_room_for_all", a_queue_has_room_for_all),
    ("a_deadline_is_told_once", a_deadline_is_told_once),
    ("a_reset_leaves_what_is_in_flight", a_reset_leaves_what_is_in_flight),
    ("what_the_device_lacks_is_said", what_the_device_lacks_is_said),
    ("a_queue_is_resized", a_queue_is_resized),
    ("a_queue_without_locks_polls", a_queue_without_locks_polls),
];

fn requests_go_by_calls() {
    let rig = Rig::new();
    let options = QueuePairOptions::new(16, 16).max_inline(64).posting(Posting::Calls).pieces(2);
    let mut pair = rig.pair::<Rc>(&options);
    let access = AccessFlags::LOCAL_WRITE
        | AccessFlags::REMOTE_WRITE
        | AccessFlags::REMOTE_READ
        | AccessFlags::REMOTE_ATOMIC;
    let target =
        ExposedRegion::new(&rig.domain, PageMemory::new(64, Pages::Small, None).unwrap(), access).unwrap();
    for _ in 0..4 {
        pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    }
    let mut batch = pair.a.batch();
    batch.push(&Request::send(), rig.slab(b"plain")).unwrap();
    batch.push(&Request::send_with_immediate(3), rig.slab(b"with")).unwrap();
    batch.push_inline(&Request::send(), b"inline").unwrap();
    batch.push(&Request::write(target.remote()), rig.slab(&5_u64.to_ne_bytes())).unwrap();
    batch
        .push(&Request::write_with_immediate(target.remote().part(8, 8).unwrap(), 4), rig.slab(b"written!"))
        .unwrap();
    batch.push(&Request::fetch_and_add(target.remote(), 2), rig.slab(&[0; 8])).unwrap();
    batch.push(&Request::compare_and_swap(target.remote(), 7, 9), rig.slab(&[0; 8])).unwrap();
    batch.push(&Request::read(target.remote()).fenced(), rig.slab(&[0; 16])).unwrap();
    batch.post().unwrap();
    let (sent, received) = completions_of(&mut pair.queue, 12, pair.a.number());
    let all = sent.iter().chain(&received);
    all.for_each(|completion| completion.result().unwrap());
    assert_eq!(&received[0].buffer.as_ref().unwrap()[..5], b"plain");
    assert_eq!(received[1].immediate(), Some(3));
    assert_eq!(&received[2].buffer.as_ref().unwrap()[..6], b"inline");
    assert_eq!((received[3].opcode(), received[3].immediate()), (Opcode::ReceiveImmediateOfWrite, Some(4)));
    assert_eq!(sent[5].buffer.as_ref().unwrap()[..], 5_u64.to_ne_bytes());
    assert_eq!(sent[6].buffer.as_ref().unwrap()[..], 7_u64.to_ne_bytes());
    assert_eq!(sent[7].buffer.as_ref().unwrap()[..], [&9_u64.to_ne_bytes()[..], b"written!"].concat());
}

fn an_overflowing_queue_says_so() {
    let rig = Rig::new();
    let mut events = AsyncEvents::new(&rig.context).unwrap();
    let queue = CompletionQueueOptions::new(1).overcommit(true).build::<Slab>(&rig.context).unwrap();
    let others = rig.completion_queue::<Slab>(64);
    let options = QueuePairOptions::new(256, 256);
    let many = rig.completion_queue::<Slab>(512);
    let a = options.build::<Rc, _>(&rig.domain, &many, &others).map(drop);
    assert!(matches!(a, Err(Error::CompletionQueueFull { room, needed: 256 }) if room < 256), "{a:?}");
    let a = options.build(&rig.domain, &queue, &many).unwrap();
    let b = QueuePairOptions::new(1, 256).build(&rig.domain, &many, &many).unwrap();
    let (mut a, mut b) = rig.connect::<Rc, _>(a, b);
    let more = queue.capacity() + 1;
    for _ in 0..more {
        b.post_receive(rig.pool.take().unwrap()).unwrap();
        a.post_inline(&Request::send(), b"").unwrap();
    }
    let event = events.wait(Some(PATIENCE)).unwrap().expect("an event");
    assert_eq!((event.kind, event.source), (EventType::CQ_ERR, EventSource::CompletionQueue(queue.id())));
}

fn a_queue_has_room_for_all() {
    let rig = Rig::new();
    let mut queue = rig.completion_queue::<Slab>(64);
    let room = queue.capacity();
    let options = QueuePairOptions::new(room / 2, room / 2);
    for _ in 0..100 {
        let first = options.build::<Rc, _>(&rig.domain, &queue, &queue).unwrap();
        let second = QueuePairOptions::new(1, 1).build::<Rc, _>(&rig.domain, &queue, &queue);
        assert!(matches!(second, Err(Error::CompletionQueueFull { .. })), "{second:?}");
        drop(first);
        // Its room is free when the queue was seen empty.
        assert!(queue.poll().unwrap().is_none());
    }
}

fn a_deadline_is_told_once() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&QueuePairOptions::new(4, 4));
    // No receive is posted: the peer asks to wait, for ever.
    let wait = Duration::from_millis(500);
    let begin = Instant::now();
    let ticket = pair.a.post_by(&Request::send(), rig.slab(b"late"), Deadline::after(wait)).unwrap();
    assert_eq!(pair.a.overdue(), None);
    let overdue = loop {
        if let Some(overdue) = pair.a.overdue() {
            break overdue;
        }
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(overdue.ticket, ticket);
    assert!(begin.elapsed() >= wait);
    assert_eq!(pair.a.overdue(), None);
    let _a = pair.a.into_error().unwrap();
    let completion = completions(&mut pair.queue, 1).pop().unwrap();
    assert_eq!(completion.ticket(), ticket);
    assert_eq!(&completion.buffer.unwrap()[..], b"late");
}

fn a_reset_leaves_what_is_in_flight() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Uc>(&QueuePairOptions::new(4, 4));
    for index in 0..3 {
        pair.b.post_receive(rig.slab(&[index])).unwrap();
    }
    let b = pair.b.into_reset().unwrap();
    assert_eq!(b.receives_in_flight(), 0);
    for (index, completion) in completions(&mut pair.queue, 3).into_iter().enumerate() {
        assert_eq!(completion.result(), Err(Failure::Discarded));
        assert_eq!(completion.buffer.unwrap()[0] as usize, index);
    }
    let a = pair.a.into_reset().unwrap();
    let (mut a, mut b) = rig.connect(a, b);
    b.post_receive(rig.pool.take().unwrap()).unwrap();
    a.post(&Request::send(), rig.slab(b"anew")).unwrap();
    let completions = completions(&mut pair.queue, 2);
    completions.iter().for_each(|completion| completion.result().unwrap());
}

fn what_the_device_lacks_is_said() {
    let rig = Rig::new();
    if rig.context.attributes().unwrap().vendor_id != 0xff_ffff {
        eprintln!("not soft-RoCE: its lacks are not asked for");
        return;
    }
    let lacks = |result: Result<(), Error>, lacking| match result {
        Err(Error::NotSupported { operation }) => assert_eq!(operation, lacking),
        other => panic!("{lacking:?}: {other:?}"),
    };
    let region = ExposedRegion::new(&rig.domain, vec![0; 64], AccessFlags::REMOTE_READ).unwrap();
    let changed = region.change_access(AccessFlags::REMOTE_READ | AccessFlags::LOCAL_WRITE);
    let refused = changed.unwrap_err();
    assert_eq!(refused.memory.as_deref(), Some(&[0; 64][..]));
    lacks(Err(refused.error), Operation::Reregister);

    let stamped = CompletionQueueOptions::new(4).timestamps(Timestamps::DeviceClock);
    lacks(stamped.build::<Slab>(&rig.context).map(drop), Operation::CreateCompletionQueue);
    lacks(rig.context.clock_khz().map(drop), Operation::QueryDevice);
    let mut queue = rig.completion_queue::<Slab>(4);
    lacks(queue.moderate(16, Duration::from_micros(10)), Operation::Moderate);
    // SAFETY: nothing is made in it.
    let domain = unsafe { ProtectionDomain::for_one_thread(&rig.domain) };
    lacks(domain.map(drop), Operation::AllocateThreadDomain);
}

fn a_queue_is_resized() {
    let rig = Rig::new();
    let mut queue = rig.completion_queue::<Slab>(16);
    let needed = queue.capacity() + 1;
    let options = QueuePairOptions::new(needed, 0);
    assert!(options.build::<Rc, _>(&rig.domain, &queue, &queue).is_err());
    queue.resize(needed).unwrap();
    let pair = options.build::<Rc, _>(&rig.domain, &queue, &queue).unwrap();
    assert_eq!(queue.resize(1), Err(Error::CompletionQueueFull { room: 1, needed }));
    drop(pair);
    assert!(queue.poll().unwrap().is_none());
    queue.resize(1).unwrap();
}

fn a_queue_without_locks_polls() {
    let rig = Rig::new();
    // SAFETY: all is done by this thread.
    let options = unsafe { CompletionQueueOptions::new(64).single_threaded(true) };
    let mut queue = options.build::<Slab>(&rig.context).unwrap();
    let options = QueuePairOptions::new(8, 8);
    let [a, b] = [(); 2].map(|()| options.build(&rig.domain, &queue, &queue).unwrap());
    let (mut a, mut b) = rig.connect::<Rc, _>(a, b);
    b.post_receive(rig.pool.take().unwrap()).unwrap();
    a.post(&Request::send(), rig.slab(b"x")).unwrap();
    completions(&mut queue, 2).iter().for_each(|completion| completion.result().unwrap());
}
