//! Receives that several queue pairs share.

use core::time::Duration;

use ring_verbs::{
    AsyncEvents, EventSource, EventType, Opcode, QueuePairOptions, Rc, Rejection, Request,
    SharedReceiveQueue, Slab,
};

use crate::Tests;
use crate::rig::{PATIENCE, Rig, completions};

pub(crate) const TESTS: Tests = &[
    ("two_pairs_take_from_one_queue", two_pairs_take_from_one_queue),
    ("a_low_queue_makes_an_event", a_low_queue_makes_an_event),
    ("what_no_message_took_comes_back", what_no_message_took_comes_back),
    ("one_queue_after_the_other_needs_the_room_of_one", one_queue_after_the_other_needs_the_room_of_one),
];

fn two_pairs_take_from_one_queue() {
    let rig = Rig::new();
    let mut shared = SharedReceiveQueue::new(&rig.domain, 8, 1).unwrap();
    let mut queue = rig.completion_queue::<Slab>(128);
    let options = QueuePairOptions::new(8, 0);
    let senders = QueuePairOptions::new(8, 1);
    let mut pairs: Vec<_> = (0..2)
        .map(|_| {
            let a = senders.build(&rig.domain, &queue, &queue).unwrap();
            let b = options.build_shared(&rig.domain, &queue, &queue, &shared).unwrap();
            rig.connect::<Rc, _>(a, b)
        })
        .collect();
    for round in 0..40_u8 {
        for _ in 0..2 {
            shared.post_receive(rig.pool.take().unwrap()).unwrap();
        }
        for (index, (a, _)) in (0..).zip(&mut pairs) {
            a.post(&Request::send(), rig.slab(&[round, index])).unwrap();
        }
        let completions = completions(&mut queue, 4);
        let received = completions.iter().filter(|completion| completion.opcode() == Opcode::Receive);
        let mut seen = [false; 2];
        for completion in received {
            completion.result().unwrap();
            let buffer = completion.buffer.as_ref().unwrap();
            assert_eq!(buffer[0], round);
            seen[buffer[1] as usize] = true;
            assert_eq!(completion.queue_pair(), pairs[buffer[1] as usize].1.number());
        }
        assert_eq!(seen, [true; 2]);
    }
    for _ in 0..8 {
        shared.post_receive(rig.pool.take().unwrap()).unwrap();
    }
    assert_eq!(shared.post_receive(rig.pool.take().unwrap()).unwrap_err().reason, Rejection::Full);
    let rejected = pairs[0].1.post_receive(rig.pool.take().unwrap()).unwrap_err();
    assert_eq!(rejected.reason, Rejection::Shared);
    drop(rejected);
    drop((pairs, queue, shared));
    assert_eq!(rig.pool.out(), 0);
}

fn a_low_queue_makes_an_event() {
    let rig = Rig::new();
    let mut events = AsyncEvents::new(&rig.context).unwrap();
    let mut shared = SharedReceiveQueue::new(&rig.domain, 8, 1).unwrap();
    let mut queue = rig.completion_queue::<Slab>(64);
    let a = QueuePairOptions::new(8, 1).build(&rig.domain, &queue, &queue).unwrap();
    let b = QueuePairOptions::new(8, 0).build_shared(&rig.domain, &queue, &queue, &shared).unwrap();
    let (mut a, _b) = rig.connect::<Rc, _>(a, b);
    for _ in 0..4 {
        shared.post_receive(rig.pool.take().unwrap()).unwrap();
    }
    shared.arm_limit(3).unwrap();
    for _ in 0..2 {
        a.post(&Request::send(), rig.slab(b"x")).unwrap();
        completions(&mut queue, 2);
    }
    let event = events.wait(Some(PATIENCE)).unwrap().expect("an event");
    assert_eq!(event.kind, EventType::SRQ_LIMIT_REACHED);
    assert_eq!(event.source, EventSource::SharedReceiveQueue(shared.id()));
    assert!(events.wait(Some(Duration::from_millis(50))).unwrap().is_none(), "it comes once");
}

fn what_no_message_took_comes_back() {
    let rig = Rig::new();
    let mut shared = SharedReceiveQueue::new(&rig.domain, 8, 1).unwrap();
    for index in 0..5 {
        shared.post_receive(rig.slab(&[index])).unwrap();
    }
    let mut buffers = shared.into_buffers().expect("nobody uses it");
    buffers.sort_by_key(|buffer| buffer[0]);
    assert_eq!(buffers.iter().map(|buffer| buffer[0]).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

fn one_queue_after_the_other_needs_the_room_of_one() {
    let rig = Rig::new();
    let mut sends = rig.completion_queue::<Slab>(8);
    let mut queue = rig.completion_queue::<Slab>(16);
    let capacity = queue.capacity();
    for round in 0..100_u8 {
        // As many receives as the completion queue holds.
        let mut shared = SharedReceiveQueue::new(&rig.domain, capacity, 1).unwrap();
        let a = QueuePairOptions::new(1, 0).build(&rig.domain, &sends, &sends).unwrap();
        let b = QueuePairOptions::new(1, 0).build_shared(&rig.domain, &sends, &queue, &shared).unwrap();
        let (mut a, b) = rig.connect::<Rc, _>(a, b);
        shared.post_receive(rig.pool.take().unwrap()).unwrap();
        shared.post_receive(rig.pool.take().unwrap()).unwrap();
        a.post(&Request::send(), rig.slab(&[round])).unwrap();
        completions(&mut sends, 1);
        if round % 2 == 0 {
            let received = completions(&mut queue, 1);
            assert_eq!(received[0].buffer.as_ref().unwrap()[0], round);
        }
        drop(b);
        drop(shared);
        // A message that was not polled went with them: its completion, where the device leaves it, is of nobody.
        assert!(queue.poll().unwrap().is_none());
        drop(a);
        assert!(sends.poll().unwrap().is_none());
        assert_eq!(rig.pool.out(), 0);
    }
}
