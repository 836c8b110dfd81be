//! How waits end: by a close, by the other side's going, in time, and not for other reasons.
//!
//! # Safety
//!
//! The handler of a signal does nothing. A signal goes to a thread of this process that runs.
#![allow(unsafe_code)]

mod common;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use common::{Bed, Other, Started, each_sleepy, in_time, mapped_again, segment, soon, started};
use ring_core::{HeapRegion, bytes, mpmc, spsc};
use ring_notify::{AnyOf, Options, RecvError, SendError, Strategy, WaitAnyError, WaitError, Waits};

type Region = Arc<HeapRegion>;
type Sender = ring_notify::Sender<spsc::Producer<u64, Region>>;
type Receiver = ring_notify::Receiver<spsc::Consumer<u64, Region>>;

fn one_slot(options: &Options) -> (Sender, Receiver) {
    let layout = spsc::Layout::<u64>::new(1).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    let (producer, consumer) = spsc::create(region, &layout).unwrap();
    (options.clone().sender(producer).unwrap(), options.clone().receiver(consumer).unwrap())
}

/// Options that wait in each way: asleep at once and for ever, spinning, and some of both.
fn each_way() -> Vec<Options> {
    let mut all = each_sleepy();
    all.push(Options::doorbell());
    all.push(Options::new().strategy(Strategy::futex().adaptive()));
    all.push(Options::new().strategy(Strategy::futex().spins(10).yields(3)));
    all
}

type ManyRx<R> = mpmc::Consumer<u64, R>;
type ManyTx<R> = mpmc::Producer<u64, R>;

fn of_many() -> mpmc::Layout<u64> {
    mpmc::Layout::new(1).unwrap().participants(3).unwrap()
}

fn many_in_the_heap() -> Region {
    let layout = of_many();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    layout.init(&region).unwrap();
    region
}

#[test]
fn a_close_wakes_all_who_wait_for_messages() {
    for options in each_sleepy() {
        let region = many_in_the_heap();
        let waiting = [0; 2].map(|_| {
            let consumer = ManyRx::attach(Arc::clone(&region)).unwrap();
            let mut receiver = options.clone().receiver(consumer).unwrap();
            started(move || receiver.recv())
        });
        let sender = options.sender(ManyTx::attach(region).unwrap()).unwrap();
        waiting.iter().for_each(Started::wait_until_it_sleeps);
        sender.close();
        for waiting in waiting {
            assert_eq!(waiting.end(), Err(RecvError::Ring(mpmc::PopError::Closed)));
        }
    }
}

#[test]
fn a_close_wakes_all_who_wait_for_room() {
    for options in each_sleepy() {
        let region = many_in_the_heap();
        ManyTx::attach(Arc::clone(&region)).unwrap().try_push(1).unwrap();
        let waiting = [0; 2].map(|_| {
            let producer = ManyTx::attach(Arc::clone(&region)).unwrap();
            let mut sender = options.clone().sender(producer).unwrap();
            started(move || sender.send(2))
        });
        let mut receiver = options.receiver(ManyRx::attach(region).unwrap()).unwrap();
        waiting.iter().for_each(Started::wait_until_it_sleeps);
        receiver.close();
        for waiting in waiting {
            assert_eq!(waiting.end(), Err(SendError::Ring(mpmc::PushError::Closed(2))));
        }
        assert_eq!(receiver.recv(), Ok(1), "what was sent can still be received");
    }
}

#[test]
fn a_close_wakes_all_in_other_processes() {
    for options in each_sleepy() {
        let layout = of_many();
        let segment = segment(layout.bytes(), |new| layout.init(new));
        let others = [0; 2].map(|_| {
            Other::fork(|| {
                let again = mapped_again(&segment);
                let mut receiver = options.clone().receiver(ManyRx::attach(&again).unwrap()).unwrap();
                assert_eq!(receiver.recv(), Err(RecvError::Ring(mpmc::PopError::Closed)));
            })
        });
        let sender = options.sender(ManyTx::attach(&segment).unwrap()).unwrap();
        soon(|| (2..=3).all(|place| sender.ring().participant(place).is_some_and(|owner| owner.held)));
        others.iter().for_each(Other::wait_until_it_sleeps);
        sender.close();
        in_time(move || others.into_iter().for_each(Other::finish));
    }
}

