//! What safe code could try to get at memory that is not its own.

use ring_verbs::{
    AccessFlags, AddressHandle, Context, ExposedRegion, MemoryRegion, PoolOptions, ProtectionDomain,
    QueuePair, QueuePairOptions, Rc, Request, Slab, Ud,
};

use crate::Tests;
use crate::rig::{PATIENCE, Rig};

pub(crate) const TESTS: Tests = &[
    ("bytes_that_a_read_carries_name_no_memory", bytes_that_a_read_carries_name_no_memory),
    ("an_empty_buffer_receives_nothing", an_empty_buffer_receives_nothing),
    ("handles_of_other_openings_are_refused", handles_of_other_openings_are_refused),
];

/// Polls for as long as something may come.
fn settle(queue: &mut ring_verbs::CompletionQueue<Slab>) {
    let begin = std::time::Instant::now();
    while begin.elapsed() < PATIENCE / 20 {
        drop(queue.poll().unwrap());
    }
}

/// Soft-RoCE's driver takes what such a request carries for its list of pieces.
fn bytes_that_a_read_carries_name_no_memory() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&QueuePairOptions::new(4, 4).max_inline(64));
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_ATOMIC;
    let source = ExposedRegion::new(&rig.domain, vec![0xee; 64], access).unwrap();
    let victim = MemoryRegion::new(&rig.domain, vec![1; 4096]).unwrap();

    let mut forged = Vec::new();
    forged.extend((victim.as_ptr().addr() as u64).to_ne_bytes());
    forged.extend(16_u32.to_ne_bytes());
    forged.extend(victim.local_key().to_ne_bytes());
    let from = source.remote().part(0, 16).unwrap();
    let is_refused = pair.a.post_inline(&Request::read(from), &forged).is_err();
    settle(&mut pair.queue);
    assert!(victim.iter().all(|byte| *byte == 1), "{:?}", &victim[..16]);
    assert!(is_refused);
    let is_refused = pair.a.post_inline(&Request::fetch_and_add(source.remote(), 1), &forged).is_err();
    settle(&mut pair.queue);
    assert!(victim.iter().all(|byte| *byte == 1), "{:?}", &victim[..16]);
    assert!(is_refused);
}

/// By the InfiniBand specification a piece of length 0 has 2^31 bytes, and some devices have it so.
fn an_empty_buffer_receives_nothing() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&QueuePairOptions::new(4, 4));
    let pool = PoolOptions::new(64, 2).build(&rig.domain).unwrap();
    let (mut empty, neighbour) = (pool.take().unwrap(), pool.take().unwrap());
    empty.set_len(0);
    pair.b.post_receive(empty).unwrap();
    pair.a.post(&Request::send(), rig.slab(&[9; 256])).unwrap();
    settle(&mut pair.queue);
    assert_eq!(neighbour[..], [0; 64]);
}

/// A driver takes another's handle for one of its own kind.
fn handles_of_other_openings_are_refused() {
    let rig = Rig::new();
    let queue = rig.completion_queue::<Slab>(64);
    let pair: QueuePair<Ud, _> = QueuePairOptions::new(8, 8).build(&rig.domain, &queue, &queue).unwrap();
    let mut pair = pair.into_init(rig.port.number(), 5).unwrap().into_rtr().unwrap().into_rts().unwrap();
    let context = Context::open(&crate::rig::device_name().unwrap()).unwrap();
    let domain = ProtectionDomain::new(&context).unwrap();
    let handle = AddressHandle::new(&domain, &rig.route()).unwrap();
    let request = Request::send_to(&handle, pair.number(), 5);
    let rejected = pair.post(&request, rig.slab(b"astray")).unwrap_err();
    assert_eq!(&rejected.buffer[..], b"astray");
    assert_eq!(pair.sends_in_flight(), 0);
}
