//! Objects dropped in every order, forgotten, left to a forked child, made and dropped on and on.
//!
//! # Safety
//!
//! The forked child drops what it has and ends, without a way back into the test.
#![allow(unsafe_code)]

use core::any::Any;
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs;
use std::thread;
use std::time::Instant;

use ring_verbs::{
    AccessFlags, AddressHandle, AsyncEvents, CompletionChannel, CompletionQueue, CompletionQueueOptions,
    Error, ExposedRegion, Failure, Port, QueuePair, QueuePairOptions, Rc, Request, RtsAttributes,
    SharedReceiveQueue, Slab, Ud,
};

use crate::Tests;
use crate::objects::{Objects, nothing_is_left};
use crate::rig::{PACKET_NUMBER, PATIENCE, Rig, all_rights, completions, connect_across, is_long};

pub(crate) const TESTS: Tests = &[
    ("objects_go_in_any_order", objects_go_in_any_order),
    ("handles_and_exposed_regions_go_in_any_order", handles_and_exposed_regions_go_in_any_order),
    ("shared_queues_and_events_go_in_any_order", shared_queues_and_events_go_in_any_order),
    ("a_forgotten_pair_keeps_what_it_needs", a_forgotten_pair_keeps_what_it_needs),
    ("a_forked_child_disturbs_nothing", a_forked_child_disturbs_nothing),
    ("ten_thousand_pairs_on_one_queue", ten_thousand_pairs_on_one_queue),
    ("a_pair_outlives_its_completion_queue", a_pair_outlives_its_completion_queue),
    ("threads_post_poll_and_drop", threads_post_poll_and_drop),
];

type Object = Box<dyn Any>;

/// All orders with RING_LONG=1, else one in seven: with each object at each place.
fn some_orders(count: usize) -> Vec<Vec<usize>> {
    let step = if is_long() { 1 } else { 7 };
    orders(count).into_iter().step_by(step).collect()
}

/// All orders of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![vec![]];
    for next in 0..count {
        let insert = |order: Vec<usize>| {
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, next);
                longer
            })
        };
        orders = orders.into_iter().flat_map(insert).collect();
    }
    orders
}

/// Open devices at a time that the orders are tried on: each has two descriptors.
const BATCH: usize = 240;

/// Makes objects and drops them in each order. What `make` returns beside them keeps the device open until the kernel's
/// objects are counted: closing it would end whatever a failed call has left.
fn drop_in_each_order(orders: &[Vec<usize>], make: impl Fn() -> (Vec<Object>, Port)) {
    let before = Objects::now();
    for orders in orders.chunks(BATCH) {
        let mut open = Vec::new();
        for order in orders {
            let (objects, port) = make();
            let mut objects: Vec<Option<Object>> = objects.into_iter().map(Some).collect();
            assert_eq!(objects.len(), order.len());
            order.iter().for_each(|index| drop(objects[*index].take()));
            open.push(port);
        }
        let expected = Objects { contexts: before.contexts + open.len(), ..before };
        assert_eq!(Objects::now(), expected, "one of {:?} to {:?}", orders[0], orders[orders.len() - 1]);
        drop(open);
        assert_eq!(Objects::now(), before, "one of {:?} to {:?}", orders[0], orders[orders.len() - 1]);
    }
}

/// In all 5,040 orders with RING_LONG=1, which takes minutes; else without a slab in hand, in 720.
fn objects_go_in_any_order() {
    drop_in_each_order(&orders(if is_long() { 7 } else { 6 }), || {
        let rig = Rig::new();
        let channel = CompletionChannel::new(&rig.context).unwrap();
        let queue = CompletionQueueOptions::new(64).channel(&channel);
        let queue: CompletionQueue<Slab> = queue.build(&rig.context).unwrap();
        let options = QueuePairOptions::new(4, 4);
        let [a, b] = [(); 2].map(|()| options.build::<Rc, _>(&rig.domain, &queue, &queue).unwrap());
        let (mut a, mut b) = rig.connect(a, b);
        // One arrives, and its completions are left alone; two are in flight: a send that waits for a receive, and a
        // receive at the other end.
        b.post_receive(rig.slab(b"taken")).unwrap();
        a.post_receive(rig.slab(b"free")).unwrap();
        a.post(&Request::send(), rig.slab(b"gone")).unwrap();
        a.post(&Request::send(), rig.slab(b"waits")).unwrap();
        let slab = rig.slab(b"mine");
        let Rig { context, domain, port, pool, .. } = rig;
        let mut objects: Vec<Object> = vec![
            Box::new(context),
            Box::new(domain),
            Box::new(pool),
            Box::new(channel),
            Box::new(queue),
            Box::new((a, b)),
        ];
        if is_long() {
            objects.push(Box::new(slab));
        }
        (objects, port)
    });
}

