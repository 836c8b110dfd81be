//! Both sides in threads, over each ring, with each way to wait: capacity 1, no spinning, no slices.

use std::sync::Arc;
use std::thread;

use ring_core::{HeapRegion, broadcast, bytes, mpmc, spsc};
use ring_notify::{Barrier, Event, Options, Strategy};

/// Exchanges of each run.
const EXCHANGES: u64 = 2_000;

/// Options that sleep at once and for ever, by futex or by event, and with each barrier.
fn sleepy() -> Vec<Options> {
    let event = || Arc::new(Event::new().unwrap());
    let mut all = Vec::new();
    for barrier in [Barrier::Asymmetric, Barrier::Plain] {
        let options = Options::new().barrier(barrier).slice(None);
        all.push(options.clone().strategy(Strategy::futex().spins(0)));
        let with_events = options.messages_event(event()).room_event(event());
        all.push(with_events.strategy(Strategy::event().spins(0)));
    }
    all
}

#[test]
fn spsc_of_one_slot_passes_everything_on() {
    for options in sleepy() {
        let layout = spsc::Layout::<u64>::new(1).unwrap();
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (producer, consumer) = spsc::create(region, &layout).unwrap();
        let mut sender = options.clone().sender(producer).unwrap();
        let mut receiver = options.receiver(consumer).unwrap();
        let receiving = thread::spawn(move || {
            (0..EXCHANGES).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
            receiver.recv()
        });
        (0..EXCHANGES).for_each(|number| sender.send(number).unwrap());
        sender.close();
        assert!(receiving.join().unwrap().is_err());
    }
}

#[test]
fn a_byte_ring_passes_everything_on() {
    for options in sleepy() {
        let layout = bytes::Layout::new(64).unwrap();
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (producer, consumer) = bytes::create(region, &layout).unwrap();
        let mut sender = options.clone().sender(producer).unwrap();
        let mut receiver = options.receiver(consumer).unwrap();
        let receiving = thread::spawn(move || {
            let mut bytes = [0; 24];
            for number in 0..EXCHANGES {
                let length = 1 + usize::try_from(number % 24).unwrap();
                assert_eq!(receiver.recv(&mut bytes), Ok(length));
            }
            receiver.recv(&mut bytes)
        });
        for number in 0..EXCHANGES {
            let length = 1 + usize::try_from(number % 24).unwrap();
            sender.send(&[7; 24][..length]).unwrap();
        }
        sender.close();
        assert!(receiving.join().unwrap().is_err());
    }
}

#[test]
fn mpmc_wakes_several_on_both_sides() {
    for options in sleepy() {
        let layout = mpmc::Layout::<u64>::new(1).unwrap().participants(4).unwrap();
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        layout.init(&region).unwrap();
        let receiving = [0; 2].map(|_| {
            let consumer = mpmc::Consumer::<u64, _>::attach(Arc::clone(&region)).unwrap();
            let mut receiver = options.clone().receiver(consumer).unwrap();
            thread::spawn(move || {
                let mut sum = 0;
                while let Ok(number) = receiver.recv() {
                    sum += number;
                }
                sum
            })
        });
        let sending = [0; 2].map(|_| {
            let producer = mpmc::Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
            let mut sender = options.clone().sender(producer).unwrap();
            thread::spawn(move || {
                (1..=EXCHANGES).for_each(|number| sender.send(number).unwrap());
                sender
            })
        });
        let [sender, other] = sending.map(|sending| sending.join().unwrap());
        drop(other);
        sender.close();
        let sum: u64 = receiving.into_iter().map(|receiving| receiving.join().unwrap()).sum();
        assert_eq!(sum, EXCHANGES * (EXCHANGES + 1));
    }
}

#[test]
fn consumers_of_a_broadcast_ring_sleep_each_on_an_event_of_its_own() {
    let layout = broadcast::Layout::<u64>::new(2).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    layout.init(&region).unwrap();
    let events = [0; 2].map(|_| Arc::new(Event::new().unwrap()));
    let options = Options::new().slice(None).strategy(Strategy::event().spins(0));

    let all_events = options.clone().messages_event(Arc::clone(&events[0]));
    let all_events = all_events.messages_event(Arc::clone(&events[1])).room_event(Event::new().unwrap());
    let producer = broadcast::Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    let mut sender = all_events.sender(producer).unwrap();
    let (answer, answers) = std::sync::mpsc::channel();
    let receiving = events.map(|event| {
        let consumer = broadcast::Consumer::<u64, _>::join(Arc::clone(&region)).unwrap();
        let mut receiver = options.clone().messages_event(event).receiver(consumer).unwrap();
        let answer = answer.clone();
        thread::spawn(move || {
            while let Ok(number) = receiver.recv() {
                answer.send(number).unwrap();
            }
        })
    });
    for number in 0..EXCHANGES {
        sender.send(number).unwrap();
        (0..2).for_each(|_| assert_eq!(answers.recv(), Ok(number)));
    }
    sender.close();
    receiving.into_iter().for_each(|receiving| receiving.join().unwrap());
}
