//! Makes a ring in a shared segment and pushes messages into it. Start `receiver` beside it.

use core::time::Duration;

use ring_core::spsc::{Layout, Producer, PushError};
use ring_shm::{Error, Options};

fn main() {
    if let Err(error) = send() {
        eprintln!("{error} ({error:?})"); // what to do, and what exactly happened
        std::process::exit(1);
    }
}

fn send() -> Result<(), Error> {
    // A ring of 1,024 messages of 56 bytes, in a segment of its own: a new one, or that of a sender that was killed.
    let layout = Layout::new(1024)?;
    let mut quotes: Producer<[u64; 7], _> =
        Options::new().open_ring("/quotes", &layout, Duration::from_secs(1))?;
    println!("{}", quotes.region().report());

    for number in quotes.tail()..1_000_000 {
        let quote = [number, 2, 3, 4, 5, 6, 7];
        while let Err(error) = quotes.try_push(quote) {
            assert!(matches!(error, PushError::Full(_)), "the receiver broke the ring: {error}");
            core::hint::spin_loop(); // full: the receiver is behind, or not there yet
        }
    }
    quotes.close(); // the receiver gets what is in the ring, and then removes the segment
    Ok(())
}