#[test]
fn one_message_among_several_who_wait_is_received_once() {
    for options in each_sleepy() {
        let region = many_in_the_heap();
        let waiting = [0; 2].map(|_| {
            let consumer = ManyRx::attach(Arc::clone(&region)).unwrap();
            let mut receiver = options.clone().receiver(consumer).unwrap();
            started(move || receiver.recv())
        });
        let mut sender = options.sender(ManyTx::attach(region).unwrap()).unwrap();
        waiting.iter().for_each(Started::wait_until_it_sleeps);
        sender.send(7).unwrap();
        let found = || waiting.iter().find_map(|waiting| waiting.is_over_within(Duration::from_millis(1)));
        let mut first = None;
        soon(|| {
            first = first.or_else(found);
            first.is_some()
        });
        assert_eq!(first, Some(Ok(7)));
        sender.close();
        let mut second = None;
        soon(|| {
            second = second.or_else(found);
            second.is_some()
        });
        assert_eq!(second, Some(Err(RecvError::Ring(mpmc::PopError::Closed))));
    }
}

/// To drop a receiver that has kept credit back returns it, and whoever waits for it must not sleep on.
#[test]
fn dropping_a_receiver_wakes_who_waits_for_room() {
    const DEPTH: u64 = 64;
    for options in each_sleepy() {
        let layout = spsc::Layout::<u64>::new(DEPTH).unwrap();
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (producer, consumer) = spsc::create(region, &layout).unwrap();
        let mut sender = options.clone().sender(producer).unwrap();
        let mut receiver = options.receiver(consumer).unwrap();
        (0..DEPTH).for_each(|number| sender.send(number).unwrap());
        let waiting = started(move || sender.send(DEPTH));
        waiting.wait_until_it_sleeps();
        receiver.consume(|consumer| assert_eq!(consumer.try_pop(), Ok(0)));
        drop(receiver);
        assert_eq!(waiting.end(), Ok(()));
    }
}

#[test]
fn dropping_a_receiver_of_bytes_wakes_who_waits_for_room() {
    for options in each_sleepy() {
        let layout = bytes::Layout::new(64).unwrap();
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (producer, consumer) = bytes::create(region, &layout).unwrap();
        let mut sender = options.clone().sender(producer).unwrap();
        let mut receiver = options.receiver(consumer).unwrap();
        while sender.try_send(&[1; 24]).unwrap() {}
        let waiting = started(move || sender.send(&[2; 24]));
        waiting.wait_until_it_sleeps();
        while receiver.try_recv(&mut [0; 24]).unwrap().is_some() {}
        drop(receiver);
        assert_eq!(waiting.end(), Ok(()));
    }
}

/// Does what must be over after `time`, and not before.
fn takes<T>(time: Duration, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let found = act();
    let taken = start.elapsed();
    assert!(taken >= time, "over after {taken:?}, before {time:?}");
    assert!(taken < time + Duration::from_secs(5), "over after {taken:?} only");
    found
}

