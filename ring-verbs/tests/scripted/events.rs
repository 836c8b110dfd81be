//! Asynchronous events, of which hardware has many kinds and a software device few.

use core::time::Duration;

use ring_verbs::{
    AsyncEvent, AsyncEvents, Context, Errno, Error, EventSource, EventType, Operation, SharedReceiveQueue,
};

use crate::device::{About, Answer, Call, Scripted};
use crate::rig::{Rig, Tracked};

const PAIRS: [EventType; 8] = [
    EventType::QP_FATAL,
    EventType::QP_REQ_ERR,
    EventType::QP_ACCESS_ERR,
    EventType::COMM_EST,
    EventType::SQ_DRAINED,
    EventType::PATH_MIG,
    EventType::PATH_MIG_ERR,
    EventType::QP_LAST_WQE_REACHED,
];

const PORTS: [EventType; 7] = [
    EventType::PORT_ACTIVE,
    EventType::PORT_ERR,
    EventType::LID_CHANGE,
    EventType::PKEY_CHANGE,
    EventType::SM_CHANGE,
    EventType::CLIENT_REREGISTER,
    EventType::GID_CHANGE,
];

/// Of the device, of what this crate does not make, and of what this version does not know.
const OTHERS: [EventType; 4] =
    [EventType::DEVICE_FATAL, EventType::WQ_FATAL, EventType(20), EventType(u32::MAX)];

fn listen() -> (Scripted, Context, AsyncEvents) {
    let (device, context) = Scripted::open();
    device.tell_events();
    let events = AsyncEvents::new(&context).unwrap();
    (device, context, events)
}

/// Everything that has happened.
fn all(events: &mut AsyncEvents) -> Vec<AsyncEvent> {
    core::iter::from_fn(|| events.try_next().unwrap()).collect()
}

#[test]
fn every_kind_is_told_with_what_it_is_about_and_acknowledged_once() {
    let rig = Rig::new();
    rig.device.tell_events();
    let mut events = AsyncEvents::new(&rig.context).unwrap();
    let shared = SharedReceiveQueue::<Tracked>::new(&rig.domain, 8, 1).unwrap();

    let queue = EventSource::CompletionQueue(rig.queue.id());
    let mut cases = vec![(EventType::CQ_ERR, About::CompletionQueue(rig.queue.as_raw()), queue)];
    for kind in [EventType::SRQ_ERR, EventType::SRQ_LIMIT_REACHED] {
        cases.push((kind, About::SharedQueue(shared.as_raw()), EventSource::SharedReceiveQueue(shared.id())));
    }
    cases.extend(
        PAIRS
            .iter()
            .zip(0x00ab_cd00..)
            .map(|(&kind, number)| (kind, About::QueuePair(number), EventSource::QueuePair(number))),
    );
    cases.extend(
        PORTS.iter().zip(1..).map(|(&kind, port)| (kind, About::Port(port.into()), EventSource::Port(port))),
    );
    cases.extend(OTHERS.map(|kind| (kind, About::Nothing, EventSource::Device)));
    let is_tested = |kind: &EventType| cases.iter().any(|(tested, ..)| tested == kind);
    assert!(EventType::NAMED.iter().all(|(_, kind)| is_tested(kind)), "the header has no other");

    for &(kind, about, source) in &cases {
        rig.device.happen(kind, about);
        let told = events.try_next().unwrap();
        assert_eq!(told, Some(AsyncEvent { kind, source }));
        assert_eq!(events.try_next().unwrap(), None);
    }
    let kinds: Vec<_> = cases.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(rig.device.state().acknowledged, kinds);

    // And all of them together, in order.
    rig.device.state().acknowledged.clear();
    cases.iter().for_each(|&(kind, about, _)| rig.device.happen(kind, about));
    let told: Vec<_> = all(&mut events).iter().map(|event| (event.kind, event.source)).collect();
    assert!(told.iter().copied().eq(cases.iter().map(|&(kind, _, source)| (kind, source))));
    assert_eq!(rig.device.state().acknowledged, kinds);
}

#[test]
fn objects_are_told_apart() {
    let rig = Rig::new();
    rig.device.tell_events();
    let mut events = AsyncEvents::new(&rig.context).unwrap();
    let other = ring_verbs::CompletionQueueOptions::new(8).build::<Tracked>(&rig.context).unwrap();
    let shared = [(); 2].map(|()| SharedReceiveQueue::<Tracked>::new(&rig.domain, 8, 1).unwrap());
    assert_ne!(rig.queue.id(), other.id());
    assert_ne!(shared[0].id(), shared[1].id());
    rig.device.happen(EventType::CQ_ERR, About::CompletionQueue(other.as_raw()));
    rig.device.happen(EventType::SRQ_LIMIT_REACHED, About::SharedQueue(shared[1].as_raw()));
    let sources: Vec<_> = all(&mut events).iter().map(|event| event.source).collect();
    let expected =
        [EventSource::CompletionQueue(other.id()), EventSource::SharedReceiveQueue(shared[1].id())];
    assert_eq!(sources, expected);
}

