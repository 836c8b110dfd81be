//! Who sleeps is woken, by each means and with each barrier. A model in which somebody sleeps on ends in a deadlock.

use alloc::sync::Arc;

use super::slot::{Closed, SlotConsumer, ring};
use super::{barriers, model, sleepy, thread, wide_model};
use crate::{AnyOf, Barrier, Event, Receiver, RecvError, Strategy};

/// A message for one of two who sleep, and the end for the other or for both, from two threads.
#[test]
fn a_producer_and_a_closer_wake_two_sleepers() {
    for barrier in [Barrier::Asymmetric, Barrier::Plain] {
        wide_model(1, move || {
            let ends = ring();
            let sleepers = [0; 2].map(|_| {
                let receiver = sleepy(barrier).receiver(ends.consumer()).unwrap();
                thread::spawn(move || receive_and_stay(receiver))
            });
            let closer = sleepy(barrier).sender(ends.producer()).unwrap();
            let mut sender = sleepy(barrier).sender(ends.producer()).unwrap();
            let closing = thread::spawn(move || closer.close());
            let is_sent = sender.try_send(1).is_ok();
            core::mem::forget(sender);
            closing.join().unwrap();
            let received = sleepers.map(|sleeper| sleeper.join().unwrap());
            // To send while somebody closes may be in vain.
            let delivered = received.iter().filter(|received| **received == Ok(1)).count();
            assert!(delivered <= usize::from(is_sent));
        });
    }
}

/// A message for each of two who sleep.
#[test]
fn a_producer_wakes_two_sleepers() {
    wide_model(2, || {
        let ends = ring();
        let sleepers = [0; 2].map(|_| {
            let receiver = sleepy(Barrier::Asymmetric).receiver(ends.consumer()).unwrap();
            thread::spawn(move || receive_and_stay(receiver).unwrap())
        });
        let mut sender = sleepy(Barrier::Asymmetric).sender(ends.producer()).unwrap();
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        core::mem::forget(sender);
        let received = sleepers.map(|sleeper| sleeper.join().unwrap());
        assert!(received == [1, 2] || received == [2, 1]);
    });
}

/// Receives one message. To leave the ring afterwards is nothing that these are about, and would double the search.
fn receive_and_stay(mut receiver: Receiver<SlotConsumer>) -> Result<u64, RecvError<Closed>> {
    let received = receiver.recv();
    core::mem::forget(receiver);
    received
}

/// One who sleeps, by event.
#[test]
fn an_event_wakes_who_sleeps() {
    for [light, heavy] in barriers() {
        model(move || {
            let event = Arc::new(Event::new().unwrap());
            let ends = ring();
            let receiver = sleepy(heavy).strategy(Strategy::event().spins(0));
            let receiver = receiver.messages_event(Arc::clone(&event));
            let mut receiver = receiver.receiver(ends.consumer()).unwrap();
            let mut sender = sleepy(light).messages_event(event).sender(ends.producer()).unwrap();
            let sleeper = thread::spawn(move || [receiver.recv(), receiver.recv()]);
            sender.send(1).unwrap();
            sender.send(2).unwrap();
            assert_eq!(sleeper.join().unwrap(), [Ok(1), Ok(2)]);
        });
    }
}

/// Two who sleep on the same event: whoever takes a signal back and does not sleep leaves it for the other.
#[test]
fn sleepers_share_an_event() {
    wide_model(2, move || {
        let event = Arc::new(Event::new().unwrap());
        let ends = ring();
        let sleepers = [0; 2].map(|_| {
            let options = sleepy(Barrier::Plain).strategy(Strategy::event().spins(0));
            let options = options.messages_event(Arc::clone(&event));
            let mut receiver = options.receiver(ends.consumer()).unwrap();
            thread::spawn(move || receiver.recv().unwrap())
        });
        let mut sender = sleepy(Barrier::Plain).messages_event(event).sender(ends.producer()).unwrap();
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        let received = sleepers.map(|sleeper| sleeper.join().unwrap());
        assert!(received == [1, 2] || received == [2, 1]);
    });
}

/// Messages go only where there is room, and both sides sleep.
#[test]
fn both_sides_wake_each_other() {
    for [light, heavy] in barriers() {
        model(move || {
            let ends = ring();
            let mut receiver = sleepy(heavy).receiver(ends.consumer()).unwrap();
            let mut sender = sleepy(light).sender(ends.producer()).unwrap();
            let sleeper = thread::spawn(move || [receiver.recv(), receiver.recv()]);
            sender.send(1).unwrap();
            sender.send(2).unwrap();
            assert_eq!(sleeper.join().unwrap(), [Ok(1), Ok(2)]);
        });
    }
}

/// One who waits for two rings at once, by their futexes and by an event of each.
#[test]
fn one_who_waits_for_two_rings_is_woken_by_either() {
    for is_by_event in [false, true] {
        wide_model(2, move || {
            let [one, other] = [0; 2].map(|_| {
                let ends = ring();
                let event = alloc::sync::Arc::new(Event::new().unwrap());
                let options = sleepy(Barrier::Asymmetric).messages_event(event);
                let receiver = options.clone().receiver(ends.consumer()).unwrap();
                (receiver, options.sender(ends.producer()).unwrap())
            });
            let ((mut receiver, sender), (mut other_receiver, mut other_sender)) = (one, other);
            let strategy = if is_by_event { Strategy::event() } else { Strategy::futex() };
            let waiting = thread::spawn(move || {
                let mut any = AnyOf::new(strategy.spins(0));
                let index = any.wait(&mut [&mut receiver, &mut other_receiver], None).unwrap();
                assert_eq!((index, other_receiver.try_recv()), (1, Ok(Some(7))));
                core::mem::forget((receiver, other_receiver));
            });
            other_sender.send(7).unwrap();
            core::mem::forget((sender, other_sender));
            waiting.join().unwrap();
        });
    }
}