#[test]
fn timeouts_are_kept() {
    for options in each_way() {
        let (mut sender, mut receiver) = one_slot(&options);
        for time in [0, 1, 30].map(Duration::from_millis) {
            assert_eq!(takes(time, || receiver.recv_timeout(time)), Err(RecvError::TimedOut));
            assert_eq!(
                takes(time, || receiver.recv_slice_timeout(&mut [0; 2], time)),
                Err(RecvError::TimedOut)
            );
            assert_eq!(takes(time, || receiver.ready(Some(time))), Err(WaitError::TimedOut));
        }
        sender.send(1).unwrap();
        for time in [0, 1, 30].map(Duration::from_millis) {
            assert_eq!(takes(time, || sender.send_timeout(2, time)), Err(SendError::TimedOut(2)));
            assert_eq!(takes(time, || sender.send_slice_timeout(&[2], time)), Err(SendError::TimedOut(())));
            assert_eq!(takes(time, || sender.ready(Some(time))), Err(WaitError::TimedOut));
        }
        assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(1), "what is there needs no time");
        assert_eq!(receiver.try_recv(), Ok(None), "which gives the slot back");
        assert_eq!(sender.send_timeout(2, Duration::ZERO), Ok(()));
        assert_eq!(receiver.ready(Some(Duration::ZERO)), Ok(()));
    }
}

#[test]
fn timeouts_of_waits_for_several_are_kept() {
    for strategy in [Strategy::futex(), Strategy::event(), Strategy::doorbell()] {
        let Bed::Events([messages, _]) = Bed::events() else { unreachable!() };
        let options = Options::new().messages_event(messages);
        let [(_one_sender, mut one), (mut sender, mut other)] = [one_slot(&options), one_slot(&options)];
        let mut any = AnyOf::new(strategy);
        let mut wait = |time| {
            let handles: &mut [&mut dyn Waits] = &mut [&mut one, &mut other];
            any.wait(handles, Some(time))
        };
        for time in [0, 1, 30].map(Duration::from_millis) {
            assert_eq!(takes(time, || wait(time)), Err(WaitAnyError::TimedOut));
        }
        sender.send(1).unwrap();
        assert_eq!(wait(Duration::ZERO), Ok(1));
        assert_eq!(wait(Duration::MAX), Ok(1));
    }
}

/// So far away that no clock gets there.
#[test]
fn the_longest_timeouts_are_for_ever() {
    let far =
        [Duration::MAX, Duration::from_secs(u64::MAX / 2), Duration::from_secs(i64::MAX.unsigned_abs() - 1)];
    for time in far {
        for options in each_way() {
            let (mut sender, mut receiver) = one_slot(&options.slice(Some(time)));
            let waiting = started(move || (receiver.recv_timeout(time), receiver.recv_timeout(time)));
            std::thread::sleep(Duration::from_millis(20));
            assert!(waiting.is_over_within(Duration::ZERO).is_none());
            sender.send(1).unwrap();
            sender.send_timeout(2, time).unwrap();
            assert_eq!(waiting.end(), (Ok(1), Ok(2)));
        }
    }
}

extern "C" fn ignore(_: libc::c_int) {}

/// A signal with a handler ends the system call, and not the wait.
#[test]
fn a_signal_does_not_end_a_wait() {
    let set_handler = |flags| {
        // SAFETY: of integers and none, for which all zeroes are valid.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = (ignore as extern "C" fn(libc::c_int)) as usize;
        action.sa_flags = flags;
        // SAFETY: the handler does nothing.
        let result = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut()) };
        assert_eq!(result, 0);
    };
    for flags in [0, libc::SA_RESTART] {
        set_handler(flags);
        for options in each_sleepy() {
            let (mut sender, mut receiver) = one_slot(&options);
            let watch = receiver.watch();
            let waiting = started(move || {
                let timed_out =
                    takes(Duration::from_millis(200), || receiver.recv_timeout(Duration::from_millis(200)));
                (timed_out, receiver.recv())
            });
            while watch.counters().sleeps == 0 {
                std::thread::yield_now();
            }
            for _ in 0..300 {
                // SAFETY: a thread of this process that has not ended, since nothing was sent to it.
                let result =
                    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), waiting.id, libc::SIGUSR1) };
                assert_eq!(result, 0);
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(watch.counters().sleeps > 1, "it went to sleep again");
            sender.send(1).unwrap();
            assert_eq!(waiting.end(), (Err(RecvError::TimedOut), Ok(1)));
        }
    }
}
