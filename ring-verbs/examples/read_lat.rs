//! How long it takes to fetch a peer's memory by RDMA READ, as `ib_read_lat` measures it: a round trip, of which the
//! peer's program knows nothing.
//!
//! `read_lat` on one host, `read_lat HOST` on the other.

mod common;

use anyhow::{Context as _, Result};
use clap::Parser;
use common::{Device, Queue, Samples, meet, slab};
use ring_verbs::{
    AccessFlags, Connection, ExposedRegion, PageMemory, Pages, QueuePair, QueuePairOptions, Rc, Request,
};

/// Time of an RDMA READ: a round trip
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    peer: common::Peer,
    /// Bytes to fetch
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
    /// Round trips
    #[arg(short = 'n', long, default_value_t = 1000)]
    iterations: u32,
    /// Sleep until a completion comes, instead of polling
    #[arg(short, long)]
    events: bool,
}

fn main() -> Result<()> {
    let Options { peer, size, iterations, events } = Options::parse();
    let device = Device::open(&peer)?;
    let pool = device.pool(size, 1)?;
    let mut completions = Queue::new(&device.context, 1, events)?;
    let options = QueuePairOptions::new(1, 0);
    let pair: QueuePair<Rc, _> = options.build(&device.domain, &completions.queue, &completions.queue)?;
    let memory = PageMemory::new(size as usize, Pages::Small, None)?;
    let source = ExposedRegion::new(&device.domain, memory, AccessFlags::REMOTE_READ)?;

    let connection =
        Connection::new(&device.port, &device.gid).access(AccessFlags::REMOTE_READ).region(source.remote());
    let mut stream = peer.stream()?;
    let (mut pair, theirs) = connection.connect(&mut stream, pair)?;
    if peer.is_client() {
        let from = *theirs.regions().first().context("the peer exposes no memory: is it read_lat?")?;
        let from =
            from.part(0, size.into()).context("the peer has less memory: give both the same --size")?;
        let request = Request::read(from);
        let mut buffer = slab(&pool, size);
        let mut samples = Samples::new(iterations);
        for _ in 0..iterations {
            samples.now();
            pair.post(&request, buffer)?;
            buffer = completions.next()?.buffer.expect("it comes back");
        }
        samples.report(size, 1);
    }
    meet(&mut stream)
}
