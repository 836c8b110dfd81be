//! Whether a try is worth it, as every handle says without trying.
//!
//! # Safety
//!
//! Words are written in regions that live on, through pointers within their length.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use ring_core::{HeapRegion, Region, broadcast, bytes, mpmc, spsc};

#[test]
fn spsc_tells() {
    let layout = spsc::Layout::<u64>::new(2).unwrap();
    let region = HeapRegion::new(layout.bytes());
    let (mut producer, mut consumer) = spsc::create(&region, &layout).unwrap();
    assert!(producer.is_ready() && !consumer.is_ready());
    producer.push_slice(&[1, 2]).unwrap();
    assert!(!producer.is_ready() && consumer.is_ready());
    // To look takes nothing.
    assert_eq!([consumer.try_pop(), consumer.try_pop()], [Ok(1), Ok(2)]);
    // Nothing is left, so the credit is back.
    assert!(!consumer.is_ready() && producer.is_ready());
    producer.close();
    assert!(consumer.is_ready(), "the end is something to be told");
}

#[test]
fn bytes_tells() {
    let layout = bytes::Layout::new(64).unwrap();
    let region = HeapRegion::new(layout.bytes());
    let (mut producer, mut consumer) = bytes::create(&region, &layout).unwrap();
    assert!(producer.is_ready(24) && !consumer.is_ready());
    producer.try_push(&[1; 24]).unwrap();
    assert!(producer.is_ready(8) && !producer.is_ready(24) && consumer.is_ready());
    assert!(producer.is_ready(25), "too long at any time is something to be told");
    assert_eq!(consumer.try_pop(&mut [0; 24]), Ok(24));
    assert!(!consumer.is_ready() && producer.is_ready(24));
    producer.close();
    assert!(consumer.is_ready());
}

#[test]
fn mpmc_tells() {
    let layout = mpmc::Layout::<u64>::new(2).unwrap().participants(3).unwrap();
    let region = HeapRegion::new(layout.bytes());
    layout.init(&region).unwrap();
    let mut producer = mpmc::Producer::<u64, _>::attach(&region).unwrap();
    let mut consumer = mpmc::Consumer::<u64, _>::attach(&region).unwrap();
    let mut other = mpmc::Consumer::<u64, _>::attach(&region).unwrap();
    assert!(producer.is_ready() && !consumer.is_ready());
    producer.push_slice(&[1, 2]).unwrap();
    assert!(!producer.is_ready() && consumer.is_ready() && other.is_ready());
    assert_eq!([other.try_pop(), other.try_pop()], [Ok(1), Ok(2)]);
    assert!(!consumer.is_ready() && producer.is_ready());

    // A message that is claimed is not there, and one that was put back is.
    producer.try_push(3).unwrap();
    let grant = other.try_peek().unwrap();
    assert!(!consumer.is_ready());
    drop(grant);
    assert!(consumer.is_ready());
    assert_eq!(consumer.try_pop(), Ok(3));

    consumer.close();
    assert!(producer.is_ready() && consumer.is_ready() && other.is_ready());
}

#[test]
fn mpmc_tells_lap_after_lap() {
    let layout = mpmc::Layout::<u64>::new(2).unwrap().participants(3).unwrap();
    let region = HeapRegion::new(layout.bytes());
    layout.init(&region).unwrap();
    let [mut producer, mut other] = [0; 2].map(|_| mpmc::Producer::<u64, _>::attach(&region).unwrap());
    let mut consumer = mpmc::Consumer::<u64, _>::attach(&region).unwrap();
    for number in 0..10 {
        assert!(other.is_ready(), "the place at which it looks is laps behind");
        producer.push_slice(&[number, number]).unwrap();
        assert!(!other.is_ready() && consumer.is_ready());
        assert_eq!([consumer.try_pop(), consumer.try_pop()], [Ok(number), Ok(number)]);
        assert!(!consumer.is_ready());
    }
}

#[test]
fn broadcast_tells() {
    let layout = broadcast::Layout::<u64>::new(2).unwrap();
    let region = HeapRegion::new(layout.bytes());
    layout.init(&region).unwrap();
    let mut producer = broadcast::Producer::<u64, _>::attach(&region).unwrap();
    let mut consumer = broadcast::Consumer::<u64, _>::join(&region).unwrap();
    assert!(!consumer.is_ready());
    producer.push(&1);
    assert!(consumer.is_ready());
    assert_eq!(consumer.try_pop(), Ok(1));
    producer.push_slice(&[2, 3, 4]);
    assert!(consumer.is_ready(), "a loss is something to be told");
    while consumer.try_pop() != Err(broadcast::PopError::Empty) {}
    assert!(!consumer.is_ready());
    producer.close();
    assert!(consumer.is_ready());
}

#[test]
fn a_corrupted_ring_is_something_to_be_told() {
    let layout = spsc::Layout::<u64>::new(1).unwrap();
    let region = HeapRegion::new(layout.bytes());
    let (mut producer, mut consumer) = spsc::create(&region, &layout).unwrap();
    producer.try_push(1).unwrap();
    assert!(!producer.is_ready());
    // The consumer's credit, and the sequence word of the slot.
    for offset in [256, 512 + 56] {
        // SAFETY: the region is longer.
        let address = unsafe { region.base().add(offset) };
        // SAFETY: an aligned word of the region, which others access as an atomic too.
        let word = unsafe { address.cast::<AtomicU64>().as_ref() };
        // ORDERING: Relaxed: one thread.
        word.store(12_345, Ordering::Relaxed);
    }
    assert!(producer.is_ready() && consumer.is_ready());
    assert_eq!(producer.try_push(2), Err(spsc::PushError::Corrupted(2)));
    assert_eq!(consumer.try_pop(), Err(spsc::PopError::Corrupted));
}
