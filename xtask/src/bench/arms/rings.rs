//! Our other rings.

use core::hint::{black_box, spin_loop};

use anyhow::{Context, Result};
use measure::{Arm, Duplex, Message, Readers, Samples, Side, Slice, Timer, Writers, corrupted, directions};
use ring_core::{broadcast, bytes, mpmc};

use crate::bench::memory::Part;

/// Bytes of the long messages.
const LONG_BYTES: usize = 1024;

/// Room for as many of them as the copies without a ring have.
const LONG_RING_BYTES: usize = 2 * super::copies::SLOTS * LONG_BYTES;

/// Bytes of a byte ring that holds about as many messages of 56 bytes as another one of this depth.
fn ring_bytes(depth: u64) -> Result<usize> {
    Ok(usize::try_from(depth)? * 64)
}

/// Memory for a byte ring of each way.
pub(super) fn bytes_bytes(depth: u64) -> usize {
    ring_bytes(depth).and_then(|bytes| Ok(bytes::Layout::new(bytes)?.bytes())).unwrap_or(0)
}

pub(super) fn bytes(side: Side, parts: Vec<Part>, depth: u64) -> Result<impl Arm + 'static> {
    let layout = bytes::Layout::new(ring_bytes(depth)?)?;
    if side == Side::Lead {
        parts.iter().try_for_each(|part| layout.init(part))?;
    }
    let (to, from) = directions(side, parts)?;
    Ok(Duplex::new(bytes::Producer::attach(to)?, bytes::Consumer::attach(from)?))
}

/// Memory for a byte ring of long messages.
pub(super) fn long_bytes() -> usize {
    bytes::Layout::new(LONG_RING_BYTES).map_or(0, |layout| layout.bytes())
}

/// Long messages, one way.
pub(super) fn long(side: Side, parts: Vec<Part>) -> Result<Box<dyn Arm>> {
    let part = parts.into_iter().next().context("this arm has one part")?;
    Ok(match side {
        Side::Lead => {
            bytes::Layout::new(LONG_RING_BYTES)?.init(&part)?;
            Box::new(LongReader(bytes::Consumer::attach(part)?))
        }
        Side::Peer => Box::new(LongWriter(bytes::Producer::attach(part)?)),
    })
}

#[derive(Debug)]
struct LongReader(bytes::Consumer<Part>);

#[derive(Debug)]
struct LongWriter(bytes::Producer<Part>);

impl Arm for LongReader {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        let Slice::Stream { messages, .. } = slice else { return Samples::default() };
        let mut message = [0; LONG_BYTES];
        let mut start = timer.start();
        for number in 0..messages {
            while let Err(error) = self.0.try_pop(&mut message) {
                if error != bytes::PopError::Empty {
                    corrupted();
                }
                spin_loop();
            }
            black_box(&message);
            if number + 1 == messages.div_ceil(10) {
                start = timer.start();
            }
        }
        let ticks = timer.stop() - start;
        let kept = messages - messages.div_ceil(10);
        Samples { centre: vec![timer.net_ns(ticks) / kept as f64], tails: vec![], messages, used: None }
    }

    fn follow(&mut self, _: Slice) {}
}

impl Arm for LongWriter {
    fn lead(&mut self, _: Slice, _: Timer) -> Samples {
        Samples::default()
    }

    fn follow(&mut self, slice: Slice) {
        let Slice::Stream { messages, .. } = slice else { return };
        let mut message = [0; LONG_BYTES];
        for number in 0..messages {
            message[..8].copy_from_slice(&number.to_ne_bytes());
            while let Err(error) = self.0.try_push(black_box(&message)) {
                if error != bytes::PushError::Full {
                    corrupted();
                }
                spin_loop();
            }
        }
    }
}

/// Memory for one mpmc ring.
pub(super) fn mpmc_bytes(depth: u64) -> usize {
    mpmc::Layout::<Message>::new(depth).map_or(0, |layout| layout.bytes())
}

/// A ring of many producers and consumers each way, with one of each.
pub(super) fn mpmc(side: Side, parts: Vec<Part>, depth: u64) -> Result<impl Arm + 'static> {
    if side == Side::Lead {
        parts.iter().try_for_each(|part| mpmc::Layout::<Message>::new(depth)?.init(part))?;
    }
    let (to, from) = directions(side, parts)?;
    Ok(Duplex::new(mpmc::Producer::attach(to)?, mpmc::Consumer::attach(from)?))
}

/// One ring, with as many consumers in the lead as producers in the peer.
pub(super) fn mpmc_many(side: Side, parts: Vec<Part>, depth: u64, threads: usize) -> Result<Box<dyn Arm>> {
    let part = parts.into_iter().next().context("this arm has one part")?;
    if side == Side::Lead {
        mpmc::Layout::<Message>::new(depth)?.init(&part)?;
    }
    let parts = core::iter::repeat_n(part, threads);
    Ok(match side {
        Side::Lead => {
            Box::new(Readers(parts.map(mpmc::Consumer::<Message, _>::attach).collect::<Result<_, _>>()?))
        }
        Side::Peer => {
            Box::new(Writers(parts.map(mpmc::Producer::<Message, _>::attach).collect::<Result<_, _>>()?))
        }
    })
}

/// Memory for one broadcast ring.
pub(super) fn broadcast_bytes(depth: u64) -> usize {
    broadcast::Layout::<Message>::new(depth).map_or(0, |layout| layout.bytes())
}

/// A ring whose producer never waits each way: round trips, or a stream in which the reader may lose messages.
pub(super) fn broadcast(side: Side, parts: Vec<Part>, depth: u64) -> Result<impl Arm + 'static> {
    if side == Side::Lead {
        parts.iter().try_for_each(|part| broadcast::Layout::<Message>::new(depth)?.init(part))?;
    }
    let (to, from) = directions(side, parts)?;
    // From the oldest on: the other side may have begun.
    let from = broadcast::Consumer::join_oldest(from)?;
    Ok(Lossy(Duplex::new(broadcast::Producer::attach(to)?, from)))
}

type Both = Duplex<broadcast::Producer<Message, Part>, broadcast::Consumer<Message, Part>>;

/// What is lost is no message less: the time is that of all that were sent.
#[derive(Debug)]
struct Lossy(Both);

impl Arm for Lossy {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        let Slice::Stream { messages, .. } = slice else { return self.0.lead(slice, timer) };
        let mut sum = 0_u64;
        let start = timer.start();
        loop {
            match self.0.from().try_pop() {
                Ok(message) => {
                    sum = sum.wrapping_add(measure::exchange::sum(&message));
                    // Nothing overwrites the last one.
                    if message[0] + 1 == messages {
                        break;
                    }
                }
                Err(broadcast::PopError::Empty | broadcast::PopError::Lost { .. }) => spin_loop(),
                Err(_) => corrupted(),
            }
        }
        let ticks = timer.stop() - start;
        black_box(sum);
        Samples { centre: vec![timer.net_ns(ticks) / messages as f64], tails: vec![], messages, used: None }
    }

    fn follow(&mut self, slice: Slice) {
        self.0.follow(slice);
    }
}
