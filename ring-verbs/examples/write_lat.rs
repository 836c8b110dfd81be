//! How long a message takes by RDMA WRITE, as `ib_write_lat` measures it: half of a round trip. The receiver polls the
//! last byte of its memory.
//!
//! `write_lat` on one host, `write_lat HOST` on the other.

mod common;

use anyhow::{Context as _, Result};
use clap::Parser;
use common::{Device, Queue, Samples, meet, slab};
use ring_verbs::{
    AccessFlags, Connection, ExposedRegion, PageMemory, Pages, QueuePair, QueuePairOptions, Rc, Request,
};

/// Time of a message by RDMA WRITE: half of a round trip
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    peer: common::Peer,
    /// Bytes of a message
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
    /// Round trips
    #[arg(short = 'n', long, default_value_t = 1000)]
    iterations: u32,
    /// Messages up to so many bytes are carried by the request itself
    #[arg(short = 'I', long, default_value_t = 220)]
    inline: u32,
}

fn main() -> Result<()> {
    let Options { peer, size, iterations, inline } = Options::parse();
    let device = Device::open(&peer)?;
    let pool = device.pool(size, 1)?;
    let mut completions = Queue::new(&device.context, 1, false)?;
    let options = QueuePairOptions::new(1, 0).max_inline(inline);
    let pair: QueuePair<Rc, _> = options.build(&device.domain, &completions.queue, &completions.queue)?;

    // The last byte of a message is polled: nothing may come before it out of order, so RELAXED_ORDERING is not asked
    // for. Whether a device writes a message's bytes in order is the device's matter; those for this use do.
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let memory = PageMemory::new(size as usize, Pages::Small, None)?;
    let inbox = ExposedRegion::new(&device.domain, memory, access)?;
    let last = size as usize - 1;

    let connection =
        Connection::new(&device.port, &device.gid).access(AccessFlags::REMOTE_WRITE).region(inbox.remote());
    let mut stream = peer.stream()?;
    let (mut pair, theirs) = connection.connect(&mut stream, pair)?;
    let target = *theirs.regions().first().context("the peer exposes no memory: is it write_lat?")?;
    let target =
        target.part(0, size.into()).context("the peer has less memory: give both the same --size")?;

    let request = Request::write(target);
    let mut bytes = vec![0; size as usize];
    let mut message = slab(&pool, size);
    let mut samples = Samples::new(iterations);
    let (mut sent, mut received) = (0_u8, 0_u8);
    for iteration in 0..iterations {
        // The client writes first, and both in turn.
        if iteration > 0 || !peer.is_client() {
            received = received.wrapping_add(1);
            while last_byte(&inbox, last) != received {}
        }
        sent = sent.wrapping_add(1);
        samples.now();
        if size <= inline {
            bytes[last] = sent;
            pair.post_inline(&request, &bytes)?;
            completions.next()?;
        } else {
            message[last] = sent;
            pair.post(&request, message)?;
            message = completions.next()?.buffer.expect("it comes back");
        }
    }
    if peer.is_client() {
        received = received.wrapping_add(1);
        while last_byte(&inbox, last) != received {}
        samples.report(size, 2);
    }
    meet(&mut stream)
}

#[inline]
fn last_byte(inbox: &ExposedRegion<PageMemory>, offset: usize) -> u8 {
    let mut byte = [0];
    inbox.read(offset, &mut byte);
    byte[0]
}