/// Ports have small numbers; a driver that says otherwise has one that no port has.
#[test]
fn a_port_that_cannot_be_is_no_port() {
    let (device, _context, mut events) = listen();
    for number in [-1, 256, i32::MAX, i32::MIN] {
        device.happen(EventType::PORT_ERR, About::Port(number));
        assert_eq!(events.try_next().unwrap().unwrap().source, EventSource::Port(0), "{number}");
    }
    device.happen(EventType::PORT_ERR, About::Port(255));
    assert_eq!(events.try_next().unwrap().unwrap().source, EventSource::Port(255));
}

#[test]
fn an_event_says_what_it_is_about() {
    let (device, _context, mut events) = listen();
    let cases = [
        (
            EventType::QP_FATAL,
            About::QueuePair(17),
            "queue pair 17: a queue pair has failed and is in the error state",
        ),
        (EventType::PORT_ACTIVE, About::Port(2), "port 2: a port is up"),
        (EventType::DEVICE_FATAL, About::Nothing, "the device has failed"),
        (EventType(20), About::Nothing, "an event that this version does not know"),
    ];
    for (kind, about, text) in cases {
        device.happen(kind, about);
        assert_eq!(events.try_next().unwrap().unwrap().to_string(), text);
    }
}

#[test]
fn a_queue_asks_for_the_event_that_it_runs_low() {
    let rig = Rig::new();
    let mut shared = SharedReceiveQueue::<Tracked>::new(&rig.domain, 8, 1).unwrap();
    shared.arm_limit(3).unwrap();
    assert_eq!(rig.device.state().limits[0].srq_limit, 3);
    for answer in Answer::ways(libc::EINVAL) {
        rig.device.answer(Call::ModifySharedQueue, answer);
        let error = shared.arm_limit(9).unwrap_err();
        let operation = Operation::ModifySharedQueue;
        assert_eq!(error, Error::Refused { operation, errno: Errno(libc::EINVAL) }, "{answer:?}");
    }
}

#[test]
fn each_event_is_told_once_however_many_listen() {
    let (device, context, mut first) = listen();
    let mut second = AsyncEvents::new(&context).unwrap();
    device.happen(EventType::PORT_ERR, About::Port(1));
    device.happen(EventType::PORT_ACTIVE, About::Port(1));
    assert_eq!(second.try_next().unwrap().unwrap().kind, EventType::PORT_ERR);
    assert_eq!(first.try_next().unwrap().unwrap().kind, EventType::PORT_ACTIVE);
    assert_eq!((first.try_next(), second.try_next()), (Ok(None), Ok(None)));
    assert_eq!(device.state().acknowledged.len(), 2);
    // Whoever listens has the device open.
    drop((context, first));
    assert!(!device.state().is_closed);
    drop(second);
    device.require_ended();
}

#[test]
fn nothing_to_tell_is_no_error() {
    let (device, _context, mut events) = listen();
    assert_eq!(events.try_next(), Ok(None), "the queue is empty");
    device.happen(EventType::COMM_EST, About::QueuePair(5));
    for errno in [libc::EAGAIN, libc::EINTR] {
        device.answer(Call::NextEvent, Answer { returned: -1, errno });
        assert_eq!(events.try_next(), Ok(None), "{}", Errno(errno));
    }
    assert_eq!(device.state().acknowledged, []);
    assert_eq!(events.try_next().unwrap().unwrap().source, EventSource::QueuePair(5));
}

#[test]
fn a_device_that_is_gone_says_so() {
    let (device, _context, mut events) = listen();
    device.happen(EventType::PORT_ERR, About::Port(1));
    let operation = Operation::AsyncEvent;
    for errno in [libc::EIO, libc::EBADF, libc::ENODEV] {
        let expected = Error::Refused { operation, errno: Errno(errno) };
        let broken = Answer { returned: -1, errno };
        device.answer(Call::NextEvent, broken);
        assert_eq!(events.try_next(), Err(expected));
        device.answer(Call::NextEvent, broken);
        assert_eq!(events.wait(None), Err(expected));
    }
    // Nothing came, so that nothing is acknowledged.
    assert_eq!(device.state().acknowledged, []);
    assert!(events.try_next().unwrap().is_some());
}

#[test]
fn waiting_ends_with_an_event_or_with_the_time() {
    let (device, _context, mut events) = listen();
    assert_eq!(events.wait(Some(Duration::ZERO)), Ok(None));
    assert_eq!(events.wait(Some(Duration::from_millis(2))), Ok(None));
    // Somebody else may take the event that made the descriptor readable, and a signal may come.
    for errno in [libc::EAGAIN, libc::EINTR] {
        device.answer(Call::NextEvent, Answer { returned: -1, errno });
    }
    device.happen(EventType::SM_CHANGE, About::Port(1));
    assert_eq!(events.wait(None).unwrap().unwrap().kind, EventType::SM_CHANGE);
    assert_eq!(device.state().acknowledged, [EventType::SM_CHANGE]);
}

#[test]
fn a_context_whose_events_cannot_be_read_is_refused() {
    // It has no descriptor.
    let (device, context) = Scripted::open();
    let error = AsyncEvents::new(&context).unwrap_err();
    assert_eq!(error, Error::Refused { operation: Operation::AsyncEvent, errno: Errno(libc::EBADF) });
    drop(context);
    device.require_ended();
}
