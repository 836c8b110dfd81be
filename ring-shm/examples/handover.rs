//! A ring for a process that is not trusted with a name: the segment is sealed, and its roles are handed out over a socket.
//!
//! Without an argument it starts a client, serves it, and sends it messages.

use core::time::Duration;
use std::process::{Command, exit};
use std::sync::Arc;

use ring_core::Role;
use ring_core::spsc::{Consumer, Layout, PopError, Producer};
use ring_shm::{Error, Options, Presence, Segment, Server};

const MESSAGES: u64 = 100_000;

fn main() {
    let result = match std::env::args().nth(1) {
        None => serve(),
        Some(path) => consume(&path),
    };
    if let Err(error) = result {
        eprintln!("{error} ({error:?})");
        exit(1);
    }
}

fn serve() -> Result<(), Error> {
    let mut messages: Producer<u64, _> = Options::new().create_anonymous_ring(&Layout::new(1024)?)?;
    // Mode 0600: only this user can connect. `mode` and `peer_user` let others in.
    let path = std::env::temp_dir().join(format!("handover-{}.sock", std::process::id()));
    let server = Options::new().listen(&path)?;
    let program = std::env::current_exe().expect("the path of this program");
    let mut client = Command::new(program).arg(&path).spawn().expect("cannot start the client");

    // A thread of its own, so that a client that is started again finds a server.
    let segment = Arc::clone(messages.region().segment());
    std::thread::spawn(move || serve_for_ever(&server, &segment));

    for number in 0..MESSAGES {
        while messages.try_push(number).is_err() {
            if messages.region().presence(Role::Consumer)? == Presence::Gone {
                println!("the client is gone");
                exit(1);
            }
            std::thread::yield_now();
        }
    }
    messages.close();
    let succeeded = client.wait().is_ok_and(|status| status.success());
    let _ = std::fs::remove_file(path); // the server ends with this process
    exit(if succeeded { 0 } else { 1 })
}

fn serve_for_ever(server: &Server, segment: &Arc<Segment>) {
    loop {
        match server.serve(segment, Duration::from_secs(1)) {
            Ok(Some(served)) => {
                println!("process {} has the {}", served.process, served.role.unwrap_or(Role::Consumer))
            }
            Ok(None) => {} // nobody came
            // It is about one client: it went away, wants what another one has, or is of another user.
            Err(error) => eprintln!("{error}"),
        }
    }
}

fn consume(path: &str) -> Result<(), Error> {
    let mut messages: Consumer<u64, _> = Options::new().connect_ring(path, Duration::from_secs(10))?;
    let mut sum = 0;
    loop {
        match messages.try_pop() {
            Ok(number) => sum += number,
            Err(PopError::Empty) => std::thread::yield_now(),
            Err(PopError::Closed) => break,
            Err(error) => panic!("the ring is broken: {error}"),
        }
    }
    println!("the numbers add up to {sum}");
    Ok(())
}
