//! The counters say what happened, and can be read while it happens.

mod common;

use core::time::Duration;
use std::sync::Arc;

use common::{Bed, skip, soon, started};
use ring_core::{HeapRegion, spsc};
use ring_notify::{Barrier, Counters, Options, RecvError, Strategy};
use ring_tune::pin_to;

type Region = Arc<HeapRegion>;
type Producer = spsc::Producer<u64, Region>;
type Sender = ring_notify::Sender<Producer>;
type Receiver = ring_notify::Receiver<spsc::Consumer<u64, Region>>;

const DEPTH: u64 = 4;

fn bare() -> (Producer, spsc::Consumer<u64, Region>) {
    let layout = spsc::Layout::<u64>::new(DEPTH).unwrap();
    spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap()
}

fn ring(options: &Options) -> (Sender, Receiver) {
    let (producer, consumer) = bare();
    (options.clone().sender(producer).unwrap(), options.clone().receiver(consumer).unwrap())
}

fn sleepy() -> Vec<Options> {
    Bed::each().map(|bed| bed.options(Barrier::Asymmetric)).to_vec()
}

#[test]
fn where_nobody_sleeps_wakes_are_saved() {
    for options in sleepy() {
        let (mut sender, mut receiver) = ring(&options);
        for number in 0..DEPTH {
            sender.send(number).unwrap();
        }
        assert_eq!(sender.try_send(9), Ok(Some(9)));
        let counters = sender.counters();
        assert_eq!((counters.wakes_saved, counters.wakes_sent), (DEPTH, 0), "once a message");
        assert_eq!(receiver.recv_slice(&mut [0; 8]), Ok(4));
        assert_eq!(receiver.try_recv(), Ok(None), "which gives all room back");
        assert_eq!(sender.send_slice(&[1, 2, 3]), Ok(3));
        assert_eq!(sender.counters().wakes_saved, DEPTH + 1, "once a batch");
        assert_eq!(receiver.counters().wakes_sent, 0);
        assert!((1..=2).contains(&receiver.counters().wakes_saved), "once for the room of all");
    }
}

/// What it did by itself beside sleeping.
fn without_sleep(counters: Counters) -> [u64; 3] {
    [counters.spins, counters.yields, counters.found_unwoken]
}

#[test]
fn who_sleeps_is_woken_and_both_sides_say_so_meanwhile() {
    for options in sleepy() {
        let (mut sender, mut receiver) = ring(&options);
        let watch = receiver.watch();
        let waiting = started(move || (receiver.recv(), receiver));
        soon(|| watch.counters().sleeps == 1);
        waiting.wait_until_it_sleeps();
        assert_eq!((watch.counters().sleeps, watch.counters().wakes_received), (1, 0), "it sleeps still");
        sender.send(1).unwrap();
        let (found, receiver) = waiting.end();
        assert_eq!(found, Ok(1));
        let counters = receiver.counters();
        assert_eq!(counters, watch.counters());
        assert_eq!((counters.sleeps, counters.wakes_received, counters.spurious_wakes), (1, 1, 0));
        assert_eq!(without_sleep(counters), [0, 0, 0]);
        assert_eq!((sender.counters().wakes_sent, sender.counters().wakes_saved), (1, 0));
        sender.send(2).unwrap();
        assert_eq!((sender.counters().wakes_sent, sender.counters().wakes_saved), (1, 1), "it is awake");
        drop(receiver);
        assert_eq!(watch.counters().wakes_received, 1, "they stay when the handle is gone");
    }
}

/// A bare handle does not wake: who sleeps finds its message when the slice is over.
#[test]
fn what_a_bare_handle_sends_is_found_unwoken() {
    for options in sleepy() {
        let (mut producer, consumer) = bare();
        let mut receiver = options.slice(Some(Duration::from_millis(20))).receiver(consumer).unwrap();
        let watch = receiver.watch();
        let waiting = started(move || receiver.recv());
        soon(|| watch.counters().sleeps > 0);
        waiting.wait_until_it_sleeps();
        producer.try_push(1).unwrap();
        assert_eq!(waiting.end(), Ok(1));
        let counters = watch.counters();
        assert_eq!((counters.found_unwoken, counters.wakes_received), (1, 0));
        assert!(counters.sleeps >= 1);
    }
}

