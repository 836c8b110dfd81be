//! One thread posts and another polls: what to do while the queue is full, what a failure looks like, and where every
//! buffer was at the end.
//!
//! Both ends of the connection are in this process, so it needs a device and no peer.

mod common;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use anyhow::{Result, ensure};
use clap::Parser;
use common::Device;
use ring_verbs::{
    AccessFlags, Completion, CompletionQueue, CompletionQueueOptions, Error, ExposedRegion, InitAttributes,
    Pool, QueuePair, QueuePairOptions, Rc, Rejection, RemoteMemory, Request, Reset, Route, RtrAttributes,
    Rts, RtsAttributes, Slab, WcStatus,
};

/// Writes in flight, at most.
const DEPTH: u32 = 16;
/// Of a write.
const BYTES: u32 = 4096;
/// By what both ends number their first packets: any number, here.
const FIRST_PACKET: u32 = 1;

/// Writes by one thread, completions in another, and a failure at the end
#[derive(Debug, Parser)]
struct Options {
    /// The device, as rxe0 or mlx5_0; by default the first one
    #[arg(short, long)]
    device: Option<String>,
    /// Writes that succeed, before the one that cannot
    #[arg(short = 'n', long, default_value_t = 10_000)]
    iterations: u64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let device = Device::at(options.device.as_deref(), 1, None)?;
    // More than can be in flight, so that the queue is what is full.
    let pool = device.pool(BYTES, 2 * DEPTH)?;
    let rights = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let inbox = ExposedRegion::new(&device.domain, vec![0; BYTES as usize], rights).map_err(Error::from)?;
    let mut queue = CompletionQueueOptions::new(DEPTH + 3).build(&device.context)?;
    let (mut pair, _peer) = connect(&device, &queue)?;

    // Says that there is no more to do, and orders nothing else.
    let is_over = AtomicBool::new(false);
    let mut account = Account::default();
    let posted = thread::scope(|scope| {
        let poller = scope.spawn(|| poll(&mut queue, &mut account, &is_over));
        let posted = post(&mut pair, &pool, inbox.remote(), options.iterations, &is_over);
        is_over.store(true, Ordering::Relaxed); // also where this thread has failed itself
        poller.join().expect("it does not panic").and(posted)
    })?;

    // The device flushes what was posted meanwhile. Every buffer comes back, also those.
    let mut pair = pair.into_error().map_err(Error::from)?;
    let is_empty =
        pair.drain(&mut [&mut queue], Duration::from_secs(5), |completion| account.enter(completion))?;
    let Account { done, failed, flushed } = account;
    println!(
        "{posted} posted: {done} done, {failed} failed, {flushed} flushed; {} slabs are out",
        pool.out()
    );
    ensure!(is_empty && posted == done + failed + flushed && pool.out() == 0, "a buffer has not come back");
    Ok(())
}

/// Posts writes, one of them to where the peer has no memory, until one has failed. How many were posted.
fn post(
    pair: &mut QueuePair<Rc, Rts>,
    pool: &Pool,
    inbox: RemoteMemory,
    good: u64,
    is_over: &AtomicBool,
) -> Result<u64> {
    let write = Request::write(inbox);
    let write_beyond = Request::write(RemoteMemory { address: inbox.address + inbox.bytes, ..inbox });
    let mut posted = 0;
    let mut next: Option<Slab> = None;
    while !is_over.load(Ordering::Relaxed) {
        let Some(slab) = next.take().or_else(|| pool.take()) else {
            thread::yield_now(); // the poller has the others, and drops them soon
            continue;
        };
        let request = if posted == good { &write_beyond } else { &write };
        match pair.post(request, slab) {
            Ok(_) => posted += 1,
            Err(rejected) if rejected.reason == Rejection::Full => {
                // Nothing is lost: it is posted again, once the poller has made room.
                next = Some(rejected.buffer);
                thread::yield_now();
            }
            Err(rejected) => return Err(Error::from(rejected).into()),
        }
    }
    Ok(posted)
}

/// Polls until a request has failed, and says so.
fn poll(queue: &mut CompletionQueue<Slab>, account: &mut Account, is_over: &AtomicBool) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        match queue.poll() {
            Ok(Some(completion)) => account.enter(completion),
            Ok(None) => thread::yield_now(),
            Err(error) => {
                is_over.store(true, Ordering::Relaxed);
                return Err(error.into());
            }
        }
        if account.failed > 0 {
            is_over.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// How requests have ended.
#[derive(Debug, Default)]
struct Account {
    done: u64,
    failed: u64,
    flushed: u64,
}

impl Account {
    /// Its slab goes back to the pool when this returns.
    fn enter(&mut self, completion: Completion<Slab>) {
        match completion.result() {
            Ok(()) => self.done += 1,
            // After a failure all that was posted ends so: the first failure is the one that says why.
            Err(failure) if failure.status() == Some(WcStatus::WR_FLUSH_ERR) => self.flushed += 1,
            Err(failure) => {
                println!("write {} failed: {failure}", completion.ticket().number());
                self.failed += 1;
            }
        }
    }
}

/// Two queue pairs of this device, each the other's peer; the first one writes.
fn connect(
    device: &Device,
    queue: &CompletionQueue<Slab>,
) -> Result<(QueuePair<Rc, Rts>, QueuePair<Rc, Rts>)> {
    let writer = QueuePairOptions::new(DEPTH, 1).build(&device.domain, queue, queue)?;
    let written = QueuePairOptions::new(1, 1).build(&device.domain, queue, queue)?;
    let (to_writer, to_written) = (writer.number(), written.number());
    Ok((ready(device, writer, to_written)?, ready(device, written, to_writer)?))
}

/// From RESET to RTS; a peer elsewhere is met by [`ring_verbs::Connection`].
fn ready(device: &Device, pair: QueuePair<Rc, Reset>, peer: u32) -> Result<QueuePair<Rc, Rts>, Error> {
    let init = InitAttributes::new(device.port.number()).access(AccessFlags::REMOTE_WRITE);
    let route = Route::new(&device.gid, device.gid.gid);
    let rtr = RtrAttributes::new(route, device.port.active_mtu(), peer, FIRST_PACKET);
    Ok(pair.into_init(&init)?.into_rtr(&rtr)?.into_rts(&RtsAttributes::new(FIRST_PACKET))?)
}
