//! Messages of every size and alignment arrive as they were sent, whatever their neighbours hold.

use std::sync::Arc;

use ring_core::spsc::{Delivery, Layout, create};
use ring_core::{HeapRegion, Message, Region};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Bytes that differ from message to message and from place to place.
fn pattern<T: Message>(number: usize) -> T {
    let mut value = T::new_zeroed();
    for (place, byte) in value.as_mut_bytes().iter_mut().enumerate() {
        *byte = u8::try_from((number * 31 + place * 7 + 1) % 251).unwrap();
    }
    value
}

fn round_trips<T: Message>() {
    for depth in [1, 2, 8] {
        let layout = Layout::<T>::new(depth).unwrap();
        let slot_bytes = (layout.bytes() - 512) / usize::try_from(depth).unwrap();
        assert_eq!(slot_bytes % 64, 0);
        assert!(slot_bytes >= size_of::<T>() + 8 && slot_bytes < size_of::<T>() + 8 + 64 + 8);

        let (mut producer, mut consumer) =
            create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
        for number in 0..50 {
            for offset in 0..depth {
                producer.try_push(pattern(number + usize::try_from(offset).unwrap())).ok().unwrap();
            }
            assert!(producer.try_push(pattern(0)).is_err());
            for offset in 0..depth {
                let expected: T = pattern(number + usize::try_from(offset).unwrap());
                {
                    let grant = consumer.try_peek().unwrap();
                    assert_eq!(grant.as_ptr().as_ptr() as usize % align_of::<T>(), 0);
                    assert_eq!(grant.as_bytes(), expected.as_bytes());
                    assert_eq!(grant.read().as_bytes(), expected.as_bytes());
                }
                assert_eq!(consumer.try_pop().ok().unwrap().as_bytes(), expected.as_bytes());
            }
            assert!(consumer.try_pop().is_err());
        }
    }
}

macro_rules! sizes {
    ($($size:literal)*) => {
        #[test]
        fn every_size() {
            $(round_trips::<[u8; $size]>();)*
        }
    };
}

sizes!(1 2 3 4 5 6 7 8 9 15 16 17 31 32 33 47 48 49 55 56 57 63 64 65 119 120 121 127 128 129 255 256 511 512 1000 4096);

#[test]
fn every_alignment() {
    #[derive(FromBytes, IntoBytes, Immutable)]
    #[repr(C, align(16))]
    struct Aligned16([u8; 16]);
    #[derive(FromBytes, IntoBytes, Immutable)]
    #[repr(C, align(32))]
    struct Aligned32([u8; 96]);
    #[derive(FromBytes, IntoBytes, Immutable)]
    #[repr(C, align(64))]
    struct Aligned64([u8; 64]);

    round_trips::<u16>();
    round_trips::<u32>();
    round_trips::<u64>();
    round_trips::<u128>();
    round_trips::<Aligned16>();
    round_trips::<Aligned32>();
    round_trips::<Aligned64>();
}

#[test]
fn wider_slots_carry_the_same() {
    let layout = Layout::<[u64; 7]>::new(8).unwrap().slot_bytes(128).unwrap();
    assert_eq!(layout.bytes(), 512 + 8 * 128);
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    assert_eq!(region.bytes(), layout.bytes());
    let (mut producer, mut consumer) = create(region, &layout).unwrap();
    for number in 0..100 {
        producer.try_push([number; 7]).unwrap();
        assert_eq!(consumer.try_pop(), Ok([number; 7]));
    }
}

#[test]
fn a_lent_region_may_be_larger() {
    let layout = Layout::<u64>::new(4).unwrap();
    let region = HeapRegion::new(layout.bytes() + 4096);
    let (mut producer, mut consumer) = create(&region, &layout).unwrap();
    producer.try_push(1).unwrap();
    assert_eq!(consumer.try_pop(), Ok(1));
}

#[test]
fn handles_move_between_threads() {
    let layout = Layout::<u64>::new(4).unwrap();
    let (mut producer, mut consumer) = create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    for number in 0..100 {
        producer = std::thread::spawn(move || {
            producer.try_push(number).unwrap();
            producer
        })
        .join()
        .unwrap();
        consumer = std::thread::spawn(move || {
            assert_eq!(consumer.try_pop(), Ok(number));
            consumer
        })
        .join()
        .unwrap();
    }
}

#[test]
fn a_consumer_that_looks_before_it_pops_does_not_starve_the_producer() {
    for depth in [2, 4, 64] {
        for delivery in [
            Delivery::AtMostOnce,
            Delivery::AtLeastOnce { batch: 0 },
            Delivery::AtLeastOnce { batch: 2 },
            Delivery::AtLeastOnce { batch: u32::MAX },
        ] {
            let layout = Layout::<u64>::new(depth).unwrap();
            let (mut producer, consumer) =
                create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
            let mut consumer = consumer.delivery(delivery);
            for value in 0..3 * depth {
                producer.try_push(value).unwrap();
                assert!(!consumer.is_empty());
                assert_eq!(consumer.try_pop(), Ok(value));
            }
        }
    }
}
