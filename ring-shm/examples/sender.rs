//! Creates a ring in a shared segment and pushes messages into it. Start `receiver` beside it.

use ring_core::spsc::{Layout, Producer, PushError};
use ring_shm::{Error, Options};

fn main() {
    if let Err(error) = send() {
        eprintln!("{error} ({error:?})"); // what to do, and what exactly happened
        std::process::exit(1);
    }
}

fn send() -> Result<(), Error> {
    // A ring of 1,024 messages of 56 bytes, in a segment of its own.
    let layout = Layout::<[u64; 7]>::new(1024)?;
    let new = Options::new().create("/quotes", layout.bytes())?;
    layout.init(&new)?;
    let segment = new.publish();
    println!("{}", segment.report());

    let mut quotes = Producer::<[u64; 7], _>::attach(&segment)?;
    for number in 0..1_000_000 {
        let quote = [number, 2, 3, 4, 5, 6, 7];
        while let Err(error) = quotes.try_push(quote) {
            assert!(matches!(error, PushError::Full(_)), "the receiver broke the ring: {error}");
            core::hint::spin_loop(); // full: the receiver is behind, or not there yet
        }
    }
    quotes.close(); // the receiver gets what is in the ring, and then removes the segment
    Ok(())
}
