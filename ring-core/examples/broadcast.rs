//! One thread publishes prices as fast as it can; two others read along, one of them too slowly.
//!
//! `cargo run --release --package ring-core --example broadcast`

use core::time::Duration;
use std::sync::Arc;
use std::thread;

use ring_core::broadcast::{Consumer, Layout, PopError, create};
use ring_core::{Error, HeapRegion};
use zerocopy::{FromBytes, Immutable, IntoBytes};

#[derive(Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Price {
    instrument: u64,
    price: u64,
}

/// So many, and their prices rise by one.
const PRICES: u64 = 100_000;

fn main() -> Result<(), Error> {
    let layout = Layout::<Price>::new(1024)?;
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    let (mut producer, quick) = create(Arc::clone(&region), &layout)?;
    let slow = Consumer::join(region)?;

    let quick = thread::spawn(move || follow(quick, Duration::ZERO));
    let slow = thread::spawn(move || follow(slow, Duration::from_micros(100)));
    for price in 1..=PRICES {
        producer.push(&Price { instrument: 7, price });
    }
    producer.close();

    for (name, thread) in [("quick", quick), ("slow", slow)] {
        let (seen, lost) = thread.join().expect("no panic");
        println!("the {name} reader saw {seen} prices and lost {lost}");
        assert_eq!(seen + lost, PRICES);
    }
    Ok(())
}

/// Reads to the end, and returns how many prices it saw and how many it lost.
fn follow(mut consumer: Consumer<Price, Arc<HeapRegion>>, work: Duration) -> (u64, u64) {
    let (mut seen, mut lost) = (0, 0);
    loop {
        match consumer.try_pop() {
            Ok(price) => {
                assert_eq!((price.instrument, price.price), (7, seen + lost + 1));
                seen += 1;
                thread::sleep(work);
            }
            Err(PopError::Lost { messages }) => lost += messages,
            Err(PopError::Empty) => thread::yield_now(),
            Err(PopError::Closed) => return (seen, lost),
            Err(error @ PopError::Corrupted) => panic!("{error}"),
        }
    }
}
