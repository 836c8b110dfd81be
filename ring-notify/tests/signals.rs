//! Any number of signals that nobody has seen count as one, and whoever has seen it sleeps again: no time of a CPU goes
//! while nothing happens.

mod common;

use core::time::Duration;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use common::{Other, cpu_time, event_without_eventfd, in_time};
use ring_core::{HeapRegion, broadcast, spsc};
use ring_notify::{AnyOf, Event, EventKind, Options, RecvError, Strategy, WaitAnyError, Waits};

const SIGNALS: u64 = 1_000_000;
/// As many as one waits for at once.
const SOURCES: usize = 8;
const SILENCE: Duration = Duration::from_secs(2);
/// Longer than anybody spins, under a sanitizer too; on a busy machine one such wait may still be too short to sleep.
const UNTIL_IT_SLEEPS: Duration = Duration::from_millis(200);
/// One hundredth of the silence.
const IDLE: Duration = Duration::from_millis(20);

fn of_each_kind() -> [Event; 2] {
    let events = [Event::new().unwrap(), event_without_eventfd()];
    assert_eq!(events.each_ref().map(Event::kind), [EventKind::EventFd, EventKind::Pipe]);
    events
}

#[test]
fn a_million_signals_block_nobody_and_are_cleared_as_one() {
    for event in of_each_kind() {
        in_time(move || {
            (0..SIGNALS).for_each(|_| event.signal());
            assert!(event.clear());
            assert!(!event.clear(), "one takes all");
            event.signal();
            assert!(event.clear(), "it still works");
        });
    }
}

