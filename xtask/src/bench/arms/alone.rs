//! Parts of a message that need no peer.

use core::hint::black_box;

use anyhow::{Context, Result};
use measure::exchange::{BLOCK, check, stamps};
use measure::{Arm, Message, Receiver, Samples, Sender, Side, Slice, Timer};
use ring_core::spsc::{Consumer, Layout, Producer};

use crate::bench::memory::Part;

/// Fills a ring and empties it again, from one core. Only the pushes are measured.
#[derive(Debug)]
struct PushAlone {
    producer: Producer<Message, Part>,
    consumer: Consumer<Message, Part>,
    depth: u64,
}

/// Nobody: this process has nothing to do.
#[derive(Debug)]
pub(super) struct Absent;

/// Makes one side.
pub(super) fn push_alone(side: Side, parts: Vec<Part>, depth: u64) -> Result<Box<dyn Arm>> {
    if side == Side::Peer {
        return Ok(Box::new(Absent));
    }
    let part = parts.into_iter().next().context("this arm has one part")?;
    Layout::<Message>::new(depth)?.init(&part)?;
    let (producer, consumer) = (Producer::attach(part.clone())?, Consumer::attach(part)?);
    Ok(Box::new(PushAlone { producer, consumer, depth }))
}

impl Arm for PushAlone {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        let Slice::RoundTrips { blocks, .. } = slice else { return Samples::default() };
        let mut ticks = stamps(blocks);
        let mut sum = 0_u64;
        for ticks in &mut ticks {
            let start = timer.start();
            for number in 0..self.depth {
                check(u64::from(self.producer.try_send(&[number; 7])), 1);
            }
            *ticks = timer.stop() - start;
            while let Some(message) = self.consumer.try_receive() {
                sum = sum.wrapping_add(message[0]);
            }
        }
        black_box(sum);
        Samples {
            centre: ticks.iter().map(|&ticks| timer.net_ns(ticks) / self.depth as f64).collect(),
            tails: vec![],
            messages: blocks * self.depth,
            used: None,
        }
    }

    fn follow(&mut self, _: Slice) {}
}

impl Arm for Absent {
    fn lead(&mut self, _: Slice, _: Timer) -> Samples {
        Samples::default()
    }

    fn follow(&mut self, _: Slice) {}
}

/// One system call that does next to nothing, and that the C library cannot answer by itself.
#[derive(Debug)]
pub(super) struct Syscall;

impl Arm for Syscall {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        let Slice::RoundTrips { blocks, singles, .. } = slice else { return Samples::default() };
        let mut block_ticks = stamps(blocks);
        let mut single_ticks = stamps(singles);
        for ticks in &mut block_ticks {
            let start = timer.start();
            for _ in 0..BLOCK {
                black_box(rustix::process::getppid());
            }
            *ticks = timer.stop() - start;
        }
        for ticks in &mut single_ticks {
            let start = timer.start();
            black_box(rustix::process::getppid());
            *ticks = timer.stop() - start;
        }
        Samples {
            centre: block_ticks.iter().map(|&ticks| timer.net_ns(ticks) / BLOCK as f64).collect(),
            tails: single_ticks.iter().map(|&ticks| timer.net_ns(ticks)).collect(),
            messages: singles,
            used: None,
        }
    }

    fn follow(&mut self, _: Slice) {}
}
