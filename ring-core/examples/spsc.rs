//! Orders from one thread to another, each in one cache line.
//!
//! `cargo run --release --package ring-core --example spsc`

use std::sync::Arc;
use std::thread;

use ring_core::spsc::{Layout, PopError, PushError, create};
use ring_core::{Error, HeapRegion};
use zerocopy::{FromBytes, Immutable, IntoBytes};

#[derive(Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Order {
    number: u64,
    price: u64,
    quantity: u64,
}

const ORDERS: u64 = 100_000;

fn main() -> Result<(), Error> {
    let layout = Layout::<Order>::new(1024)?;
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    let (mut producer, mut consumer) = create(region, &layout)?;

    let sender = thread::spawn(move || {
        for number in 0..ORDERS {
            let mut order = Order { number, price: 100 + number % 10, quantity: 2 };
            while let Err(error) = producer.try_push(order) {
                // A message for which there is no room comes back.
                let PushError::Full(back) = error else { panic!("{error}") };
                order = back;
                thread::yield_now();
            }
        }
        // Without it the ring stays open for another producer.
        producer.close();
    });

    let (mut orders, mut turnover) = (0, 0);
    loop {
        match consumer.try_pop() {
            Ok(order) => {
                assert_eq!(order.number, orders);
                orders += 1;
                turnover += order.price * order.quantity;
            }
            Err(PopError::Empty) => thread::yield_now(),
            Err(PopError::Closed) => break,
            Err(error @ PopError::Corrupted) => panic!("{error}"),
        }
    }
    sender.join().expect("the sender ends well");
    println!("{orders} orders, a turnover of {turnover}");
    assert_eq!(orders, ORDERS);
    Ok(())
}