/// Somebody says that something was done, when nothing was.
#[test]
fn a_wake_for_nothing_is_spurious() {
    for options in sleepy() {
        let (mut sender, mut receiver) = ring(&options);
        let watch = receiver.watch();
        let waiting = started(move || receiver.recv());
        soon(|| watch.counters().sleeps == 1);
        waiting.wait_until_it_sleeps();
        sender.publish(|_| ());
        soon(|| watch.counters().sleeps == 2);
        let counters = watch.counters();
        assert_eq!((counters.wakes_received, counters.spurious_wakes), (1, 1));
        waiting.wait_until_it_sleeps();
        sender.send(1).unwrap();
        assert_eq!(waiting.end(), Ok(1));
        let counters = watch.counters();
        assert_eq!((counters.wakes_received, counters.spurious_wakes), (2, 1));
    }
}

#[test]
fn turns_and_yields_are_counted() {
    let options = Options::new().strategy(Strategy::futex().spins(37).yields(5));
    let (mut sender, mut receiver) = ring(&options);
    assert_eq!(receiver.spin_turns(), 37);
    // Long enough for all its turns where the machine is busy.
    assert_eq!(receiver.recv_timeout(Duration::from_millis(200)), Err(RecvError::TimedOut));
    let counters = receiver.counters();
    assert_eq!((counters.spins, counters.yields), (37, 5));
    assert!(counters.sleeps > 0);
    sender.send(1).unwrap();
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(receiver.counters(), counters, "no need to wait");
}

#[test]
fn a_doorbell_counts_its_turns_and_nothing_else() {
    let (mut sender, mut receiver) = ring(&Options::doorbell());
    assert_eq!(receiver.recv_timeout(Duration::from_millis(2)), Err(RecvError::TimedOut));
    let counters = receiver.counters();
    assert!(counters.spins > 0);
    let mut expected = Counters::default();
    expected.spins = counters.spins;
    assert_eq!(counters, expected);
    sender.send(1).unwrap();
    assert_eq!(sender.counters(), Counters::default());
}

/// Gaps that are too long to spin for are not spun for; short ones are again.
#[test]
fn an_adaptive_strategy_learns_from_gaps() {
    let cpus = ring_tune::allowed_cpus().unwrap();
    let [here, there] = match cpus.iter().take(2).collect::<Vec<_>>()[..] {
        [here, there] => [here, there],
        _ => return skip("an_adaptive_strategy_learns_from_gaps", "on one CPU nobody spins"),
    };
    pin_to(here).unwrap();
    let strategy = Strategy::futex().adaptive();
    let (mut sender, mut receiver) = ring(&Options::new().strategy(strategy));
    assert_eq!(receiver.spin_turns(), 1000, "what it begins with");
    for number in 0..20 {
        let sending = started(move || {
            pin_to(there).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            sender.send(number).unwrap();
            sender
        });
        assert_eq!(receiver.recv(), Ok(number));
        sender = sending.end();
    }
    assert_eq!(receiver.spin_turns(), 0);
    let spins = receiver.counters().spins;
    assert_eq!(receiver.recv_timeout(Duration::from_millis(2)), Err(RecvError::TimedOut));
    assert_eq!(receiver.counters().spins, spins, "it sleeps at once");
    // Many messages without a gap in between, until a wait finds that.
    soon(|| {
        // Not from where it waits: it would be a neighbour.
        pin_to(there).unwrap();
        for number in 0..100_000 {
            sender.send(number).unwrap();
            assert_eq!(receiver.recv(), Ok(number));
        }
        pin_to(here).unwrap();
        // Over before it finds that the messages have ended.
        assert_eq!(receiver.recv_timeout(Duration::from_nanos(1)), Err(RecvError::TimedOut));
        receiver.spin_turns() > 0
    });
}
