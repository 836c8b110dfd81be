//! Pops the messages of the ring that `sender` makes.

use core::time::Duration;

use ring_core::spsc::{Consumer, PopError};
use ring_shm::{Error, Options};

fn main() {
    if let Err(error) = receive() {
        eprintln!("{error} ({error:?})"); // what to do, and what exactly happened
        std::process::exit(1);
    }
}

fn receive() -> Result<(), Error> {
    let mut quotes: Consumer<[u64; 7], _> = Options::new().attach_ring("/quotes", Duration::from_secs(10))?;
    let (mut count, mut sum) = (0_u64, 0_u64);
    loop {
        match quotes.try_pop() {
            Ok(quote) => {
                count += 1;
                sum += quote[0];
            }
            Err(PopError::Empty) => core::hint::spin_loop(),
            Err(PopError::Closed) => break,
            Err(PopError::Corrupted) => panic!("the sender broke the ring"),
        }
    }
    println!("{count} quotes, their numbers add up to {sum}");
    quotes.region().unlink()
}
