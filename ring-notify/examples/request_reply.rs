//! Two processes that sleep while there is nothing to do: requests one way, replies the other, and an end that is noticed.
//!
//! Without an argument it starts the server, asks it some questions, kills it, and learns of its death.

use core::error::Error;
use core::time::Duration;
use std::process::{Command, exit};

use ring_core::spsc::{Consumer, Layout, Producer};
use ring_notify::{Options, RecvError, Strategy};

const QUESTIONS: u64 = 10_000;

fn main() {
    let result = match std::env::args().nth(1) {
        None => ask(),
        Some(name) => answer(&name),
    };
    if let Err(error) = result {
        eprintln!("{error} ({error:?})");
        exit(1);
    }
}

fn ask() -> Result<(), Box<dyn Error>> {
    let name = format!("request-reply-{}", std::process::id());
    let (requests, replies) = (format!("{name}-requests"), format!("{name}-replies"));
    let requests: Producer<u64, _> = ring_shm::Options::new().create_ring(&requests, &Layout::new(16)?)?;
    let replies: Consumer<u64, _> = ring_shm::Options::new().create_ring(&replies, &Layout::new(16)?)?;
    let segments = [requests.region().segment(), replies.region().segment()].map(std::sync::Arc::clone);

    // The kernel tells who is dead, and a wait asks every 10 ms.
    let liveness = replies.region().liveness();
    let waiting =
        Options::new().strategy(Strategy::futex().adaptive()).slice(Some(Duration::from_millis(10)));
    let mut requests = Options::new().sender(requests)?;
    let mut replies = waiting.liveness(liveness).receiver(replies)?;

    let mut server = Command::new(std::env::current_exe()?).arg(&name).spawn()?;
    for number in 0..QUESTIONS {
        requests.send(number)?;
        // The server may still be on its way: until it has the role, nobody is dead.
        assert_eq!(replies.recv()?, number * number);
    }
    println!("{QUESTIONS} answers; asking cost {:?}", requests.counters());
    println!("waiting for them cost {:?}", replies.counters());

    server.kill()?;
    server.wait()?;
    assert_eq!(replies.recv(), Err(RecvError::PeerGone));
    println!("the server is dead");
    segments.iter().try_for_each(|segment| segment.unlink())?;
    Ok(())
}

fn answer(name: &str) -> Result<(), Box<dyn Error>> {
    let patience = Duration::from_secs(10);
    let requests: Consumer<u64, _> =
        ring_shm::Options::new().attach_ring(&format!("{name}-requests"), patience)?;
    let replies: Producer<u64, _> =
        ring_shm::Options::new().attach_ring(&format!("{name}-replies"), patience)?;
    let mut requests = Options::new().receiver(requests)?;
    let mut replies = Options::new().sender(replies)?;
    loop {
        let number = requests.recv()?;
        replies.send(number * number)?;
    }
}
