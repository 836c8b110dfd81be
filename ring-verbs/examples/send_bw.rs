//! How many messages and bytes go through by SEND in one direction, as `ib_send_bw` measures it.
//!
//! `send_bw` on one host, `send_bw HOST` on the other, with the same size and number of iterations.

mod common;

use core::time::Duration;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use common::{Device, Queue, meet, slab};
use ring_verbs::{Connection, QueuePair, QueuePairOptions, Rc, Request, Rts, Slab};

/// Messages and bytes a second by SEND, from the client to the server
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    peer: common::Peer,
    /// Bytes of a message
    #[arg(short, long, default_value_t = 65536)]
    size: u32,
    /// Messages
    #[arg(short = 'n', long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Messages up to so many bytes are carried by the request itself
    #[arg(short = 'I', long, default_value_t = 0)]
    inline: u32,
    /// Requests that go to the device with one ring of the doorbell, and with one completion
    #[arg(short, long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Requests in flight, at most
    #[arg(short = 't', long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// Sleep until a completion comes, instead of polling
    #[arg(short, long)]
    events: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let Options { size, depth, .. } = options;
    let device = Device::open(&options.peer)?;
    // The server has more receives than the client requests, so that the client does not wait for them.
    let (is_client, receives) =
        (options.peer.is_client(), if options.peer.is_client() { 0 } else { 2 * depth });
    let pool = device.pool(size.max(1), depth.max(receives))?;
    let mut queue = Queue::new(&device.context, depth + receives, options.events)?;
    let batch = options.batch.min(depth);
    let pair: QueuePair<Rc, _> = QueuePairOptions::new(depth, receives)
        .max_inline(options.inline)
        .batch(batch)
        .signal_every(batch)
        .build(&device.domain, &queue.queue, &queue.queue)?;

    let connection = Connection::new(&device.port, &device.gid);
    let mut pair = connection.init(pair)?;
    for _ in 0..receives {
        pair.post_receive(slab(&pool, size))?;
    }
    let mut stream = options.peer.stream()?;
    let (mut pair, _) = connection.finish(&mut stream, pair)?;
    if is_client {
        let free = (0..depth).map(|_| slab(&pool, size)).collect();
        report(&options, client(&options, batch, &mut pair, &mut queue, free)?);
    } else {
        for _ in 0..options.iterations {
            if let Some(buffer) = queue.next()?.buffer {
                pair.post_receive(buffer)?;
            }
        }
    }
    meet(&mut stream)
}

/// From the first post to the last completion.
fn client(
    options: &Options,
    batch: u32,
    pair: &mut QueuePair<Rc, Rts>,
    queue: &mut Queue,
    mut free: Vec<Slab>,
) -> Result<Duration> {
    let Options { size, iterations, inline, depth, .. } = *options;
    let bytes = vec![0x7b; size as usize];
    let begin = Instant::now();
    let (mut posted, mut done) = (0, 0);
    while done < iterations {
        let mut count = batch.min(iterations - posted);
        if count > 0 && posted - done + count <= depth {
            let mut chain = pair.batch();
            while count > 0 {
                posted += 1;
                count -= 1;
                let request = if count == 0 { Request::send().signaled() } else { Request::send() };
                if size <= inline {
                    chain.push_inline(&request, &bytes)?;
                } else {
                    chain.push(&request, free.pop().expect("there is one for each request in flight"))?;
                }
            }
            chain.post()?;
        } else {
            done += 1;
            free.extend(queue.next()?.buffer);
        }
    }
    Ok(begin.elapsed())
}

fn report(options: &Options, time: Duration) {
    let seconds = time.as_secs_f64();
    let (size, messages) = (f64::from(options.size), f64::from(options.iterations));
    println!("{:>9} {:>10} {:>12} {:>14}", "bytes", "messages", "MiB/s", "messages/s");
    println!(
        "{:>9} {:>10} {:>12.2} {:>14.0}",
        options.size,
        options.iterations,
        size * messages / seconds / f64::from(1 << 20),
        messages / seconds
    );
}