fn handles_and_exposed_regions_go_in_any_order() {
    drop_in_each_order(&some_orders(6), || {
        let rig = Rig::new();
        let queue = rig.completion_queue::<Slab>(64);
        let pair: QueuePair<Ud, _> = QueuePairOptions::new(8, 8).build(&rig.domain, &queue, &queue).unwrap();
        let pair = pair.into_init(rig.port.number(), 1).unwrap().into_rtr().unwrap();
        let mut pair = pair.into_rts().unwrap();
        let handle = AddressHandle::new(&rig.domain, &rig.route()).unwrap();
        let request = Request::send_to(&handle, pair.number(), 1);
        pair.post(&request, rig.slab(b"to myself")).unwrap();
        let access = AccessFlags::LOCAL_WRITE | all_rights();
        let region = ExposedRegion::new(&rig.domain, vec![0; 64], access).unwrap();
        let Rig { context, domain, port, .. } = rig;
        let objects: Vec<Object> = vec![
            Box::new((context, domain)),
            Box::new(queue),
            Box::new(pair),
            Box::new(handle),
            Box::new(request),
            Box::new(region),
        ];
        (objects, port)
    });
}

fn shared_queues_and_events_go_in_any_order() {
    drop_in_each_order(&some_orders(6), || {
        let rig = Rig::new();
        let events = AsyncEvents::new(&rig.context).unwrap();
        let queue = rig.completion_queue::<Slab>(64);
        let mut shared = SharedReceiveQueue::new(&rig.domain, 4, 1).unwrap();
        let options = QueuePairOptions::new(4, 0);
        let pair = options.build_shared::<Rc, _>(&rig.domain, &queue, &queue, &shared).unwrap();
        shared.post_receive(rig.slab(b"")).unwrap();
        let Rig { context, domain, port, pool, .. } = rig;
        let objects: Vec<Object> = vec![
            Box::new((context, domain)),
            Box::new(pool),
            Box::new(events),
            Box::new(queue),
            Box::new(shared),
            Box::new(pair),
        ];
        (objects, port)
    });
}

/// Whether these bytes are still mapped.
fn is_mapped(address: usize) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let [from, to] = [range.0, range.1].map(|end| usize::from_str_radix(end, 16).expect("hexadecimal"));
        (from..to).contains(&address)
    })
}

fn a_forgotten_pair_keeps_what_it_needs() {
    let before = Objects::now();
    let ours = Rig::new();
    let mut queue = ours.completion_queue::<Slab>(16);
    let options = QueuePairOptions::new(4, 4);
    let a = options.build::<Rc, _>(&ours.domain, &queue, &queue).unwrap();

    let theirs = Rig::new();
    let other = theirs.completion_queue::<Slab>(16);
    let b = options.build::<Rc, _>(&theirs.domain, &other, &other).unwrap();
    let rts = RtsAttributes::new(PACKET_NUMBER);
    let [mut a, mut b] = connect_across([(&ours, a), (&theirs, b)], all_rights(), &rts);
    let receive = theirs.slab(&[0; 64]);
    let address = receive.as_ptr().addr();
    b.post_receive(receive).unwrap();
    let remembered = theirs.pool.clone();
    mem::forget(b);
    drop((theirs, other));
    // The pool is in the buffer that is in flight, too.
    drop(remembered);

    let left = Objects {
        contexts: before.contexts + 2,
        domains: before.domains + 2,
        regions: before.regions + 2,
        completion_queues: before.completion_queues + 2,
        queue_pairs: before.queue_pairs + 2,
    };
    assert_eq!(Objects::now(), left);
    assert!(is_mapped(address), "the device still writes there");
    // It does: the message arrives.
    a.post(&Request::send(), ours.slab(b"to whom nobody knows")).unwrap();
    completions(&mut queue, 1)[0].result().unwrap();

    drop((a, queue, ours));
    let left = Objects {
        contexts: before.contexts + 1,
        domains: before.domains + 1,
        regions: before.regions + 1,
        completion_queues: before.completion_queues + 1,
        queue_pairs: before.queue_pairs + 1,
    };
    assert_eq!(Objects::now(), left);
    assert!(is_mapped(address));
}

fn a_forked_child_disturbs_nothing() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let mut pair = rig.pair::<Rc>(&QueuePairOptions::new(8, 8));
        let channel = CompletionChannel::new(&rig.context).unwrap();
        let region = ExposedRegion::new(&rig.domain, vec![0; 64], AccessFlags::REMOTE_READ).unwrap();
        let handle = AddressHandle::new(&rig.domain, &rig.route()).unwrap();
        for _ in 0..2 {
            pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
        }
        let slab = rig.slab(b"mine");
        let here = Objects::now();
        // SAFETY: the child drops, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop((slab, pair, rig, channel, region, handle));
            // SAFETY: it ends this process.
            unsafe { libc::_exit(17) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and its status can be written.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "the child has crashed: {status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), 17);

        assert_eq!(Objects::now(), here);
        pair.a.post(&Request::send(), rig.slab(b"still here")).unwrap();
        pair.a.post(&Request::read(region.remote()), slab).unwrap();
        assert!(completions(&mut pair.queue, 3).iter().all(|completion| completion.result().is_ok()));
        drop((pair, region, handle, channel));
        assert_eq!(rig.pool.out(), 0);
    });
}

