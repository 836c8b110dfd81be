//! The real rings, with one slot.

use alloc::sync::Arc;

use ring_core::{HeapRegion, spsc};

use super::{barriers, model, sleepy, thread};
use crate::RecvError;

#[test]
fn a_ring_of_one_slot_passes_messages_and_its_end_on() {
    for [light, heavy] in barriers() {
        model(move || {
            let layout = spsc::Layout::<u64>::new(1).unwrap();
            let region = Arc::new(HeapRegion::new(layout.bytes()));
            let (producer, consumer) = spsc::create(region, &layout).unwrap();
            let mut receiver = sleepy(heavy).receiver(consumer).unwrap();
            let mut sender = sleepy(light).sender(producer).unwrap();
            let sleeper = thread::spawn(move || [receiver.recv(), receiver.recv(), receiver.recv()]);
            sender.send(1).unwrap();
            sender.send(2).unwrap();
            sender.close();
            let end = Err(RecvError::Ring(spsc::PopError::Closed));
            assert_eq!(sleeper.join().unwrap(), [Ok(1), Ok(2), end]);
        });
    }
}

/// A consumer that goes leaves room, and whoever waits for it learns of it.
#[test]
fn a_receiver_that_is_dropped_wakes_the_sender() {
    model(move || {
        let layout = spsc::Layout::<u64>::new(1).unwrap();
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (producer, consumer) = spsc::create(region, &layout).unwrap();
        let [light, heavy] = barriers()[0];
        let mut receiver = sleepy(heavy).receiver(consumer).unwrap();
        let mut sender = sleepy(light).sender(producer).unwrap();
        sender.send(1).unwrap();
        let leaving = thread::spawn(move || assert_eq!(receiver.try_recv(), Ok(Some(1))));
        sender.send(2).unwrap();
        leaving.join().unwrap();
    });
}
