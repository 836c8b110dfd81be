//! How long a message takes by SEND, as `ib_send_lat` measures it: half of a round trip.
//!
//! `send_lat` on one host, `send_lat HOST` on the other.

mod common;

use anyhow::Result;
use clap::Parser;
use common::{Device, Queue, Samples, meet, slab};
use ring_verbs::{Connection, QueuePair, QueuePairOptions, Rc, Request};

/// Time of a message by SEND: half of a round trip
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    peer: common::Peer,
    /// Bytes of a message
    #[arg(short, long, default_value_t = 2)]
    size: u32,
    /// Round trips
    #[arg(short = 'n', long, default_value_t = 1000)]
    iterations: u32,
    /// Messages up to so many bytes are carried by the request itself
    #[arg(short = 'I', long, default_value_t = 236)]
    inline: u32,
    /// Receives that are posted ahead
    #[arg(short = 'r', long, default_value_t = 64)]
    depth: u32,
    /// Every how many sends one has a completion, as perftest's -Q: a power of two
    #[arg(short = 'Q', long, default_value_t = 64)]
    signal_every: u32,
    /// Sleep until a completion comes, instead of polling
    #[arg(short, long)]
    events: bool,
}

fn main() -> Result<()> {
    let Options { peer, size, iterations, inline, depth, signal_every, events } = Options::parse();
    let device = Device::open(&peer)?;
    let pool = device.pool(size.max(1), depth + signal_every)?;
    let mut sends = Queue::new(&device.context, signal_every, events)?;
    let mut receives = Queue::new(&device.context, depth, events)?;
    let options = QueuePairOptions::new(signal_every, depth).max_inline(inline).signal_every(signal_every);
    let pair: QueuePair<Rc, _> = options.build(&device.domain, &sends.queue, &receives.queue)?;

    let connection = Connection::new(&device.port, &device.gid);
    let mut pair = connection.init(pair)?;
    for _ in 0..depth {
        pair.post_receive(slab(&pool, size))?;
    }
    let mut stream = peer.stream()?;
    let (mut pair, _) = connection.finish(&mut stream, pair)?;

    let request = Request::send();
    let bytes = vec![0x7b; size as usize];
    let mut messages: Vec<_> = (0..signal_every).map(|_| slab(&pool, size)).collect();
    let mut samples = Samples::new(iterations);
    for iteration in 0..iterations {
        // The client sends first, and both in turn.
        if iteration > 0 || !peer.is_client() {
            let received = receives.next()?;
            if let Some(buffer) = received.buffer {
                pair.post_receive(buffer)?;
            }
        }
        samples.now();
        match messages.pop() {
            Some(buffer) if size > inline => pair.post(&request, buffer)?,
            unused => {
                messages.extend(unused);
                pair.post_inline(&request, &bytes)?
            }
        };
        // The last of so many has a completion, which brings back all.
        if (iteration + 1) % signal_every == 0 {
            for _ in 0..signal_every {
                messages.extend(sends.next()?.buffer);
            }
        }
    }
    if peer.is_client() {
        receives.next()?;
        samples.report(size, 2);
    }
    meet(&mut stream)
}
