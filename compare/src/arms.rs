//! The arms: both sides of each.

mod crossbeam;
mod disruptor;
mod iceoryx2;
mod ringbuf;
mod rtrb;

use std::sync::Arc;

use anyhow::{Result, bail};
use measure::threads::{Queue, Threads};
use measure::{Arm, Duplex, Message, Readers, Receiver, Sender, Side, Writers};
use ring_core::{HeapRegion, mpmc};
use ring_core::spsc::{self, Layout};

/// What the lead holds, and what its peer holds.
type Sides = (Box<dyn Arm + Send>, Box<dyn Arm + Send>);

/// Makes both sides.
pub fn make(arm: Threads) -> Result<Sides> {
    match arm {
        Threads::Floor { lines } => {
            let part = || Arc::new(HeapRegion::new(measure::line_bytes(lines)));
            let parts = vec![part(), part()];
            let lead = measure::floor(Side::Lead, parts.clone(), lines)?;
            Ok((Box::new(lead), Box::new(measure::floor(Side::Peer, parts, lines)?)))
        }
        Threads::Pair { queue, depth } => match queue {
            Queue::Spsc => pair(|| spsc_ring(depth)),
            Queue::Mpmc => pair(|| {
                let region = mpmc_ring(depth)?;
                Ok((mpmc::Producer::attach(region.clone())?, mpmc::Consumer::attach(region)?))
            }),
            Queue::Rtrb => pair(|| Ok(rtrb::make(depth))),
            Queue::Crossbeam => pair(|| Ok(crossbeam::make(depth))),
            Queue::Ringbuf => pair(|| Ok(ringbuf::make(depth))),
            Queue::Iceoryx2 => pair(|| iceoryx2::make(depth)),
            Queue::Disruptor => pair(|| Ok(disruptor::make(depth))),
        },
        Threads::Many { queue, depth, producers, consumers } => match queue {
            Queue::Mpmc => {
                let region = mpmc_ring(depth)?;
                let senders = (0..producers).map(|_| mpmc::Producer::<Message, _>::attach(region.clone()));
                let receivers = (0..consumers).map(|_| mpmc::Consumer::<Message, _>::attach(region.clone()));
                Ok(many(senders.collect::<Result<_, _>>()?, receivers.collect::<Result<_, _>>()?))
            }
            Queue::Crossbeam => {
                let (sender, receiver) = crossbeam::make(depth);
                Ok(many(vec![sender; producers], vec![receiver; consumers]))
            }
            other => bail!("{other:?} is for one producer and one consumer"),
        },
    }
}

fn spsc_ring(depth: usize) -> Result<(impl Sender + Send, impl Receiver + Send)> {
    let layout = Layout::<Message>::new(depth as u64)?;
    Ok(spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?)
}

fn mpmc_ring(depth: usize) -> Result<Arc<HeapRegion>> {
    let layout = mpmc::Layout::<Message>::new(depth as u64)?;
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    layout.init(&region)?;
    Ok(region)
}

/// A queue each way.
fn pair<S, R>(queue: impl Fn() -> Result<(S, R)>) -> Result<Sides>
where
    S: Sender + Send + 'static,
    R: Receiver + Send + 'static,
{
    let (to_peer, from_lead) = queue()?;
    let (to_lead, from_peer) = queue()?;
    Ok((Box::new(Duplex::new(to_peer, from_peer)), Box::new(Duplex::new(to_lead, from_lead))))
}

fn many<S: Sender + Send + 'static, R: Receiver + Send + 'static>(
    senders: Vec<S>,
    receivers: Vec<R>,
) -> Sides {
    (Box::new(Readers(receivers)), Box::new(Writers(senders)))
}
