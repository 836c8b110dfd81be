//! Objects are dropped in any order, and what the device does not let go stays.

use core::any::Any;
use core::mem;

use ring_verbs::sys::{AccessFlags, WcStatus};
use ring_verbs::{
    CompletionQueueOptions, ExposedRegion, PoolOptions, ProtectionDomain, QueuePair, QueuePairOptions, Rc,
    Request, Rts, Slab,
};

use crate::device::{Answer, Call, Kind, Scripted};
use crate::rig::{Rig, numbers, options, ready};

/// What a program has, with requests in flight, of which one has completed and was not polled.
struct Program {
    device: Scripted,
    objects: Vec<Option<Box<dyn Any>>>,
    pair: QueuePair<Rc, Rts, Slab>,
}

/// Everything but the queue pair.
const OBJECTS: usize = 6;

fn program() -> Program {
    let (device, context) = Scripted::open();
    let domain = ProtectionDomain::new(&context).unwrap();
    let pool = PoolOptions::new(64, 4).build(&domain).unwrap();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let region = ExposedRegion::new(&domain, vec![0; 64], access).unwrap();
    let queue = CompletionQueueOptions::new(8).build(&context).unwrap();
    let pair = QueuePairOptions::new(2, 2).build(&domain, &queue, &queue).unwrap();
    let mut pair = ready(pair);
    pair.post(&Request::send(), pool.take().unwrap()).unwrap();
    pair.post(&Request::write(region.remote()), pool.take().unwrap()).unwrap();
    pair.post_receive(pool.take().unwrap()).unwrap();
    device.complete(&device.posted()[0], WcStatus::SUCCESS);
    let slab = pool.take().unwrap();
    let objects: [Box<dyn Any>; OBJECTS] = [
        Box::new(context),
        Box::new(domain),
        Box::new(pool),
        Box::new(region),
        Box::new(queue),
        Box::new(slab),
    ];
    Program { device, objects: objects.map(Some).into(), pair }
}

/// Calls `action` with every order of the numbers below `count`.
pub(crate) fn orders(count: usize, action: &mut impl FnMut(&[usize])) {
    fn place(order: &mut Vec<usize>, count: usize, action: &mut impl FnMut(&[usize])) {
        if order.len() == count {
            return action(order);
        }
        for number in 0..count {
            if !order.contains(&number) {
                order.push(number);
                place(order, count, action);
                order.pop();
            }
        }
    }
    place(&mut Vec::new(), count, action);
}

/// Drops everything in every order; `end` gets the queue pair at its turn.
fn in_every_order(end: impl Fn(&Scripted, QueuePair<Rc, Rts, Slab>), check: impl Fn(&Scripted)) {
    orders(OBJECTS + 1, &mut |order| {
        let Program { device, mut objects, pair } = program();
        let mut pair = Some(pair);
        for &number in order {
            match objects.get_mut(number) {
                Some(object) => *object = None,
                None => end(&device, pair.take().expect("its turn comes once")),
            }
        }
        check(&device);
    });
}

#[test]
fn objects_may_be_dropped_in_any_order() {
    in_every_order(|_, pair| drop(pair), Scripted::require_ended);
}

/// What a queue pair that is there for ever needs: its domain, its completion queue, and the pool's memory, of which the
/// device has a part.
fn require_kept(device: &Scripted) {
    let state = device.state();
    assert_eq!((state.busy, state.is_closed), (0, false));
    let kinds = [Kind::Domain, Kind::Region, Kind::CompletionQueue, Kind::QueuePair];
    assert_eq!(kinds.map(|kind| state.count(kind)), [1; 4]);
}

#[test]
fn a_queue_pair_that_is_forgotten_keeps_what_it_needs() {
    in_every_order(|_, pair| mem::forget(pair), require_kept);
}

#[test]
fn a_queue_pair_that_the_device_keeps_keeps_what_it_needs() {
    let end = |device: &Scripted, pair| {
        device.answer(Call::DestroyQueuePair, Answer::errno(libc::EBUSY));
        drop(pair);
    };
    in_every_order(end, require_kept);
}

/// Buffers that may be with the device do not come out of its completion queue as discarded.
#[test]
fn buffers_of_a_queue_pair_that_the_device_keeps_stay_in_flight() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options());
    pair.post(&Request::send(), rig.buffer(1)).unwrap();
    pair.post(&Request::send(), rig.buffer(2)).unwrap();
    rig.device.answer(Call::DestroyQueuePair, Answer::errno(libc::EIO));
    drop(pair);
    assert_eq!(numbers(&rig.drain()), []);
    // What completes all the same is done.
    rig.device.complete(&rig.device.posted()[0], WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), [1]);
    assert_eq!(rig.alive(), 1);
    let Rig { device, context, domain, queue, .. } = rig;
    drop((context, domain, queue));
    let state = device.state();
    assert_eq!((state.count(Kind::QueuePair), state.is_closed, state.busy), (1, false, 0));
}

#[test]
fn what_else_the_device_keeps_is_left_to_the_end_of_the_process() {
    for (call, kind) in
        [(Call::FreeDomain, Kind::Domain), (Call::DestroyCompletionQueue, Kind::CompletionQueue)]
    {
        let Program { device, objects, pair } = program();
        device.answer(call, Answer::errno(libc::EIO));
        drop((objects, pair));
        let state = device.state();
        assert_eq!(state.live(), [kind]);
        // Events of a completion queue may come as long as the device is open.
        assert_eq!(state.is_closed, kind == Kind::Domain);
    }
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let mut rig = Rig::new();
    let failures = [Call::CreateQueuePair, Call::QueryDevice];
    // As many as there is room for, and not one less after a failure.
    let options = QueuePairOptions::new(32, 32);
    for call in failures {
        rig.device.answer(call, Answer::errno(libc::ENOMEM));
        let error = options.build::<Rc, _>(&rig.domain, &rig.queue, &rig.queue).unwrap_err();
        assert_eq!(error.errno(), Some(ring_verbs::Errno(libc::ENOMEM)), "{call:?}");
    }
    let pair = options.build::<Rc, _>(&rig.domain, &rig.queue, &rig.queue).unwrap();
    let error = QueuePairOptions::new(1, 1).build::<Rc, _>(&rig.domain, &rig.queue, &rig.queue).unwrap_err();
    assert_eq!(error, ring_verbs::Error::CompletionQueueFull { room: 0, needed: 1 });
    drop(pair);
    assert_eq!(rig.drain().len(), 0, "which gives the room back");
    drop(options.build::<Rc, _>(&rig.domain, &rig.queue, &rig.queue).unwrap());

    rig.device.answer(Call::CreateCompletionQueue, Answer::errno(libc::ENOMEM));
    assert!(CompletionQueueOptions::new(8).build::<Slab>(&rig.context).is_err());
    rig.device.answer(Call::AllocateDomain, Answer::errno(libc::ENOMEM));
    assert!(ProtectionDomain::new(&rig.context).is_err());
    let Rig { device, context, domain, queue, .. } = rig;
    drop((context, domain, queue));
    device.require_ended();
}