/// A copy of the descriptor, as another process would have it, is the same event.
#[test]
fn a_copy_of_the_descriptor_is_the_same_event() {
    for event in of_each_kind() {
        let copy = Event::try_from(event.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(copy.kind(), event.kind());
        copy.signal();
        assert!(event.clear());
        assert!(!copy.clear());
    }
}

type Receiver = ring_notify::Receiver<spsc::Consumer<u64, Arc<HeapRegion>>>;
type Sender = ring_notify::Sender<spsc::Producer<u64, Arc<HeapRegion>>>;

/// A ring whose receiver waits like this. Its sender has nothing to wait for.
fn ring(options: &Options, strategy: Strategy) -> (Sender, Receiver) {
    let layout = spsc::Layout::<u64>::new(4).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    let (producer, consumer) = spsc::create(region, &layout).unwrap();
    let receiver = options.clone().strategy(strategy).receiver(consumer).unwrap();
    (options.clone().sender(producer).unwrap(), receiver)
}

/// Where there is an event, it is what is slept on.
fn options(event: Option<Arc<Event>>) -> (Options, Strategy) {
    match event {
        Some(event) => (Options::new().messages_event(event), Strategy::event()),
        None => (Options::new(), Strategy::futex()),
    }
}

/// Waits in silence, and says how much time of a CPU that took this process.
fn time_of_silence(wait: impl FnOnce()) -> Duration {
    let (start, before) = (Instant::now(), cpu_time());
    wait();
    let spent = cpu_time() - before;
    assert!(start.elapsed() >= SILENCE, "it was over too early: {:?}", start.elapsed());
    spent
}

/// In a process of its own, since its time is what counts.
fn is_idle_afterwards(event: Option<Event>) -> Other {
    let event = event.map(Arc::new);
    let (options, strategy) = options(event.clone());
    Other::fork(|| {
        let (mut sender, mut receiver) = ring(&options, strategy);
        while receiver.counters().sleeps == 0 {
            assert_eq!(receiver.recv_timeout(UNTIL_IT_SLEEPS), Err(RecvError::TimedOut));
        }
        event.iter().for_each(|event| (0..SIGNALS).for_each(|_| event.signal()));
        sender.send(1).unwrap();
        assert_eq!(sender.counters().wakes_sent, 1, "it had announced that it sleeps");
        assert_eq!(receiver.recv(), Ok(1));
        let spent = time_of_silence(|| {
            assert_eq!(receiver.recv_timeout(SILENCE), Err(RecvError::TimedOut));
        });
        assert!(spent < IDLE, "{spent:?} of CPU time in {SILENCE:?} of silence");
    })
}

#[test]
fn one_who_waits_is_idle_afterwards() {
    let [eventfd, pipe] = of_each_kind();
    let others = [None, Some(eventfd), Some(pipe)].map(is_idle_afterwards);
    others.into_iter().for_each(Other::finish);
}

/// Of several sources each has something, and a million signals are there; then nothing more comes.
fn any_is_idle_afterwards(events: &[Arc<Event>]) -> Other {
    let event = |source| events.iter().cycle().nth(source).cloned();
    let (_, strategy) = options(event(0));
    Other::fork(|| {
        let (mut senders, mut receivers): (Vec<_>, Vec<_>) =
            (0..SOURCES).map(|source| ring(&options(event(source)).0, strategy)).unzip();
        let mut any = AnyOf::new(strategy);
        let wait = |any: &mut AnyOf, receivers: &mut [Receiver], timeout| {
            let mut handles: Vec<&mut dyn Waits> = Vec::new();
            receivers.iter_mut().for_each(|receiver| handles.push(receiver));
            any.wait(&mut handles, Some(timeout))
        };
        while any.counters().sleeps == 0 {
            let nothing = wait(&mut any, &mut receivers, UNTIL_IT_SLEEPS);
            assert_eq!(nothing, Err(WaitAnyError::TimedOut));
        }
        events.iter().for_each(|event| (0..SIGNALS / SOURCES as u64).for_each(|_| event.signal()));
        senders.iter_mut().for_each(|sender| sender.send(7).unwrap());
        let mut found = [0; SOURCES].map(|_| {
            let index = wait(&mut any, &mut receivers, Duration::from_secs(5)).unwrap();
            assert_eq!(receivers[index].try_recv(), Ok(Some(7)));
            index
        });
        found.sort_unstable();
        assert_eq!(found, core::array::from_fn(|index| index), "each once");
        let spent = time_of_silence(|| {
            assert_eq!(wait(&mut any, &mut receivers, SILENCE), Err(WaitAnyError::TimedOut));
        });
        assert!(spent < IDLE, "{spent:?} of CPU time in {SILENCE:?} of silence");
    })
}

#[test]
fn one_who_waits_for_eight_is_idle_afterwards() {
    let [eventfd, pipe] = of_each_kind().map(Arc::new);
    let each_its_own: [_; SOURCES] = core::array::from_fn(|_| Arc::new(Event::new().unwrap()));
    let events: [&[_]; 4] = [&[], &[eventfd], &[pipe], &each_its_own];
    let others = events.map(any_is_idle_afterwards);
    others.into_iter().for_each(Other::finish);
}

/// A million messages that nobody reads, each with a look at who sleeps: one wake at most.
#[test]
fn a_million_messages_to_one_who_does_not_read_wake_it_once() {
    for event in [None, Some(Event::new().unwrap()), Some(event_without_eventfd())] {
        in_time(move || {
            let (options, strategy) = options(event.map(Arc::new));
            let layout = broadcast::Layout::<u64>::new(8).unwrap();
            let region = HeapRegion::new(layout.bytes());
            layout.init(&region).unwrap();
            let mut sender =
                options.clone().sender(broadcast::Producer::<u64, _>::attach(&region).unwrap()).unwrap();
            let mut receiver = options
                .strategy(strategy)
                .receiver(broadcast::Consumer::<u64, _>::join(&region).unwrap())
                .unwrap();
            while receiver.counters().sleeps == 0 {
                assert_eq!(receiver.recv_timeout(UNTIL_IT_SLEEPS), Err(RecvError::TimedOut));
            }
            (0..SIGNALS).for_each(|number| sender.send(number).unwrap());
            let counters = sender.counters();
            assert_eq!((counters.wakes_sent, counters.wakes_saved), (1, SIGNALS - 1));
            assert!(matches!(receiver.recv(), Err(RecvError::Ring(broadcast::PopError::Lost { .. }))));
            while receiver.try_recv() != Ok(None) {}
            assert_eq!(receiver.recv_timeout(Duration::from_millis(1)), Err(RecvError::TimedOut));
        });
    }
}