/// Memory of this process that is there, in bytes.
fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

fn ten_thousand_pairs_on_one_queue() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let mut queue = rig.completion_queue::<Slab>(16);
        let half = queue.capacity() / 2;
        // All the room that there is, so that each needs the last one's.
        let options = QueuePairOptions::new(half, queue.capacity() - half);
        let mut first = 0;
        for round in 0..10_000 {
            let pair = options.build::<Rc, _>(&rig.domain, &queue, &queue).unwrap();
            let full = options.build::<Rc, _>(&rig.domain, &queue, &queue).unwrap_err();
            assert!(matches!(full, Error::CompletionQueueFull { room: 0, .. }), "{full}");
            let mut pair = pair.into_init(&ring_verbs::InitAttributes::new(1)).unwrap();
            pair.post_receive(rig.slab(b"")).unwrap();
            pair.post_receive(rig.slab(b"")).unwrap();
            drop(pair);
            let back = completions(&mut queue, 2);
            assert!(back.iter().all(|completion| completion.result() == Err(Failure::Discarded)));
            assert!(queue.poll().unwrap().is_none());
            if round == 1_000 {
                first = resident_bytes();
            }
        }
        assert_eq!(rig.pool.out(), 0);
        // 29 bytes a pair would be seen.
        let grown = resident_bytes().saturating_sub(first);
        assert!(grown < 256 << 10, "{grown} bytes more after 9,000 pairs");
    });
}

fn a_pair_outlives_its_completion_queue() {
    nothing_is_left(|| {
        let rig = Rig::new();
        let mut pair = rig.pair::<Rc>(&QueuePairOptions::new(8, 8));
        for _ in 0..3 {
            pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
        }
        pair.a.post(&Request::send(), rig.slab(b"x")).unwrap();
        drop(pair.queue);
        // It can still post, and what it posts is kept until it goes.
        pair.a.post(&Request::send(), rig.slab(b"y")).unwrap();
        assert_eq!(rig.pool.out(), 5);
        drop(pair.a);
        drop(pair.b);
        assert_eq!(rig.pool.out(), 0);
    });
}

/// One thread posts, one polls, one makes pairs on the same queue and drops them, with buffers in flight.
fn threads_post_poll_and_drop() {
    const MESSAGES: u64 = 5_000;
    nothing_is_left(|| {
        let rig = Rig::new();
        let pair = rig.pair::<Rc>(&QueuePairOptions::new(8, 8));
        let (mut a, mut b) = (pair.a, pair.b);
        let numbers = (a.number(), b.number());
        let mut queue = pair.queue;
        let target = queue.target();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    while b.receives_in_flight() == 8 || a.sends_in_flight() == 8 {
                        thread::yield_now();
                    }
                    b.post_receive(take(&rig)).unwrap();
                    let mut slab = take(&rig);
                    slab.set_len(8);
                    slab.copy_from_slice(&number.to_ne_bytes());
                    a.post(&Request::send(), slab).unwrap();
                }
            });
            scope.spawn(|| {
                let mut made = 0;
                // ORDERING: Relaxed: it ends this thread, and nothing is read after it.
                while !is_over.load(Ordering::Relaxed) {
                    match QueuePairOptions::new(8, 8).build::<Rc, _>(&rig.domain, &target, &target) {
                        Ok(pair) => {
                            made += 1;
                            let mut pair = pair.into_init(&ring_verbs::InitAttributes::new(1)).unwrap();
                            pair.post_receive(take(&rig)).unwrap();
                        }
                        // What was dropped gives its room back when it was polled.
                        Err(Error::CompletionQueueFull { .. }) => thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(made > 0);
            });
            let (mut sent, mut received) = (0, 0);
            let mut last = Instant::now();
            while sent < MESSAGES || received < MESSAGES {
                if last.elapsed() > PATIENCE {
                    // ORDERING: Relaxed: as where it is read.
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{sent} sent and {received} received");
                }
                let completion = queue.poll().unwrap();
                let Some(completion) = completion else { continue };
                last = Instant::now();
                if completion.queue_pair() == numbers.0 {
                    completion.result().unwrap();
                    sent += 1;
                } else if completion.queue_pair() == numbers.1 {
                    completion.result().unwrap();
                    let bytes = completion.buffer.unwrap()[..8].try_into().unwrap();
                    assert_eq!(u64::from_ne_bytes(bytes), received);
                    received += 1;
                } else {
                    assert_eq!(completion.result(), Err(Failure::Discarded));
                }
            }
            // ORDERING: Relaxed: as where it is read.
            is_over.store(true, Ordering::Relaxed);
        });
        while let Some(completion) = queue.poll().unwrap() {
            assert_eq!(completion.result(), Err(Failure::Discarded));
        }
        drop((a, b));
        assert_eq!(rig.pool.out(), 0);
    });
}

fn take(rig: &Rig) -> Slab {
    loop {
        match rig.pool.take() {
            Some(slab) => return slab,
            None => thread::yield_now(),
        }
    }
}
