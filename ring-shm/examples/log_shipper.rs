//! A log shipper: an application writes lines of any length into a ring of bytes, and another process writes them to a file.
//! The shipper is killed in the middle and started again: each line arrives, and at most the last ones twice.
//!
//! Without an argument it starts both.

use core::time::Duration;
use std::io::Write;
use std::process::{Child, Command, exit};

use ring_core::bytes::{Consumer, Delivery, Layout, PopError, Producer, PushError};
use ring_shm::{Error, Options};

const NAME: &str = "/log-lines";
const WAIT: Duration = Duration::from_secs(10);
const LINES: u64 = 200_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let result = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => all(),
        (Some("log"), None) => log(),
        (Some("ship"), Some(path)) => ship(&path),
        _ => {
            eprintln!("usage: log_shipper [log | ship FILE]");
            exit(2);
        }
    };
    if let Err(error) = result {
        eprintln!("{error} ({error:?})");
        exit(1);
    }
}

fn start(arguments: &[&str]) -> Child {
    let program = std::env::current_exe().expect("the path of this program");
    Command::new(program).args(arguments).spawn().expect("cannot start a process")
}

fn all() -> Result<(), Error> {
    let _ = ring_shm::unlink(NAME); // what a run that was killed has left
    let path = std::env::temp_dir().join(format!("log-shipper-{}.log", std::process::id()));
    let path = path.to_str().expect("a path of text");
    let mut log = start(&["log"]);
    let mut shipper = start(&["ship", path]);
    // In the middle of its work.
    while std::fs::metadata(path).map_or(true, |file| file.len() == 0) {
        std::thread::sleep(Duration::from_millis(1));
    }
    shipper.kill().expect("cannot kill the shipper");
    let mut succeeded = true;
    if !shipper.wait().is_ok_and(|status| status.success()) {
        succeeded &= start(&["ship", path]).wait().is_ok_and(|status| status.success());
    }
    succeeded &= log.wait().is_ok_and(|status| status.success());

    let lines = std::fs::read_to_string(path).expect("the log file");
    let _ = std::fs::remove_file(path);
    let mut numbers: Vec<u64> =
        lines.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
    let arrived = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    println!("{} lines arrived, {} of them twice", numbers.len(), arrived - numbers.len());
    succeeded &= numbers.len() as u64 == LINES;
    exit(if succeeded { 0 } else { 1 })
}

fn log() -> Result<(), Error> {
    let mut lines: Producer<_> = Options::new().open_ring(NAME, &Layout::new(1 << 20)?, WAIT)?;
    for number in 0..LINES {
        let line = format!("{number} something happened{}\n", ", and more".repeat((number % 20) as usize));
        loop {
            match lines.try_push(line.as_bytes()) {
                Ok(()) => break,
                Err(PushError::Full) => std::thread::yield_now(), // a logger could drop the line instead
                Err(error) => panic!("cannot log: {error}"),
            }
        }
    }
    lines.close();
    Ok(())
}

fn ship(path: &str) -> Result<(), Error> {
    let mut file =
        std::fs::File::options().create(true).append(true).open(path).expect("cannot open the log file");
    // Credit is returned late: what a killed shipper has popped and perhaps not written comes again.
    let lines: Consumer<_> = Options::new().open_ring(NAME, &Layout::new(1 << 20)?, WAIT)?;
    let mut lines = lines.delivery(Delivery::AtLeastOnce { batch: 1 << 16 });
    let mut line = vec![0; lines.longest()];
    loop {
        match lines.try_pop(&mut line) {
            Ok(length) => file.write_all(&line[..length]).expect("cannot write the log file"),
            Err(PopError::Empty) => std::thread::yield_now(),
            Err(PopError::Closed) => break,
            Err(error) => panic!("the ring is broken: {error}"),
        }
    }
    lines.region().unlink()
}
