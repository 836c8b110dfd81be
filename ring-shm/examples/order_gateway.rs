//! An order gateway: several clients send orders into one mpmc ring, a matching engine takes them out and reports what it
//! has done through an spsc ring to a journal. A client is killed half-way, and nothing else suffers.
//!
//! Without an argument it starts all of them.

use core::time::Duration;
use std::process::{Child, Command, exit};

use ring_core::{mpmc, spsc};
use ring_shm::{Error, Options};
use zerocopy::{FromBytes, Immutable, IntoBytes};

const ORDERS_NAME: &str = "/gateway-orders";
const REPORTS_NAME: &str = "/gateway-reports";
const WAIT: Duration = Duration::from_secs(10);
const CLIENTS: usize = 3;
const ORDERS_EACH: u64 = 100_000;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Order {
    client: u64,
    number: u64,
    /// In hundredths.
    price: u64,
    quantity: u64,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Report {
    client: u64,
    number: u64,
    filled: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next();
    let client = arguments.next().and_then(|number| number.parse().ok());
    let result = match (what.as_deref(), client) {
        (None, _) => all(),
        (Some("engine"), None) => engine(),
        (Some("journal"), None) => journal(),
        (Some("client"), Some(number)) => client_of(number),
        _ => {
            eprintln!("usage: order_gateway [engine | journal | client NUMBER]");
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
    // What a run that was killed has left.
    let _ = (ring_shm::unlink(ORDERS_NAME), ring_shm::unlink(REPORTS_NAME));
    let orders: mpmc::Producer<Order, _> =
        Options::new().create_ring(ORDERS_NAME, &mpmc::Layout::new(1024)?)?;
    let mut engine = start(&["engine"]);
    let mut journal = start(&["journal"]);
    let mut victim = start(&["client", "0"]);
    let clients: Vec<Child> = (1..=CLIENTS).map(|number| start(&["client", &number.to_string()])).collect();
    std::thread::sleep(Duration::from_millis(5));
    victim.kill().expect("cannot kill a client");
    let mut succeeded = victim.wait().is_ok();
    for mut client in clients {
        succeeded &= client.wait().is_ok_and(|status| status.success());
    }
    // No more orders: the engine gets what is there, and then tells the journal.
    orders.close();
    for process in [&mut engine, &mut journal] {
        succeeded &= process.wait().is_ok_and(|status| status.success());
    }
    orders.region().unlink()?;
    exit(if succeeded { 0 } else { 1 })
}

fn client_of(client: u64) -> Result<(), Error> {
    let mut orders: mpmc::Producer<Order, _> = Options::new().attach_ring(ORDERS_NAME, WAIT)?;
    let liveness = orders.region().liveness();
    for number in 0..ORDERS_EACH {
        let mut order = Order { client, number, price: 10_000 + number % 50, quantity: 10 };
        // With the liveness, the slot of a client that was killed is cleared up by whoever it is in the way of.
        loop {
            match orders.try_push_with(order, &liveness) {
                Ok(()) => break,
                Err(mpmc::PushError::Full(back) | mpmc::PushError::Busy(back)) => order = back,
                Err(error) => panic!("no more orders: {error}"),
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn engine() -> Result<(), Error> {
    let mut orders: mpmc::Consumer<Order, _> = Options::new().attach_ring(ORDERS_NAME, WAIT)?;
    let mut reports: spsc::Producer<Report, _> =
        Options::new().open_ring(REPORTS_NAME, &spsc::Layout::new(1024)?, WAIT)?;
    let liveness = orders.region().liveness();
    loop {
        match orders.try_pop_with(&liveness) {
            Ok(Order { client, number, quantity, .. }) => {
                let report = Report { client, number, filled: quantity };
                while reports.try_push(report).is_err() {
                    std::thread::yield_now();
                }
            }
            Err(mpmc::PopError::Closed) => break,
            Err(mpmc::PopError::Empty | mpmc::PopError::Busy) => std::thread::yield_now(),
            Err(error) => panic!("the ring is broken: {error}"),
        }
    }
    reports.close();
    Ok(())
}

fn journal() -> Result<(), Error> {
    let mut reports: spsc::Consumer<Report, _> =
        Options::new().open_ring(REPORTS_NAME, &spsc::Layout::new(1024)?, WAIT)?;
    let mut next = [0; CLIENTS + 1];
    loop {
        match reports.try_pop() {
            Ok(report) => {
                let client = usize::try_from(report.client).ok();
                let expected = client.and_then(|client| next.get_mut(client)).expect("a client of ours");
                assert_eq!(report.number, *expected, "the orders of one client stay in order");
                *expected += 1;
            }
            Err(spsc::PopError::Empty) => std::thread::yield_now(),
            Err(spsc::PopError::Closed) => break,
            Err(error) => panic!("the ring is broken: {error}"),
        }
    }
    println!("orders of the client that was killed: {}, of the others: {:?}", next[0], &next[1..]);
    assert!(next[1..].iter().all(|count| *count == ORDERS_EACH), "none is lost");
    reports.region().unlink()
}
