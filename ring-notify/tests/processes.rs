//! Two processes and more that have the rings at different addresses: rings as small as can be, no spinning, no slices
//! and no time-outs, so that a wake-up that is lost is a test that does not end.
//!
//! With `RING_LONG=1` in the environment the runs are as long as a release is worth.

mod common;

use core::sync::atomic::Ordering;

use common::{Bed, Other, count, in_time, mapped_again, one_slot, segment, unlocked, word};
use ring_core::{broadcast, bytes, mpmc, spsc};
use ring_notify::{Barrier, Options, RecvError, Waking};

const ALIKE: [[Barrier; 2]; 2] =
    [[Barrier::Asymmetric, Barrier::Asymmetric], [Barrier::Plain, Barrier::Plain]];
const MIXED: [[Barrier; 2]; 2] =
    [[Barrier::Asymmetric, Barrier::Plain], [Barrier::Plain, Barrier::Asymmetric]];

/// Messages go to another process and come back, one at a time.
fn ping_pong(beds: [Bed; 2], [here, there]: [Barrier; 2], exchanges: u64) {
    let [to, from] = [one_slot(), one_slot()];
    let options = |barrier| [beds[0].options(barrier), beds[1].options(barrier)];
    let other = Other::fork(|| {
        let [to, from] = [mapped_again(&to), mapped_again(&from)];
        let [to_options, from_options] = options(there);
        let mut receiver = to_options.receiver(spsc::Consumer::<u64, _>::attach(&to).unwrap()).unwrap();
        let mut sender = from_options.sender(spsc::Producer::<u64, _>::attach(&from).unwrap()).unwrap();
        for number in 0..exchanges {
            assert_eq!(receiver.recv(), Ok(number));
            sender.send(number + 1).unwrap();
        }
        assert_eq!(receiver.recv(), Err(RecvError::Ring(spsc::PopError::Closed)));
        assert!(receiver.counters().sleeps > 0, "it has slept");
    });
    let [to_options, from_options] = options(here);
    in_time(move || {
        let mut sender = to_options.sender(spsc::Producer::<u64, _>::attach(&to).unwrap()).unwrap();
        let mut receiver = from_options.receiver(spsc::Consumer::<u64, _>::attach(&from).unwrap()).unwrap();
        for number in 0..exchanges {
            sender.send(number).unwrap();
            assert_eq!(receiver.recv(), Ok(number + 1));
        }
        // With mixed barriers a side may have slices of a millisecond nevertheless.
        let found_unwoken = [sender.counters().found_unwoken, receiver.counters().found_unwoken];
        assert!(here != there || found_unwoken == [0, 0], "{found_unwoken:?}");
        sender.close();
    });
    other.finish();
}

#[test]
fn ping_pong_by_futex_ends() {
    for barriers in ALIKE {
        ping_pong([Bed::Futex, Bed::Futex], barriers, count(100_000, 10_000_000));
    }
}

#[test]
fn ping_pong_by_event_ends() {
    for barriers in ALIKE {
        ping_pong([Bed::events(), Bed::events()], barriers, count(100_000, 10_000_000));
    }
}

#[test]
fn each_side_may_choose_its_own_barrier() {
    for barriers in MIXED {
        ping_pong([Bed::Futex, Bed::Futex], barriers, count(5_000, 1_000_000));
        ping_pong([Bed::events(), Bed::events()], barriers, count(5_000, 1_000_000));
    }
}

/// Options of both sides, for each bed and each pair of barriers.
fn each_pair() -> Vec<[Options; 2]> {
    let mut pairs = Vec::new();
    for bed in Bed::each() {
        for barriers in ALIKE.into_iter().chain(MIXED) {
            pairs.push(barriers.map(|barrier| bed.options(barrier)));
        }
    }
    pairs
}

#[test]
fn a_stream_through_one_slot_ends() {
    let messages = count(4_000, 1_000_000);
    for [here, there] in each_pair() {
        let segment = one_slot();
        let other = Other::fork(|| {
            let again = mapped_again(&segment);
            let consumer = spsc::Consumer::<u64, _>::attach(&again).unwrap();
            let mut receiver = there.receiver(consumer).unwrap();
            (0..messages).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
            assert_eq!(receiver.recv(), Err(RecvError::Ring(spsc::PopError::Closed)));
        });
        in_time(move || {
            let mut sender = here.sender(spsc::Producer::<u64, _>::attach(&segment).unwrap()).unwrap();
            (0..messages).for_each(|number| sender.send(number).unwrap());
            sender.close();
        });
        other.finish();
    }
}

