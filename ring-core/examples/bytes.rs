//! Lines of text of any length from one thread to another, each in one piece.
//!
//! `cargo run --release --package ring-core --example bytes`

use std::sync::Arc;
use std::thread;

use ring_core::bytes::{self, Layout, PopError, PushError};
use ring_core::{Error, HeapRegion};

fn main() -> Result<(), Error> {
    let layout = Layout::new(4096)?;
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    let (mut producer, mut consumer) = bytes::create(region, &layout)?;

    let sender = thread::spawn(move || {
        for number in 0..1000_usize {
            let line = format!("{number}: {}", "=".repeat(number % 70));
            loop {
                match producer.try_push(line.as_bytes()) {
                    Ok(()) => break,
                    Err(PushError::Full) => thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        // Without it the ring stays open for another producer.
        producer.close();
    });

    let (mut lines, mut total) = (0, 0);
    loop {
        match consumer.try_peek() {
            Ok(line) => {
                // Both ends are in this program, so the message itself is at hand.
                assert!(line.starts_with(format!("{lines}: ").as_bytes()));
                lines += 1;
                total += line.len();
                line.release();
            }
            Err(PopError::Empty) => thread::yield_now(),
            Err(PopError::Closed) => break,
            Err(error) => panic!("{error}"),
        }
    }
    sender.join().expect("the sender ends well");
    println!("{lines} lines, {total} bytes");
    Ok(())
}
