//! Sends a message through an anonymous segment without std.
#![no_std]
#![no_main]

mod hosted;

use core::time::Duration;

use ring_core::spsc;
use ring_shm::Options;

fn main() {
    let layout = spsc::Layout::<[u64; 7]>::new(16).unwrap();
    let new = Options::new().create_anonymous(layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    let segment = new.publish();
    let mut producer = spsc::Producer::<[u64; 7], _>::attach(&segment).unwrap();
    producer.try_push([7; 7]).unwrap();

    let descriptor = segment.inheritable().unwrap();
    let attached = Options::new().attach_fd(descriptor, Duration::from_secs(5)).unwrap();
    let mut consumer = spsc::Consumer::<[u64; 7], _>::attach(attached).unwrap();
    assert_eq!(consumer.try_pop(), Ok([7; 7]));
    assert!(consumer.try_pop().is_err());
}
