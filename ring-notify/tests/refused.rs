//! Where the kernel refuses what waiting would like best, something else is taken, and reported: tried with filters of
//! system calls, as sandboxes have them.

mod common;

use core::ffi::{c_int, c_long};
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use common::{
    Bed, Other, event_without_eventfd, in_time, mapped_again, one_slot, refuse, soon, unlocked, word,
};
use ring_core::spsc;
use ring_notify::{
    AnyOf, Barrier, Event, EventKind, Options, RecvError, Sleeping, SleepsOn, Strategy, Waits, Waking,
};
use ring_shm::Segment;

const EXCHANGES: u64 = 2_000;
const ERRORS: [c_int; 2] = [libc::EPERM, libc::ENOSYS];
const MEMBARRIER: &[c_long] = &[libc::SYS_membarrier];
const ALL: &[c_long] = &[libc::SYS_membarrier, libc::SYS_futex_waitv, libc::SYS_eventfd2];

type Sender<'a> = ring_notify::Sender<spsc::Producer<u64, &'a Segment>>;
type Receiver<'a> = ring_notify::Receiver<spsc::Consumer<u64, &'a Segment>>;

fn sender(segment: &Segment, options: Options) -> Sender<'_> {
    options.sender(spsc::Producer::attach(segment).unwrap()).unwrap()
}

fn receiver(segment: &Segment, options: Options) -> Receiver<'_> {
    options.receiver(spsc::Consumer::attach(segment).unwrap()).unwrap()
}

/// Who is there first: a side that is refused something asks the others for fences, and they may have begun without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Refused,
    Usual,
}

/// A word in memory of both, for who is there.
struct Steps(Segment);

impl Steps {
    fn new() -> Self {
        Self(unlocked().create_anonymous(64).unwrap().publish())
    }

    fn done(&self, step: u64) {
        word(&self.0, 0).fetch_max(step, Ordering::AcqRel);
    }

    fn wait_for(&self, step: u64) {
        soon(|| word(&self.0, 0).load(Ordering::Acquire) >= step);
    }
}

/// Both ways between a process to which these calls are refused, and another.
fn ping_pong(calls: &[c_long], error: c_int, beds: &[Bed; 2], first: First) {
    let [to, from] = [one_slot(), one_slot()];
    let steps = Steps::new();
    let options = || beds.each_ref().map(|bed| bed.options(Barrier::Asymmetric));
    let other = Other::fork(|| {
        let [to, from] = [mapped_again(&to), mapped_again(&from)];
        refuse(calls, error);
        if first == First::Usual {
            steps.wait_for(1);
        }
        let [to_options, from_options] = options();
        let (mut receiver, mut sender) = (receiver(&to, to_options), sender(&from, from_options));
        let sleeping = match first {
            First::Refused => Sleeping::Fence,
            First::Usual => Sleeping::FenceAndShortSlices,
        };
        for report in [receiver.report(), sender.report()] {
            assert_eq!((report.waking, report.sleeping), (Waking::FenceAndLook, sleeping));
        }
        steps.done(2);
        for number in 0..EXCHANGES {
            assert_eq!(receiver.recv(), Ok(number));
            sender.send(number + 1).unwrap();
        }
        assert_eq!(receiver.recv(), Err(RecvError::Ring(spsc::PopError::Closed)));
        assert_ne!(receiver.report().sleeps_on, SleepsOn::Clock, "that much it has");
    });
    let options = options();
    in_time(move || {
        if first == First::Refused {
            steps.wait_for(2);
        }
        let [to_options, from_options] = options;
        let (mut sender, mut receiver) = (sender(&to, to_options), receiver(&from, from_options));
        let waking = match first {
            First::Refused => Waking::FenceAndLook,
            First::Usual => Waking::Look,
        };
        assert_eq!((sender.report().waking, receiver.report().waking), (waking, waking));
        assert_eq!(receiver.report().sleeping, Sleeping::Membarrier, "here it may");
        steps.done(1);
        steps.wait_for(2);
        for number in 0..EXCHANGES {
            sender.send(number).unwrap();
            assert_eq!(sender.report().waking, Waking::FenceAndLook, "it has been asked to");
            assert_eq!(receiver.recv(), Ok(number + 1));
        }
        assert_eq!(receiver.report().waking, Waking::FenceAndLook);
        sender.close();
    });
    other.finish();
}

#[test]
fn without_membarrier_both_sides_fence() {
    for first in [First::Refused, First::Usual] {
        for error in ERRORS {
            ping_pong(MEMBARRIER, error, &[Bed::Futex, Bed::Futex], first);
            ping_pong(MEMBARRIER, error, &[Bed::events(), Bed::events()], first);
        }
    }
}

