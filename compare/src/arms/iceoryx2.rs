//! iceoryx2: samples in shared memory, their places in a queue.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, anyhow};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use measure::{Message, Receiver, Sender};

/// The variant whose ports may move between threads.
type Service = ipc_threadsafe::Service;

pub struct Tx(Publisher<Service, Message, ()>);

pub struct Rx(Subscriber<Service, Message, ()>);

pub fn make(depth: usize) -> Result<(Tx, Rx)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    set_log_level(LogLevel::Error);
    // ORDERING: Relaxed: a number that no other has.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("ring-compare-{}-{number}", std::process::id());
    let failed = |what: &str, error: &dyn std::fmt::Debug| anyhow!("iceoryx2 cannot {what}: {error:?}");
    let node = NodeBuilder::new().create::<Service>().map_err(|error| failed("make a node", &error))?;
    let name = name.as_str().try_into().ok().context("iceoryx2 does not like the name of a service")?;
    let service = node
        .service_builder(&name)
        .publish_subscribe::<Message>()
        .enable_safe_overflow(false)
        .history_size(0)
        .subscriber_max_buffer_size(depth)
        .max_publishers(1)
        .max_subscribers(1)
        .create()
        .map_err(|error| failed("make a service", &error))?;
    let subscriber = service.subscriber_builder().create().map_err(|error| failed("subscribe", &error))?;
    let publisher = service
        .publisher_builder()
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .map_err(|error| failed("publish", &error))?;
    Ok((Tx(publisher), Rx(subscriber)))
}

impl Sender for Tx {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        let sample = self.0.loan_uninit().expect("a free sample");
        sample.write_payload(*message).send().expect("a subscriber") == 1
    }
}

impl Receiver for Rx {
    #[inline(always)]
    fn try_receive(&mut self) -> Option<Message> {
        self.0.receive().expect("a publisher").map(|sample| *sample)
    }
}
