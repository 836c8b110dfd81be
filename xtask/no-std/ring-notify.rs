//! Waits for messages without std: asleep on a futex, and spinning on a doorbell.
#![no_std]
#![no_main]

mod hosted;

use core::time::Duration;

use ring_core::{StaticRegion, spsc};
use ring_notify::{Options, RecvError, Strategy};

type Message = [u64; 7];

const LAYOUT: spsc::Layout<Message> = match spsc::Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!("4 is a power of two"),
};

static ASLEEP: StaticRegion<{ LAYOUT.bytes() }> = StaticRegion::new();
static SPINNING: StaticRegion<{ LAYOUT.bytes() }> = StaticRegion::new();

fn main() {
    through(&ASLEEP, Options::new().strategy(Strategy::futex().spins(10)));
    through(&SPINNING, Options::doorbell());
}

fn through(region: &'static StaticRegion<{ LAYOUT.bytes() }>, options: Options) {
    let (producer, consumer) = spsc::create(region, &LAYOUT).unwrap();
    let mut sender = options.clone().sender(producer).unwrap();
    let mut receiver = options.receiver(consumer).unwrap();
    sender.send([7; 7]).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(5)), Ok([7; 7]));
    assert_eq!(receiver.recv_timeout(Duration::from_millis(10)), Err(RecvError::TimedOut));
    sender.close();
    assert_eq!(receiver.recv(), Err(RecvError::Ring(spsc::PopError::Closed)));
}