/// In threads, since a filter is a thread's.
fn with_filter<T: Send + 'static>(
    calls: &'static [c_long],
    error: c_int,
    act: impl FnOnce() -> T + Send + 'static,
) -> T {
    in_time(move || {
        refuse(calls, error);
        act()
    })
}

#[test]
fn without_eventfd_a_pipe_is_the_event() {
    for error in ERRORS {
        let event = || {
            let event = with_filter(&[libc::SYS_eventfd2], error, || Event::new().unwrap());
            assert_eq!(event.kind(), EventKind::Pipe);
            Arc::new(event)
        };
        let beds = [0; 2].map(|_| Bed::Events([event(), event()]));
        ping_pong(ALL, error, &beds, First::Usual);
        ping_pong(ALL, error, &beds, First::Refused);
    }
}

#[test]
fn without_eventfd_and_pipe_there_is_no_event() {
    let calls = &[libc::SYS_eventfd2, libc::SYS_pipe2];
    let error = with_filter(calls, libc::EPERM, || Event::new().unwrap_err());
    assert_eq!(error, ring_notify::Error::NoEvent { errno: libc::EPERM });
    assert!(error.to_string().contains("wait by futex instead"), "{error}");
}

/// Waits for two rings at once, of which messages come in turn.
fn any_of_two(calls: &[c_long], error: c_int, bed: &Bed, strategy: Strategy, sleeps_on: SleepsOn) {
    const MESSAGES: u64 = 200;
    let rings = [one_slot(), one_slot()];
    let options = || bed.options(Barrier::Asymmetric);
    let other = Other::fork(|| {
        let rings = rings.each_ref().map(mapped_again);
        refuse(calls, error);
        let mut receivers = rings.each_ref().map(|ring| receiver(ring, options()));
        let mut any = AnyOf::new(strategy.spins(0));
        for number in 0..MESSAGES {
            let mut handles: Vec<&mut dyn Waits> = Vec::new();
            receivers.iter_mut().for_each(|receiver| handles.push(receiver));
            let index = any.wait(&mut handles, None).unwrap();
            assert_eq!(index as u64, number % 2);
            assert_eq!(receivers[index].try_recv(), Ok(Some(number)));
        }
        assert!(any.counters().sleeps > 0);
        assert_eq!(any.sleeps_on(), sleeps_on);
    });
    let options = [options(), options()];
    in_time(move || {
        let mut options = options.into_iter();
        let mut senders = rings.each_ref().map(|ring| sender(ring, options.next().unwrap()));
        for number in 0..MESSAGES {
            let index = usize::try_from(number % 2).unwrap();
            senders[index].send(number).unwrap();
            // So that it is asleep again, and the order is known.
            std::thread::sleep(Duration::from_millis(3));
        }
    });
    other.finish();
}

#[test]
fn without_futex_waitv_several_rings_are_looked_at_by_the_clock() {
    for error in ERRORS {
        let calls = &[libc::SYS_futex_waitv];
        any_of_two(calls, error, &Bed::Futex, Strategy::futex(), SleepsOn::Clock);
        any_of_two(ALL, error, &Bed::Futex, Strategy::futex(), SleepsOn::Clock);
    }
}

#[test]
fn where_all_is_granted_several_rings_are_slept_on() {
    let unused = &[libc::SYS_getpriority];
    any_of_two(unused, libc::EPERM, &Bed::Futex, Strategy::futex(), SleepsOn::Futex);
    any_of_two(unused, libc::EPERM, &Bed::events(), Strategy::event(), SleepsOn::Event);
}

#[test]
fn with_pipes_several_rings_need_no_futex() {
    let beds = Bed::Events([0; 2].map(|_| Arc::new(event_without_eventfd())));
    any_of_two(ALL, libc::ENOSYS, &beds, Strategy::event(), SleepsOn::Event);
}

