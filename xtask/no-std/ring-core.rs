//! Pushes and pops through a ring in a static, with neither std nor an allocator nor a C library.
#![no_std]
#![no_main]
#![no_builtins]

mod bare;

use ring_core::{StaticRegion, spsc};

const LAYOUT: spsc::Layout<[u64; 7]> = match spsc::Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!("4 is a power of two"),
};
static REGION: StaticRegion<{ LAYOUT.bytes() }> = StaticRegion::new();

fn main() {
    let (mut producer, mut consumer) = spsc::create(&REGION, &LAYOUT).unwrap();
    for round in 0..100 {
        for message in 0..4 {
            producer.try_push([round + message; 7]).unwrap();
        }
        assert!(producer.try_push([0; 7]).is_err());
        for message in 0..4 {
            assert_eq!(consumer.try_pop(), Ok([round + message; 7]));
        }
        assert!(consumer.try_pop().is_err());
    }
}