#[test]
fn a_byte_ring_carries_messages_of_all_lengths() {
    let messages = count(4_000, 1_000_000);
    let length = |number: u64| usize::try_from(number % 24).unwrap() + 1;
    for [here, there] in each_pair() {
        let layout = bytes::Layout::new(64).unwrap();
        let segment = segment(layout.bytes(), |new| layout.init(new));
        let other = Other::fork(|| {
            let again = mapped_again(&segment);
            let mut receiver = there.receiver(bytes::Consumer::attach(&again).unwrap()).unwrap();
            let mut found = [0; 24];
            for number in 0..messages {
                assert_eq!(receiver.recv(&mut found), Ok(length(number)));
                assert!(found[..length(number)].iter().all(|byte| u64::from(*byte) == number % 251));
            }
            assert_eq!(receiver.recv(&mut found), Err(RecvError::Ring(bytes::PopError::Closed)));
        });
        in_time(move || {
            let mut sender = here.sender(bytes::Producer::attach(&segment).unwrap()).unwrap();
            for number in 0..messages {
                let byte = u8::try_from(number % 251).unwrap();
                sender.send(&[byte; 24][..length(number)]).unwrap();
            }
            sender.close();
        });
        other.finish();
    }
}

#[test]
fn several_producers_and_consumers_wake_each_other() {
    let each = count(2_000, 500_000);
    for [here, there] in each_pair() {
        let layout = mpmc::Layout::<u64>::new(1).unwrap().participants(5).unwrap();
        let segment = segment(layout.bytes(), |new| layout.init(new));
        let results = unlocked().create_anonymous(64).unwrap().publish();
        let consumers = [0, 1].map(|index| {
            Other::fork(|| {
                let again = mapped_again(&segment);
                let consumer = mpmc::Consumer::<u64, _>::attach(&again).unwrap();
                let mut receiver = there.clone().receiver(consumer).unwrap();
                let mut sum = 0;
                let end = loop {
                    match receiver.recv() {
                        Ok(number) => sum += number,
                        Err(end) => break end,
                    }
                };
                assert_eq!(end, RecvError::Ring(mpmc::PopError::Closed));
                word(&results, index).store(sum, Ordering::Release);
            })
        });
        let producers = [0; 2].map(|_| {
            Other::fork(|| {
                let again = mapped_again(&segment);
                let producer = mpmc::Producer::<u64, _>::attach(&again).unwrap();
                let mut sender = here.clone().sender(producer).unwrap();
                (1..=each).for_each(|number| sender.send(number).unwrap());
            })
        });
        in_time(move || producers.into_iter().for_each(Other::finish));
        here.sender(mpmc::Producer::<u64, _>::attach(&segment).unwrap()).unwrap().close();
        in_time(move || consumers.into_iter().for_each(Other::finish));
        let sum: u64 = (0..2).map(|index| word(&results, index).load(Ordering::Acquire)).sum();
        assert_eq!(sum, each * (each + 1));
    }
}

/// Its producer never waits: so the consumers answer, each through a ring of its own.
#[test]
fn all_consumers_of_a_broadcast_ring_wake() {
    let messages = count(2_000, 200_000);
    for [here, there] in each_pair() {
        let layout = broadcast::Layout::<u64>::new(2).unwrap();
        let all = segment(layout.bytes(), |new| layout.init(new));
        let answers = [one_slot(), one_slot()];
        let others = [0, 1].map(|index| {
            Other::fork(|| {
                let [all, answers] = [mapped_again(&all), mapped_again(&answers[index])];
                let consumer = broadcast::Consumer::<u64, _>::join(&all).unwrap();
                // One event wakes one: whoever is faster would take the other's signal back.
                let options = if index == 0 { there.clone() } else { Bed::Futex.options(Barrier::Plain) };
                let mut receiver = options.receiver(consumer).unwrap();
                let producer = spsc::Producer::<u64, _>::attach(&answers).unwrap();
                let mut sender = Bed::Futex.options(Barrier::Plain).sender(producer).unwrap();
                sender.send(u64::MAX).unwrap();
                for number in 0..messages {
                    assert_eq!(receiver.recv(), Ok(number));
                    sender.send(number).unwrap();
                }
                assert_eq!(receiver.report().waking, Waking::Never, "nobody waits for consumers");
                assert_eq!(receiver.recv(), Err(RecvError::Ring(broadcast::PopError::Closed)));
            })
        });
        in_time(move || {
            let mut sender = here.sender(broadcast::Producer::<u64, _>::attach(&all).unwrap()).unwrap();
            let mut receivers = answers.each_ref().map(|answers| {
                let consumer = spsc::Consumer::<u64, _>::attach(answers).unwrap();
                Bed::Futex.options(Barrier::Plain).receiver(consumer).unwrap()
            });
            receivers.iter_mut().for_each(|receiver| assert_eq!(receiver.recv(), Ok(u64::MAX)));
            for number in 0..messages {
                sender.send(number).unwrap();
                receivers.iter_mut().for_each(|receiver| assert_eq!(receiver.recv(), Ok(number)));
            }
            sender.close();
        });
        others.into_iter().for_each(Other::finish);
    }
}
