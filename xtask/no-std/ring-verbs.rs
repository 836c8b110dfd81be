//! Looks for devices without std, and sends into nothing through whatever is there.
#![no_std]
#![no_main]

mod hosted;

use ring_verbs::sys::LoadError;
use ring_verbs::{
    CompletionQueue, CompletionQueueOptions, DeviceList, Error, PoolOptions, ProtectionDomain, QueuePair,
    QueuePairOptions, Rc, Slab,
};

fn main() {
    match DeviceList::new() {
        Ok(devices) => devices.iter().for_each(|device| {
            // This user may lack the right to open it.
            let _ = make(device.name());
        }),
        Err(Error::Library(LoadError::NoLibrary) | Error::NoDevice) => {}
        Err(error) => panic!("{error}"),
    }
}

fn make(name: &str) -> Result<(), Error> {
    let context = ring_verbs::Context::open(name)?;
    let domain = ProtectionDomain::new(&context)?;
    let pool = PoolOptions::new(64, 4).build(&domain)?;
    let mut queue: CompletionQueue<Slab> = CompletionQueueOptions::new(8).build(&context)?;
    let pair: QueuePair<Rc, _> = QueuePairOptions::new(4, 4).build(&domain, &queue, &queue)?;
    drop(pair);
    assert!(queue.poll()?.is_none());
    assert_eq!(pool.out(), 0);
    Ok(())
}
