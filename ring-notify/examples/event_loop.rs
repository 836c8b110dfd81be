//! A ring and its event in a loop of one's own, beside another descriptor: poll here, epoll or io_uring alike.
//!
//! Without an argument it starts a client, hands it the ring and the event over a socket, and sends it messages and, over
//! its standard input, a word now and then.

use core::error::Error;
use core::time::Duration;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio, exit};

use ring_core::spsc::{Consumer, Layout, PopError, Producer};
use ring_notify::{Event, Options};
use ring_shm::Descriptor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const BURSTS: u64 = 20;
const BURST: u64 = 500;

fn main() {
    let result = match std::env::args().nth(1) {
        None => serve(),
        Some(path) => follow(&path),
    };
    if let Err(error) = result {
        eprintln!("{error} ({error:?})");
        exit(1);
    }
}

fn serve() -> Result<(), Box<dyn Error>> {
    let messages: Producer<u64, _> = ring_shm::Options::new().create_anonymous_ring(&Layout::new(64)?)?;
    let event = Event::new()?;
    let passed = Descriptor::from(event.as_fd().try_clone_to_owned()?);

    let path = std::env::temp_dir().join(format!("event-loop-{}.sock", std::process::id()));
    let server = ring_shm::Options::new().listen(&path)?;
    let mut client = Command::new(std::env::current_exe()?).arg(&path).stdin(Stdio::piped()).spawn()?;
    server.serve_with(messages.region().segment(), &[&passed], Duration::from_secs(10))?;

    let mut words = client.stdin.take().ok_or("the client has no standard input")?;
    let mut messages = Options::new().messages_event(event).sender(messages)?;
    for _ in 0..BURSTS {
        (0..BURST).try_for_each(|number| messages.send(number))?;
        words.write_all(b"burst\n")?;
        std::thread::sleep(Duration::from_millis(2));
    }
    messages.close();
    drop(words);
    exit(if client.wait()?.success() { 0 } else { 1 })
}

fn follow(path: &str) -> Result<(), Box<dyn Error>> {
    let (messages, passed) =
        ring_shm::Options::new().connect_ring_with::<Consumer<u64, _>>(path, Duration::from_secs(10))?;
    let event = passed.into_iter().next().ok_or("the server passes an event with the ring")?;
    let event = std::sync::Arc::new(Event::try_from(OwnedFd::from(event))?);
    let liveness = messages.region().liveness();
    let options = Options::new().messages_event(std::sync::Arc::clone(&event)).liveness(liveness);
    let mut messages = options.receiver(messages)?;
    let mut words = std::io::stdin().lock();

    let (mut count, mut words_bytes) = (0, 0);
    loop {
        loop {
            match messages.try_recv() {
                Ok(Some(_)) => count += 1,
                Ok(None) => break,
                Err(PopError::Closed) => {
                    words_bytes += words.read_to_end(&mut Vec::new())?;
                    println!("{count} messages, {words_bytes} bytes of words");
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Says that this side sleeps, unless there is something after all.
        if !messages.arm()? {
            continue;
        }
        let mut descriptors = [PollFd::new(&event, PollFlags::IN), PollFd::new(&words, PollFlags::IN)];
        let slice = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        if poll(&mut descriptors, Some(&slice))? == 0 {
            // Nothing for so long: a wait that does not wait asks whether the server still lives.
            match messages.ready(Some(Duration::ZERO)) {
                Ok(()) | Err(ring_notify::WaitError::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if descriptors[1].revents().intersects(PollFlags::IN) {
            words_bytes += words.read(&mut [0; 64])?;
        }
    }
}
