//! Waiting for several rings at once: nothing is lost, and each has its turn.

mod common;

use std::sync::Arc;

use common::{BARRIERS, Bed, Other, count, in_time, mapped_again, one_slot, started};
use ring_core::{HeapRegion, bytes, mpmc, spsc};
use ring_notify::{AnyOf, Barrier, Options, RecvError, Strategy, WaitAnyError, Waits, Waking};

const RINGS: usize = 3;

/// Messages through several rings of one slot to another process, which waits for all of them at once, without
/// spinning, slices and time-outs, and answers each.
fn all_arrive(receiving: &Options, sending: &Options, strategy: Strategy) -> Vec<Waking> {
    let messages = count(3_000, 300_000);
    let (rings, answers) = ([0; RINGS].map(|_| one_slot()), one_slot());
    let other = Other::fork(|| {
        let rings = rings.each_ref().map(mapped_again);
        let answers = mapped_again(&answers);
        let mut receivers = rings
            .each_ref()
            .map(|ring| receiving.clone().receiver(spsc::Consumer::<u64, _>::attach(ring).unwrap()).unwrap());
        let producer = spsc::Producer::<u64, _>::attach(&answers).unwrap();
        let mut sender = Bed::Futex.options(Barrier::Plain).sender(producer).unwrap();
        sender.send(u64::MAX).unwrap();
        let mut any = AnyOf::new(strategy);
        for number in 0..messages {
            let mut handles: Vec<&mut dyn Waits> = Vec::new();
            receivers.iter_mut().for_each(|receiver| handles.push(receiver));
            let index = any.wait(&mut handles, None).unwrap();
            assert_eq!(receivers[index].try_recv(), Ok(Some(number)));
            sender.send(number).unwrap();
        }
        assert!(any.counters().sleeps > 0);
    });
    let sending = sending.clone();
    let wakings = in_time(move || {
        let mut senders = rings
            .each_ref()
            .map(|ring| sending.clone().sender(spsc::Producer::<u64, _>::attach(ring).unwrap()).unwrap());
        let consumer = spsc::Consumer::<u64, _>::attach(&answers).unwrap();
        let mut receiver = Bed::Futex.options(Barrier::Plain).receiver(consumer).unwrap();
        assert_eq!(receiver.recv(), Ok(u64::MAX));
        for number in 0..messages {
            // Not in the order in which they are looked at.
            let index = usize::try_from((number ^ number >> 3) % RINGS as u64).unwrap();
            senders[index].send(number).unwrap();
            assert_eq!(receiver.recv(), Ok(number));
        }
        // Each has woken once at least, so it knows what it is asked for.
        senders.iter().map(|sender| sender.report().waking).collect()
    });
    other.finish();
    wakings
}

#[test]
fn all_arrive_by_futex_and_by_event() {
    for bed in Bed::each() {
        for barrier in BARRIERS {
            let options = bed.options(barrier);
            all_arrive(&options, &options, bed.strategy().spins(0));
        }
    }
}

/// Handles that would spin by themselves sleep here, and need a barrier then.
#[test]
fn all_arrive_at_handles_that_spin_by_themselves() {
    let spinning = |barrier| Options::new().barrier(barrier).slice(None).strategy(Strategy::doorbell());
    for barrier in BARRIERS {
        let sending = Bed::Futex.options(barrier);
        all_arrive(&spinning(barrier), &sending, Strategy::futex().spins(0));
    }
}

/// A handle that issues no fence and wakes nobody has those fence who wake it, once it sleeps.
#[test]
fn a_handle_that_never_fences_asks_for_fences_when_it_sleeps() {
    let sending = Options::new().strategy(Strategy::doorbell());
    let receiving = Options::doorbell().slice(None);
    let wakings = all_arrive(&receiving, &sending, Strategy::futex().spins(0));
    assert_eq!(wakings, [Waking::FenceAndLook; RINGS]);
}

#[test]
fn those_that_are_always_ready_have_their_turns() {
    let layout = spsc::Layout::<u64>::new(64).unwrap();
    let mut ends = [0; RINGS].map(|_| {
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        let (producer, consumer) = spsc::create(region, &layout).unwrap();
        (Options::new().sender(producer).unwrap(), Options::new().receiver(consumer).unwrap())
    });
    for (sender, _) in &mut ends {
        (0..64).for_each(|number| sender.send(number).unwrap());
    }
    let mut any = AnyOf::new(Strategy::futex());
    for turn in 0..64 * RINGS {
        let mut handles: Vec<&mut dyn Waits> = Vec::new();
        ends.iter_mut().for_each(|(_, receiver)| handles.push(receiver));
        assert_eq!(any.wait(&mut handles, None), Ok(turn % RINGS));
        assert_eq!(ends[turn % RINGS].1.try_recv(), Ok(Some((turn / RINGS) as u64)));
    }
}