/// Who cannot sleep at all looks once a millisecond, and cannot wake others: they look again after their slice.
#[test]
fn without_the_futex_itself_both_sides_look_by_the_clock() {
    const FEW: u64 = 50;
    for error in ERRORS {
        for (call, bed) in [(libc::SYS_futex, Bed::Futex), (libc::SYS_ppoll, Bed::events())] {
            let [to, from] = [one_slot(), one_slot()];
            let options = || bed.options(Barrier::Asymmetric).slice(Some(Duration::from_millis(2)));
            let other = Other::fork(|| {
                let [to, from] = [mapped_again(&to), mapped_again(&from)];
                refuse(&[call], error);
                let (mut receiver, mut sender) = (receiver(&to, options()), sender(&from, options()));
                assert_ne!(receiver.report().sleeps_on, SleepsOn::Clock, "it has not tried yet");
                for number in 0..FEW {
                    assert_eq!(receiver.recv(), Ok(number));
                    sender.send(number + 1).unwrap();
                }
                assert_eq!(receiver.report().sleeps_on, SleepsOn::Clock);
                assert_eq!(receiver.counters().wakes_received, 0, "nobody can wake it");
                assert!(receiver.counters().found_unwoken > 0);
            });
            let options = [options(), options()];
            in_time(move || {
                let [to_options, from_options] = options;
                let (mut sender, mut receiver) = (sender(&to, to_options), receiver(&from, from_options));
                for number in 0..FEW {
                    sender.send(number).unwrap();
                    // So that the other one has to wait.
                    std::thread::sleep(Duration::from_millis(2));
                    assert_eq!(receiver.recv(), Ok(number + 1));
                }
            });
            other.finish();
        }
    }
}

/// A doorbell makes no system call that could be refused: neither to be made, nor to wait.
#[test]
fn a_doorbell_needs_nothing() {
    let calls = &[libc::SYS_membarrier, libc::SYS_futex, libc::SYS_ppoll, libc::SYS_sched_yield];
    let segment = one_slot();
    let other = Other::fork(|| {
        let again = mapped_again(&segment);
        common::forbid(calls);
        let mut receiver = receiver(&again, Options::doorbell());
        assert_eq!(receiver.report().waking, Waking::Never);
        assert_eq!(receiver.report().sleeping, Sleeping::Never);
        assert_eq!(receiver.report().sleeps_on, SleepsOn::Nothing);
        (0..EXCHANGES).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
    });
    in_time(move || {
        let mut sender = sender(&segment, Options::doorbell());
        (0..EXCHANGES).for_each(|number| sender.send(number).unwrap());
    });
    other.finish();
}

/// A program may lock itself in after it has made its handles.
#[test]
fn without_membarrier_from_some_time_on_both_sides_fence_from_then_on() {
    for is_of_several in [false, true] {
        let segment = one_slot();
        let steps = Steps::new();
        let other = Other::fork(|| {
            let again = mapped_again(&segment);
            let mut receiver = receiver(&again, Bed::Futex.options(Barrier::Asymmetric));
            assert_eq!(receiver.report().sleeping, Sleeping::Membarrier);
            refuse(MEMBARRIER, libc::EPERM);
            steps.wait_for(1);
            steps.done(2);
            let mut any = AnyOf::new(Strategy::futex().spins(0));
            for number in 0..EXCHANGES {
                if is_of_several {
                    assert_eq!(any.wait(&mut [&mut receiver], None), Ok(0));
                }
                assert_eq!(receiver.recv(), Ok(number));
            }
            assert_eq!(receiver.report().sleeping, Sleeping::FenceAndShortSlices);
        });
        in_time(move || {
            let mut sender = sender(&segment, Bed::Futex.options(Barrier::Asymmetric));
            steps.done(1);
            steps.wait_for(2);
            // So that the other one has to wait.
            std::thread::sleep(Duration::from_millis(20));
            (0..EXCHANGES).for_each(|number| sender.send(number).unwrap());
            assert_eq!(sender.report().waking, Waking::FenceAndLook, "it has been asked to");
        });
        other.finish();
    }
}

/// Of many, each may wake its own kind as well: one that issues no fence does so for both.
#[test]
fn who_is_refused_membarrier_knows_of_its_own_kind_that_omits_fences() {
    let layout = ring_core::mpmc::Layout::<u64>::new(2).unwrap().participants(2).unwrap();
    let segment = common::segment(layout.bytes(), |new| layout.init(new));
    let options = || Bed::Futex.options(Barrier::Asymmetric);
    let consumer = ring_core::mpmc::Consumer::<u64, _>::attach(&segment).unwrap();
    let usual = options().receiver(consumer).unwrap();
    assert_eq!(usual.report().waking, Waking::Look);
    let other = Other::fork(|| {
        let again = mapped_again(&segment);
        refuse(MEMBARRIER, libc::EPERM);
        let consumer = ring_core::mpmc::Consumer::<u64, _>::attach(&again).unwrap();
        let refused = options().receiver(consumer).unwrap();
        assert_eq!(refused.report().sleeping, Sleeping::FenceAndShortSlices);
    });
    other.finish();
}
