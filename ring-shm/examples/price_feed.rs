//! A price feed: one process publishes, three others each see every price, or learn how many they have missed. The feed
//! never waits for a reader.
//!
//! Without an argument it starts all four. In terminals of your own: `price_feed publish`, and `price_feed read` as often
//! as you like.

use core::time::Duration;
use std::process::{Command, exit};

use ring_core::Role;
use ring_core::broadcast::{Consumer, Layout, PopError, Producer};
use ring_shm::{Error, Options, Presence};
use zerocopy::{FromBytes, Immutable, IntoBytes};

const NAME: &str = "/price-feed";
const PRICES: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Price {
    number: u64,
    instrument: u32,
    /// In hundredths.
    bid: u32,
    ask: u32,
    size: u32,
}

fn main() {
    let result = match std::env::args().nth(1).as_deref() {
        None => all(),
        Some("publish") => publish(),
        Some("read") => read(),
        Some(_) => {
            eprintln!("usage: price_feed [publish | read]");
            exit(2);
        }
    };
    if let Err(error) = result {
        eprintln!("{error} ({error:?})");
        exit(1);
    }
}

fn all() -> Result<(), Error> {
    let _ = ring_shm::unlink(NAME); // what another run has left
    let program = std::env::current_exe().expect("the path of this program");
    let start = |what| Command::new(&program).arg(what).spawn().expect("cannot start a process");
    let readers = [start("read"), start("read"), start("read")];
    let mut succeeded = true;
    for mut process in [start("publish")].into_iter().chain(readers) {
        succeeded &= process.wait().is_ok_and(|status| status.success());
    }
    ring_shm::unlink(NAME)?;
    exit(if succeeded { 0 } else { 1 })
}

fn publish() -> Result<(), Error> {
    // The feed of a former publisher stays for readers that come late, and ends here.
    let _ = ring_shm::unlink(NAME);
    let layout = Layout::new(4096)?;
    let mut feed: Producer<Price, _> = Options::new().create_ring(NAME, &layout)?;
    // Whoever joins sees what is published from then on.
    std::thread::sleep(Duration::from_millis(200));
    for number in 0..PRICES {
        if number % 256 == 0 {
            std::thread::yield_now(); // prices come in bursts
        }
        let bid = 10_000 + (number % 100) as u32;
        feed.push(&Price { number, instrument: (number % 7) as u32, bid, ask: bid + 2, size: 100 });
    }
    feed.close();
    println!("published {PRICES} prices");
    Ok(())
}

fn read() -> Result<(), Error> {
    let mut feed: Consumer<Price, _> = Options::new().attach_ring(NAME, Duration::from_secs(10))?;
    let (mut seen, mut missed, mut idle) = (0_u64, 0_u64, 0_u32);
    loop {
        match feed.try_pop() {
            Ok(price) => {
                assert!(price.bid < price.ask, "never half of a price: {price:?}");
                seen += 1;
            }
            Err(PopError::Lost { messages }) => missed += messages,
            Err(PopError::Closed) => break,
            Err(PopError::Corrupted) => panic!("the publisher broke the ring"),
            Err(PopError::Empty) => {
                idle = idle.wrapping_add(1);
                // Now and then: does the publisher live?
                if idle % 1_000_000 == 0 && feed.region().presence(Role::Producer)? == Presence::Gone {
                    println!("the publisher is gone");
                    break;
                }
                core::hint::spin_loop();
            }
        }
    }
    println!("saw {seen} prices, missed {missed}");
    Ok(())
}
