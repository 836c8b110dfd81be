//! Two producers and two consumers share the work of one ring, and the sum is right in the end.
//!
//! `cargo run --release --package ring-core --example mpmc`

use std::sync::Arc;
use std::thread;

use ring_core::{Error, HeapRegion, mpmc};

fn main() -> Result<(), Error> {
    let layout = mpmc::Layout::<u64>::new(64)?.participants(4)?;
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    layout.init(&region)?;

    let mut senders = Vec::new();
    for first in [1, 2] {
        let mut producer = mpmc::Producer::<u64, _>::attach(Arc::clone(&region))?;
        senders.push(thread::spawn(move || {
            for value in (first..=1000).step_by(2) {
                loop {
                    match producer.try_push(value) {
                        Ok(()) => break,
                        Err(mpmc::PushError::Full(_) | mpmc::PushError::Busy(_)) => thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            producer
        }));
    }
    let mut receivers = Vec::new();
    for _ in 0..2 {
        let mut consumer = mpmc::Consumer::<u64, _>::attach(Arc::clone(&region))?;
        receivers.push(thread::spawn(move || {
            let mut sum = 0;
            loop {
                match consumer.try_pop() {
                    Ok(value) => sum += value,
                    Err(mpmc::PopError::Closed) => return sum,
                    Err(mpmc::PopError::Corrupted) => panic!("the ring was spoiled"),
                    Err(mpmc::PopError::Empty | mpmc::PopError::Busy) => thread::yield_now(),
                }
            }
        }));
    }

    let producers: Vec<_> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    producers[0].close();
    let sum: u64 = receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum();
    println!("the numbers from 1 to 1000 add up to {sum}");
    assert_eq!(sum, 500_500);
    Ok(())
}
