//! Handles of one ring that wait in different ways, leave, come, panic and leak grants while others sleep: no wake-up is
//! lost. No slices, so a lost one is a test that does not end in time.

mod common;

use core::panic::AssertUnwindSafe;
use std::os::fd::OwnedFd;
use std::panic::catch_unwind;
use std::sync::Arc;

use common::{Bed, started};
use ring_core::{HeapRegion, Region, mpmc, spsc};
use ring_notify::{AnyOf, Barrier, Error, Event, Options, Receiver, Sender, Strategy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::pipe;

type Memory = Arc<HeapRegion>;
type Tx = Sender<mpmc::Producer<u64, Memory>>;
type Rx = Receiver<mpmc::Consumer<u64, Memory>>;

const EACH: [Barrier; 2] = [Barrier::Asymmetric, Barrier::Plain];

fn of_many(depth: u64) -> Memory {
    let layout = mpmc::Layout::<u64>::new(depth).unwrap().participants(4).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    layout.init(&region).unwrap();
    region
}

fn sender(region: &Memory, options: Options) -> Tx {
    options.sender(mpmc::Producer::attach(Arc::clone(region)).unwrap()).unwrap()
}

fn receiver(region: &Memory, options: Options) -> Rx {
    options.receiver(mpmc::Consumer::attach(Arc::clone(region)).unwrap()).unwrap()
}

/// A notice that somebody sleeps on an event is not taken back by who cannot signal that event.
#[test]
fn who_has_not_the_event_leaves_the_notice_to_who_has() {
    for barrier in EACH {
        for stranger in [Bed::Futex, Bed::events()] {
            let (region, bed) = (of_many(2), Bed::events());
            let mut sending = sender(&region, bed.options(barrier));
            let mut sleeping = receiver(&region, bed.options(barrier));
            let waiting = started(move || sleeping.recv());
            waiting.wait_until_it_sleeps();
            // Each of these wakes its own kind.
            let mut stranger = receiver(&region, stranger.options(barrier));
            stranger.consume(|_| ());
            drop(stranger);
            // Whatever that woke is asleep again.
            std::thread::sleep(core::time::Duration::from_millis(20));
            waiting.wait_until_it_sleeps();
            sending.send(7).unwrap();
            assert_eq!(waiting.end(), Ok(7));
        }
    }
}

/// One of two senders has been told of no event. What it sends is not told of, but the other's next message is.
#[test]
fn a_sender_without_the_event_does_not_keep_others_from_waking() {
    for barrier in EACH {
        let (region, bed) = (of_many(4), Bed::events());
        let mut silent = sender(&region, Bed::Futex.options(barrier));
        let mut sending = sender(&region, bed.options(barrier));
        let mut sleeping = receiver(&region, bed.options(barrier));
        let waiting = started(move || [sleeping.recv(), sleeping.recv()]);
        waiting.wait_until_it_sleeps();
        silent.send(1).unwrap();
        sending.send(2).unwrap();
        assert_eq!(waiting.end(), [Ok(1), Ok(2)]);
    }
}

/// What was published before a panic is told of, also where the panic is caught.
#[test]
fn a_panic_in_place_leaves_nobody_asleep() {
    for bed in [Bed::Futex, Bed::events()] {
        let layout = spsc::Layout::<u64>::new(1).unwrap();
        let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
        let mut sending = bed.options(Barrier::Asymmetric).sender(producer).unwrap();
        let mut sleeping = bed.options(Barrier::Asymmetric).receiver(consumer).unwrap();
        let waiting = started(move || {
            let received = sleeping.recv();
            (sleeping, received)
        });
        waiting.wait_until_it_sleeps();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            sending.publish(|producer| {
                producer.try_push(1).unwrap();
                panic!("after the message");
            });
        }));
        assert!(panic.is_err());
        let (mut receiving, received) = waiting.end();
        assert_eq!(received, Ok(1));
        assert_eq!(receiving.try_recv(), Ok(None), "which gives the slot back");

        sending.send(2).unwrap();
        let waiting = started(move || sending.send(3));
        waiting.wait_until_it_sleeps();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            receiving.consume(|consumer| {
                assert_eq!(consumer.try_pop(), Ok(2));
                assert!(consumer.try_pop().is_err(), "which gives the slot back");
                panic!("after the message");
            });
        }));
        assert!(panic.is_err());
        assert_eq!(waiting.end(), Ok(()));
    }
}

/// A grant that was leaked is taken back, and whoever waits behind it goes on.
#[test]
fn a_leaked_grant_leaves_nobody_asleep() {
    let region = of_many(2);
    let options = || Bed::Futex.options(Barrier::Asymmetric);
    let (mut leaking, mut sending) = (sender(&region, options()), sender(&region, options()));
    let mut sleeping = receiver(&region, options());
    // What a new handle may find behind it.
    assert_eq!(sleeping.try_recv(), Ok(None));
    leaking.publish(|producer| core::mem::forget(producer.try_reserve().unwrap()));
    sending.send(5).unwrap();
    let waiting = started(move || {
        sleeping.ready(None).unwrap();
        let received = sleeping.try_recv();
        (sleeping, received)
    });
    // It finds no room, and takes its reservation back on the way.
    sending.send(6).map(drop).unwrap_or(());
    let (mut receiving, received) = waiting.end();
    assert_eq!(received, Ok(Some(5)));

    // A message that was looked at goes to the other one.
    receiving.consume(|consumer| core::mem::forget(consumer.try_peek()));
    let mut other = receiver(&region, options());
    let waiting = started(move || other.recv());
    assert_eq!(waiting.end(), Ok(6));
    drop(leaking);
}

