//! Tasks of tokio that wait, for tasks and for threads. Where nothing else is said there are no slices, so that a
//! wake-up that is lost is a test that does not end in time.

mod cancelled;
#[path = "../common/mod.rs"]
mod common;
mod ends;
mod wakes;

use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use ring_core::{HeapRegion, Liveness, mpmc, spsc};
use ring_notify::{Event, Options, Receiver, Sender, Strategy};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

type Region = Arc<HeapRegion>;
type Spsc<L> = (Sender<spsc::Producer<u64, Region>, L>, Receiver<spsc::Consumer<u64, Region>, L>);

/// All tests together take some seconds.
const BOUND: Duration = Duration::from_secs(120);

fn event() -> Arc<Event> {
    Arc::new(Event::new().unwrap())
}

/// Sleeps until somebody wakes it, at once.
fn sleepy() -> Options {
    let strategy = Strategy::futex().spins(0);
    Options::new().slice(None).strategy(strategy).messages_event(event()).room_event(event())
}

fn spsc_of<L: Liveness + Clone>(depth: u64, options: &Options<L>) -> Spsc<L> {
    let layout = spsc::Layout::<u64>::new(depth).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    let (producer, consumer) = spsc::create(region, &layout).unwrap();
    (options.clone().sender(producer).unwrap(), options.clone().receiver(consumer).unwrap())
}

/// A ring of some slots for four participants.
fn mpmc_of(depth: u64) -> Region {
    let layout = mpmc::Layout::<u64>::new(depth).unwrap().participants(4).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    layout.init(&region).unwrap();
    region
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn runtimes() -> [Runtime; 2] {
    [current_thread(), Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()]
}

/// Runs it to its end as a task of its own, within the bound.
fn run<T: Send + 'static>(runtime: &Runtime, future: impl Future<Output = T> + Send + 'static) -> T {
    runtime.block_on(async { timeout(BOUND, tokio::spawn(future)).await.expect("it ends").unwrap() })
}
