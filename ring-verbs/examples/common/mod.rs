//! What the measuring programs have in common: options, an open device, a stream to the peer, a queue that is polled or
//! slept on, and a report.
#![allow(dead_code, reason = "each program uses a part of it")]

use core::net::Ipv6Addr;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use anyhow::{Context as _, Result};
use ring_verbs::{
    Buffer, Completion, CompletionChannel, CompletionQueue, CompletionQueueOptions, Context, DeviceList,
    GidEntry, Pool, PoolOptions, Port, ProtectionDomain, Slab,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Peer {
    /// The server's address. Without one, this is the server
    pub(crate) server: Option<String>,
    /// The device, as rxe0 or mlx5_0; by default the first one
    #[arg(short, long)]
    device: Option<String>,
    /// The device's port
    #[arg(short, long, default_value_t = 1)]
    ib_port: u8,
    /// The entry of the port's table of addresses; by default one of RoCE v2
    #[arg(short, long)]
    gid_index: Option<u32>,
    /// The TCP port at which both ends meet
    #[arg(short, long, default_value_t = 18515)]
    port: u16,
}

impl Peer {
    pub(crate) fn is_client(&self) -> bool {
        self.server.is_some()
    }

    /// The stream to the peer. A client tries for some seconds, so that both ends may be started at a time.
    pub(crate) fn stream(&self) -> Result<TcpStream> {
        let Some(server) = &self.server else {
            // Takes peers of IP version 4 too.
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, self.port))
                .or_else(|_| TcpListener::bind(("0.0.0.0", self.port)));
            let listener = listener.with_context(|| format!("cannot listen at port {}", self.port))?;
            return Ok(listener.accept().context("no client comes")?.0);
        };
        let begin = Instant::now();
        loop {
            match TcpStream::connect((server.as_str(), self.port)) {
                Ok(stream) => return Ok(stream),
                Err(_) if begin.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot reach {server}, port {}", self.port));
                }
            }
        }
    }
}

/// An open device, and what every program needs of it.
pub(crate) struct Device {
    pub(crate) context: Context,
    pub(crate) domain: ProtectionDomain,
    pub(crate) port: Port,
    pub(crate) gid: GidEntry,
}

impl Device {
    pub(crate) fn open(peer: &Peer) -> Result<Self> {
        Self::at(peer.device.as_deref(), peer.ib_port, peer.gid_index)
    }

    pub(crate) fn at(name: Option<&str>, port: u8, gid_index: Option<u32>) -> Result<Self> {
        let context = match name {
            Some(name) => Context::open(name)?,
            None => DeviceList::new()?.iter().next().ok_or(ring_verbs::Error::NoDevice)?.open()?,
        };
        let domain = ProtectionDomain::new(&context)?;
        let port = context.port(port)?;
        port.require_active()?;
        let gid = match gid_index {
            Some(index) => port.gid(index)?,
            None => port.choose_gid()?,
        };
        Ok(Self { context, domain, port, gid })
    }

    pub(crate) fn pool(&self, slab_bytes: u32, slabs: u32) -> Result<Pool> {
        Ok(PoolOptions::new(slab_bytes, slabs).build(&self.domain)?)
    }
}

/// A slab of so many bytes.
pub(crate) fn slab(pool: &Pool, bytes: u32) -> Slab {
    let mut slab = pool.take().expect("the pool has one for each that is in flight");
    slab.set_len(bytes);
    slab
}

/// A completion queue that is polled, or slept on.
pub(crate) struct Queue<B = Slab> {
    pub(crate) queue: CompletionQueue<B>,
    channel: Option<CompletionChannel>,
}

impl<B: Buffer> Queue<B> {
    pub(crate) fn new(context: &Context, entries: u32, has_events: bool) -> Result<Self> {
        let mut options = CompletionQueueOptions::new(entries);
        let channel = if has_events { Some(CompletionChannel::new(context)?) } else { None };
        if let Some(channel) = &channel {
            options = options.channel(channel);
        }
        Ok(Self { queue: options.build(context)?, channel })
    }

    /// The next request that has succeeded. Waits for it without an end, as the peer may take its time.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Completion<B>> {
        loop {
            if let Some(completion) = self.queue.poll()? {
                completion.result()?;
                return Ok(completion);
            }
            if let Some(channel) = &mut self.channel {
                self.queue.wait(channel, None)?;
            }
        }
    }
}

/// Waits until the peer has come here as well, so that neither destroys what the other still uses.
pub(crate) fn meet(stream: &mut TcpStream) -> Result<()> {
    stream.write_all(&[0])?;
    stream.read_exact(&mut [0]).context("the peer has failed")
}

/// The times of posts, one after the other.
pub(crate) struct Samples(Vec<Instant>);

impl Samples {
    pub(crate) fn new(iterations: u32) -> Self {
        Self(Vec::with_capacity(iterations as usize))
    }

    #[inline]
    pub(crate) fn now(&mut self) {
        self.0.push(Instant::now());
    }

    /// Prints what lay between two posts, divided by `parts`: 2 for half a round trip.
    pub(crate) fn report(&self, bytes: u32, parts: u32) {
        let mut between: Vec<Duration> = self.0.windows(2).map(|pair| (pair[1] - pair[0]) / parts).collect();
        between.sort_unstable();
        let Some(last) = between.len().checked_sub(1) else {
            println!("nothing to report: take 2 iterations at least");
            return;
        };
        // The smallest sample that this share of all is not above.
        let at = |per_mille: usize| between[((last + 1) * per_mille).div_ceil(1000).saturating_sub(1)];
        let unit = if parts == 2 { "half a round trip" } else { "a round trip" };
        println!(
            "{:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}   µs, {unit}",
            "bytes", "samples", "min", "p50", "p99", "p99.9", "max"
        );
        print!("{bytes:>9} {:>10}", between.len());
        for time in [between[0], at(500), at(990), at(999), between[last]] {
            print!(" {:>9.2}", time.as_secs_f64() * 1e6);
        }
        println!();
    }
}