/// The same word twice, and one more that stays silent.
#[test]
fn two_handles_of_one_ring_are_waited_for_together() {
    for bed in [Bed::Futex, Bed::events()] {
        let strategy = if matches!(bed, Bed::Futex) { Strategy::futex() } else { Strategy::event() };
        let (region, silent) = (of_many(1), of_many(1));
        let mut sending = sender(&region, bed.options(Barrier::Asymmetric));
        let [mut one, mut two] = [0; 2].map(|_| receiver(&region, bed.options(Barrier::Asymmetric)));
        let mut three = receiver(&silent, bed.options(Barrier::Asymmetric));
        const MESSAGES: u64 = 500;
        let waiting = started(move || {
            let mut any = AnyOf::new(strategy.spins(0));
            let mut received = 0;
            while received < MESSAGES {
                let index = any.wait(&mut [&mut one, &mut three, &mut two], None).unwrap();
                let found = match index {
                    0 => one.try_recv(),
                    1 => three.try_recv(),
                    _ => two.try_recv(),
                };
                if let Some(number) = found.unwrap() {
                    assert_eq!(number, received);
                    received += 1;
                }
            }
        });
        (0..MESSAGES).for_each(|number| sending.send(number).unwrap());
        waiting.end();
    }
}

/// Handles go to other threads, and figures are read from any.
#[test]
fn what_may_go_where() {
    fn goes<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    goes::<Tx>();
    goes::<Rx>();
    goes::<AnyOf>();
    goes::<Options>();
    is_shared::<ring_notify::Watch>();
    is_shared::<ring_notify::Event>();
    is_shared::<Strategy>();
    fn of<R: Region + Send>() {
        goes::<Sender<spsc::Producer<u64, R>>>();
        goes::<Receiver<spsc::Consumer<u64, R>>>();
    }
    of::<Memory>();
}

/// What is no event, as a wrong or hostile peer may pass it, is refused.
#[test]
fn what_is_no_event_is_refused() {
    let (one_end, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let open = |path| OwnedFd::from(std::fs::File::open(path).unwrap());
    for odd in [one_end.into(), open("/dev/zero"), open("/dev/null"), open("/"), open("/proc/self/exe")] {
        assert_eq!(Event::try_from(odd).err(), Some(Error::NotAnEvent));
    }
}

/// What looks like an event and cannot be cleared keeps nobody awake: it is looked once a millisecond.
#[test]
fn what_cannot_be_cleared_is_not_slept_on() {
    let (read_end, _) = pipe().unwrap();
    let layout = spsc::Layout::<u64>::new(1).unwrap();
    let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let options = Options::new().slice(None).strategy(Strategy::event().spins(0));
    let options = options.messages_event(Event::try_from(read_end).unwrap());
    let mut receiving = options.receiver(consumer).unwrap();
    let timeout = core::time::Duration::from_millis(200);
    assert_eq!(receiving.recv_timeout(timeout), Err(ring_notify::RecvError::TimedOut));
    let sleeps = receiving.counters().sleeps;
    assert!(sleeps < 300, "{sleeps} in {timeout:?}");
    assert_eq!(receiving.report().sleeps_on, ring_notify::SleepsOn::Clock);
    drop(producer);
}

/// A loop of the caller's own, in poll: whoever has armed it is signalled, and nothing that came before is missed.
#[test]
fn an_event_works_in_a_loop_of_ones_own() {
    const MESSAGES: u64 = 2_000;
    let event = Arc::new(Event::new().unwrap());
    let layout = spsc::Layout::<u64>::new(4).unwrap();
    let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let options = Options::new().messages_event(Arc::clone(&event));
    let mut sending = options.clone().sender(producer).unwrap();
    let mut receiving = options.receiver(consumer).unwrap();
    let sender = std::thread::spawn(move || {
        for number in 0..MESSAGES {
            sending.send(number).unwrap();
            if number % 64 == 0 {
                std::thread::sleep(core::time::Duration::from_micros(200));
            }
        }
        sending.close();
    });
    let mut expected = 0;
    'all: loop {
        loop {
            match receiving.try_recv() {
                Ok(Some(number)) => assert_eq!(number, expected),
                Ok(None) => break,
                Err(spsc::PopError::Closed) => break 'all,
                Err(error) => panic!("{error}"),
            }
            expected += 1;
        }
        if receiving.arm().unwrap() {
            let mut polled = [PollFd::new(&event, PollFlags::IN)];
            let bound = Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_eq!(poll(&mut polled, Some(&bound)), Ok(1), "nobody signalled");
        }
    }
    assert_eq!(expected, MESSAGES);
    sender.join().unwrap();
    assert!(receiving.counters().sleeps > 0);

    let (_producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    assert_eq!(Options::new().receiver(consumer).unwrap().arm(), Err(Error::EventMissing));
}
