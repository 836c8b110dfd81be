//! Sends a message to and fro, as libibverbs' own example of this name does, and together with it: either end can be
//! the C program, `ibv_rc_pingpong`.
//!
//! Connected by hand, since the peer has its own hand-shake over TCP: each end's address is a line of text with a 0 at
//! its end. The client writes its line, reads the server's, and writes "done"; the server connects its queue pair before
//! it answers.

mod common;

use std::io::{Read, Write};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use common::{Device, Queue, slab};
use ring_verbs::{
    Gid, Init, InitAttributes, Mtu, Opcode, Port, QueuePair, QueuePairOptions, Rc, Request, Route,
    RtrAttributes, Rts, RtsAttributes,
};

/// Sends a message to and fro, also with ibv_rc_pingpong at the other end
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    peer: common::Peer,
    /// Bytes of a message
    #[arg(short, long, default_value_t = 4096)]
    size: u32,
    /// Bytes of a packet, at most; both ends must say the same
    #[arg(short, long, default_value_t = 1024)]
    mtu: u32,
    /// Receives that are posted ahead
    #[arg(short, long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(2..))]
    rx_depth: u32,
    /// Messages to and fro
    #[arg(short = 'n', long, default_value_t = 1000)]
    iters: u32,
    /// The service level
    #[arg(short = 'l', long, default_value_t = 0)]
    sl: u8,
    /// Sleep until a completion comes, instead of polling
    #[arg(short, long)]
    events: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let Options { size, rx_depth, iters, .. } = options;
    let Some(mtu) = [1, 2, 3, 4, 5].map(Mtu).into_iter().find(|mtu| mtu.bytes() == Some(options.mtu)) else {
        bail!("a packet has 256, 512, 1024, 2048 or 4096 bytes, not {}", options.mtu);
    };
    let device = Device::open(&options.peer)?;
    let pool = device.pool(size.max(1), rx_depth + 1)?;
    let mut queue = Queue::new(&device.context, rx_depth + 1, options.events)?;
    let pair: QueuePair<Rc, _> =
        QueuePairOptions::new(1, rx_depth).build(&device.domain, &queue.queue, &queue.queue)?;
    let mut pair = pair.into_init(&InitAttributes::new(device.port.number()))?;
    for _ in 0..rx_depth {
        pair.post_receive(slab(&pool, size))?;
    }

    let ours = Address {
        lid: device.port.lid(),
        queue_pair: pair.number(),
        packet_number: std::process::id() & 0xff_ffff,
        gid: device.gid.gid,
    };
    println!("  local address:  {ours}");
    let connect = |pair, theirs: &Address| {
        let route = theirs.route(&device)?.service_level(options.sl);
        ready(pair, route, mtu, &ours, theirs)
    };
    let mut stream = options.peer.stream()?;
    let mut pair = if options.peer.is_client() {
        ours.write(&mut stream)?;
        let theirs = Address::read(&mut stream)?;
        println!("  remote address: {theirs}");
        let pair = connect(pair, &theirs)?;
        stream.write_all(b"done\0")?;
        pair
    } else {
        let theirs = Address::read(&mut stream)?;
        println!("  remote address: {theirs}");
        let pair = connect(pair, &theirs)?;
        ours.write(&mut stream)?;
        stream.read_exact(&mut [0; 5]).context("the client has failed")?;
        pair
    };

    let begin = Instant::now();
    let mut message = Some(slab(&pool, size));
    // The client sends first: as if it had received.
    let (mut received, mut sent, mut has_received) = (0, 0, options.peer.is_client());
    while received < iters || sent < iters {
        if has_received && sent < iters {
            if let Some(buffer) = message.take() {
                pair.post(&Request::send(), buffer)?;
                has_received = false;
            }
        }
        let completion = queue.next()?;
        let opcode = completion.opcode();
        let buffer = completion.buffer.context("each request has a buffer")?;
        if opcode == Opcode::Receive {
            received += 1;
            has_received = true;
            pair.post_receive(buffer)?;
        } else {
            sent += 1;
            message = Some(buffer);
        }
    }
    report(size, iters, begin.elapsed().as_secs_f64());
    Ok(())
}

fn ready(
    pair: QueuePair<Rc, Init>,
    route: Route,
    mtu: Mtu,
    ours: &Address,
    theirs: &Address,
) -> Result<QueuePair<Rc, Rts>> {
    let pair = pair.into_rtr(&RtrAttributes::new(route, mtu, theirs.queue_pair, theirs.packet_number))?;
    Ok(pair.into_rts(&RtsAttributes::new(ours.packet_number))?)
}

fn report(size: u32, iters: u32, seconds: f64) {
    let bytes = u64::from(size) * u64::from(iters) * 2;
    println!("{bytes} bytes in {seconds:.2} seconds = {:.2} Mbit/sec", bytes as f64 * 8e-6 / seconds);
    println!("{iters} iters in {seconds:.2} seconds = {:.2} usec/iter", seconds * 1e6 / f64::from(iters));
}

/// What each end tells the other.
#[derive(Debug, PartialEq)]
struct Address {
    lid: u16,
    queue_pair: u32,
    packet_number: u32,
    gid: Gid,
}

impl Address {
    /// LID, queue pair, packet number and GID in hexadecimal digits, and a 0.
    const BYTES: usize = 4 + 1 + 6 + 1 + 6 + 1 + 32 + 1;

    fn write(&self, stream: &mut impl Write) -> Result<()> {
        let Self { lid, queue_pair, packet_number, gid } = self;
        let gid = u128::from_be_bytes(gid.0);
        // In one piece: the C program reads once.
        let line = format!("{lid:04x}:{queue_pair:06x}:{packet_number:06x}:{gid:032x}\0");
        stream.write_all(line.as_bytes()).context("cannot send our address")
    }

    fn read(stream: &mut impl Read) -> Result<Self> {
        let mut line = [0; Self::BYTES];
        stream.read_exact(&mut line).context("the peer has sent no address")?;
        let line = core::str::from_utf8(&line)?;
        Self::parse(line).with_context(|| format!("the peer has sent {line:?} as its address"))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.strip_suffix('\0')?.split(':');
        let mut number = || u128::from_str_radix(parts.next()?, 16).ok();
        let address = Self {
            lid: number()?.try_into().ok()?,
            queue_pair: number()?.try_into().ok()?,
            packet_number: number()?.try_into().ok()?,
            gid: Gid(number()?.to_be_bytes()),
        };
        parts.next().is_none().then_some(address)
    }

    fn route(&self, device: &Device) -> Result<Route> {
        let port: &Port = &device.port;
        if self.gid != Gid::default() {
            return Ok(Route::new(&device.gid, self.gid).lid(self.lid));
        }
        if port.is_ethernet() {
            bail!(
                "the peer has sent no GID, which Ethernet needs: give it -g, with an index from `rdma link`"
            );
        }
        Ok(Route::within_subnet(port.number(), self.lid))
    }
}

impl core::fmt::Display for Address {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { lid, queue_pair, packet_number, gid } = self;
        write!(to, "LID {lid:#06x}, QPN {queue_pair:#08x}, PSN {packet_number:#08x}, GID {gid}")
    }
}