/// Messages and room, of different rings, and a close.
#[test]
fn handles_of_all_kinds_are_waited_for_together() {
    for bed in Bed::each() {
        let options = bed.options(Barrier::Asymmetric);

        let layout = bytes::Layout::new(64).unwrap();
        let (producer, consumer) = bytes::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
        let mut orders = options.clone().receiver(consumer).unwrap();
        let mut order_sender = options.clone().sender(producer).unwrap();

        let layout = spsc::Layout::<u64>::new(1).unwrap();
        let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
        let mut fills = options.clone().sender(producer).unwrap();
        let mut fill_receiver = options.clone().receiver(consumer).unwrap();
        fills.send(0).unwrap();

        let layout = mpmc::Layout::<u64>::new(2).unwrap().participants(2).unwrap();
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        layout.init(&region).unwrap();
        let mut quotes =
            options.clone().receiver(mpmc::Consumer::<u64, _>::attach(Arc::clone(&region)).unwrap()).unwrap();
        let quote_sender = options.sender(mpmc::Producer::<u64, _>::attach(region).unwrap()).unwrap();

        let waiting = started(move || {
            let mut any = AnyOf::new(bed.strategy().spins(0));
            let mut found = Vec::new();
            while found.len() < 3 {
                let handles: &mut [&mut dyn Waits] = &mut [&mut orders, &mut fills, &mut quotes];
                let index = any.wait(handles, None).unwrap();
                match index {
                    0 => assert_eq!(orders.try_recv(&mut [0; 8]), Ok(Some(5))),
                    1 => assert_eq!(fills.try_send(1), Ok(None)),
                    _ => match quotes.try_recv() {
                        // Worth a try, no more: somebody might have put something back before it came.
                        Ok(None) => continue,
                        end => assert_eq!(end, Err(mpmc::PopError::Closed)),
                    },
                }
                found.push(index);
            }
            found
        });
        waiting.wait_until_it_sleeps();
        order_sender.send(b"order").unwrap();
        waiting.wait_until_it_sleeps();
        assert_eq!(fill_receiver.recv(), Ok(0));
        assert_eq!(fill_receiver.try_recv(), Ok(None), "which gives the slot back");
        waiting.wait_until_it_sleeps();
        quote_sender.close();
        assert_eq!(waiting.end(), [0, 1, 2]);
        assert_eq!(fill_receiver.recv(), Ok(1));
        drop(fill_receiver);
    }
}

#[test]
fn a_closed_ring_is_ready() {
    let layout = spsc::Layout::<u64>::new(1).unwrap();
    let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let mut receiver = Options::new().receiver(consumer).unwrap();
    Options::new().sender(producer).unwrap().close();
    assert_eq!(AnyOf::new(Strategy::futex()).wait(&mut [&mut receiver], None), Ok(0));
    assert_eq!(receiver.recv(), Err(RecvError::Ring(spsc::PopError::Closed)));
}

/// However long a strategy spins or yields, a time-out ends it.
#[test]
fn a_time_out_ends_any_spinning_and_yielding() {
    const TIMEOUT: core::time::Duration = core::time::Duration::from_millis(5);
    let spins = [Strategy::futex().spins(u32::MAX), Strategy::event().spins(u32::MAX)];
    let yields = [Strategy::futex().yields(u32::MAX), Strategy::doorbell().yields(u32::MAX)];
    for strategy in spins.into_iter().chain(yields) {
        in_time(move || {
            let layout = spsc::Layout::<u64>::new(1).unwrap();
            let (_producer, consumer) =
                spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
            let mut receiver =
                Bed::events().options(Barrier::Plain).strategy(strategy).receiver(consumer).unwrap();
            assert_eq!(receiver.recv_timeout(TIMEOUT), Err(RecvError::TimedOut));
            let found = AnyOf::new(strategy).wait(&mut [&mut receiver], Some(TIMEOUT));
            assert_eq!(found, Err(WaitAnyError::TimedOut));
        });
    }
}
