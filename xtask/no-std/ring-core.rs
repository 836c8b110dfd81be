//! Sends through a ring of each kind in a static, with neither std nor an allocator nor a C library.
#![no_std]
#![no_main]
#![no_builtins]

mod bare;

use ring_core::{StaticRegion, broadcast, bytes, mpmc, spsc};

type Message = [u64; 7];

const SPSC: spsc::Layout<Message> = match spsc::Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!("4 is a power of two"),
};
const BYTES: bytes::Layout = match bytes::Layout::new(256) {
    Ok(layout) => layout,
    Err(_) => panic!("256 is a power of two"),
};
const MPMC: mpmc::Layout<Message> = match mpmc::Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!("4 is a power of two"),
};
const BROADCAST: broadcast::Layout<Message> = match broadcast::Layout::new(4) {
    Ok(layout) => layout,
    Err(_) => panic!("4 is a power of two"),
};

static SPSC_REGION: StaticRegion<{ SPSC.bytes() }> = StaticRegion::new();
static BYTES_REGION: StaticRegion<{ BYTES.bytes() }> = StaticRegion::new();
static MPMC_REGION: StaticRegion<{ MPMC.bytes() }> = StaticRegion::new();
static BROADCAST_REGION: StaticRegion<{ BROADCAST.bytes() }> = StaticRegion::new();

fn main() {
    through_spsc();
    through_bytes();
    through_mpmc();
    through_broadcast();
}

fn through_spsc() {
    let (mut producer, mut consumer) = spsc::create(&SPSC_REGION, &SPSC).unwrap();
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

fn through_bytes() {
    let (mut producer, mut consumer) = bytes::create(&BYTES_REGION, &BYTES).unwrap();
    for len in 1..=BYTES.longest() {
        let mut popped = [0; 256];
        producer.try_push(&[len as u8; 256][..len]).unwrap();
        assert_eq!(consumer.try_pop(&mut popped), Ok(len));
        assert!(popped[..len].iter().all(|&byte| byte == len as u8));
        assert!(consumer.try_pop(&mut popped).is_err());
    }
}

fn through_mpmc() {
    let (mut producer, mut consumer) = mpmc::create(&MPMC_REGION, &MPMC).unwrap();
    let mut second = mpmc::Producer::<Message, _>::attach(&MPMC_REGION).unwrap();
    for round in 0..100 {
        for message in 0..2 {
            producer.try_push([round + message; 7]).unwrap();
            second.try_push([round + message; 7]).unwrap();
        }
        assert!(producer.try_push([0; 7]).is_err());
        for message in [0, 0, 1, 1] {
            assert_eq!(consumer.try_pop(), Ok([round + message; 7]));
        }
        assert!(consumer.try_pop().is_err());
    }
}

fn through_broadcast() {
    let (mut producer, mut consumer) = broadcast::create(&BROADCAST_REGION, &BROADCAST).unwrap();
    for round in 0..100 {
        producer.push_slice(&[[round; 7]; 5]);
        assert_eq!(consumer.try_pop(), Err(broadcast::PopError::Lost { messages: 1 }));
        for _ in 0..4 {
            assert_eq!(consumer.try_pop(), Ok([round; 7]));
        }
        assert!(consumer.try_pop().is_err());
    }
}
