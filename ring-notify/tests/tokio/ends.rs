//! What ends a wait, or keeps one from beginning.
//!
//! # Safety
//!
//! What is declared gone was forgotten.
#![allow(unsafe_code)]

use core::future::poll_fn;
use core::pin::Pin;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use futures_core::Stream;
use ring_core::spsc::Delivery;
use ring_core::{HeapRegion, Liveness, Owner, Registry, Role, mpmc, spsc};
use ring_notify::{Error, Options, RecvError, SendError, Sleeping, SleepsOn, Strategy, WaitError};
use tokio::runtime::Builder;

use crate::{current_thread, event, mpmc_of, run, runtimes, sleepy, spsc_of};

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

#[test]
fn a_closed_ring_ends_the_stream() {
    for runtime in runtimes() {
        let (mut sender, receiver) = spsc_of(4, &sleepy());
        let sending = thread::spawn(move || {
            (0..100).for_each(|value| sender.send(value).unwrap());
            // By then it sleeps.
            thread::sleep(Duration::from_millis(20));
            sender.close();
        });
        run(&runtime, async move {
            let mut stream = receiver.into_async().unwrap();
            for value in 0..100 {
                assert_eq!(next(&mut stream).await, Some(Ok(value)));
            }
            assert_eq!(next(&mut stream).await, None);
            assert_eq!(next(&mut stream).await, None);
        });
        sending.join().unwrap();
    }
}

#[test]
fn a_closed_ring_gives_the_message_back_to_who_waits_for_room() {
    run(&current_thread(), async {
        let (region, options) = (mpmc_of(1), sleepy());
        let attach = || mpmc::Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
        let mut sender = options.clone().sender(attach()).unwrap().into_async().unwrap();
        let other = options.sender(attach()).unwrap();
        sender.send(1).await.unwrap();
        let closing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            other.close();
        });
        assert_eq!(sender.send(2).await, Err(SendError::Ring(mpmc::PushError::Closed(2))));
        closing.join().unwrap();
    });
}

#[derive(Debug, Clone)]
struct Shared(Arc<Registry>);

// SAFETY: the registry says so.
unsafe impl Liveness for Shared {
    fn is_gone(&self, ring: NonNull<u8>, role: Role, owner: Owner) -> bool {
        self.0.is_gone(ring, role, owner)
    }
}

#[test]
fn a_death_ends_a_wait_within_a_slice() {
    const SLICE: Duration = Duration::from_millis(50);
    for is_sender_dead in [true, false] {
        let registry = Shared(Arc::default());
        let options = sleepy().slice(Some(SLICE)).liveness(registry.clone());
        let (mut sender, receiver) = spsc_of(1, &options);
        sender.send(1).unwrap();
        let (role, incarnation) = match is_sender_dead {
            true => (Role::Producer, receiver.ring().peer().incarnation),
            false => (Role::Consumer, sender.ring().peer().incarnation),
        };
        let (died, dies) = std::sync::mpsc::channel();
        let dying = thread::spawn(move || {
            dies.recv().unwrap();
            thread::sleep(SLICE * 3);
            // SAFETY: the handle was forgotten.
            unsafe { registry.0.declare_gone(role, incarnation) };
            Instant::now()
        });
        let end = run(&current_thread(), async move {
            if is_sender_dead {
                core::mem::forget(sender);
                let mut receiver = receiver.into_async().unwrap();
                died.send(()).unwrap();
                assert_eq!(receiver.recv().await, Ok(1), "what the dead has sent");
                assert_eq!(receiver.ready().await, Err(WaitError::PeerGone));
                let end = Instant::now();
                assert_eq!(next(&mut receiver).await, Some(Err(RecvError::PeerGone)), "no end");
                end
            } else {
                core::mem::forget(receiver);
                let mut sender = sender.into_async().unwrap();
                died.send(()).unwrap();
                assert_eq!(sender.send(2).await, Err(SendError::PeerGone(2)));
                Instant::now()
            }
        });
        // A bound that is generous to a busy machine, and far below that of a wait that nobody ends.
        assert!(end.saturating_duration_since(dying.join().unwrap()) < SLICE + Duration::from_secs(5));
    }
}

#[test]
fn a_receiver_that_is_dropped_wakes_who_waits_for_its_credit() {
    let layout = spsc::Layout::<u64>::new(4).unwrap();
    let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
    let consumer = consumer.delivery(Delivery::AtLeastOnce { batch: 3 });
    let options = sleepy();
    let mut sender = options.clone().sender(producer).unwrap();
    let receiver = options.receiver(consumer).unwrap();
    (0..4).for_each(|value| sender.send(value).unwrap());
    assert_eq!(sender.try_send(4), Ok(Some(4)), "it is full");
    let watch = sender.watch();
    let sending = thread::spawn(move || sender.send(4));
    run(&current_thread(), async move {
        let mut receiver = receiver.into_async().unwrap();
        assert_eq!(receiver.recv().await, Ok(0));
        while watch.counters().sleeps == 0 {
            thread::yield_now();
        }
        drop(receiver);
    });
    assert_eq!(sending.join().unwrap(), Ok(()));
}

#[test]
fn what_another_handle_holds_up_is_looked_at_again_soon() {
    let region = mpmc_of(2);
    let mut bare = mpmc::Producer::<u64, _>::attach(Arc::clone(&region)).unwrap();
    let consumer = mpmc::Consumer::<u64, _>::attach(region).unwrap();
    let (reserved, is_reserved) = std::sync::mpsc::channel();
    let committing = thread::spawn(move || {
        let mut grant = bare.try_reserve().unwrap();
        reserved.send(()).unwrap();
        thread::sleep(Duration::from_millis(20));
        grant.write(&7);
        // A bare handle wakes nobody.
        grant.commit();
    });
    is_reserved.recv().unwrap();
    run(&current_thread(), async {
        let mut receiver = sleepy().receiver(consumer).unwrap().into_async().unwrap();
        assert_eq!(receiver.recv().await, Ok(7));
        assert_eq!(receiver.get_ref().counters().found_unwoken, 1);
    });
    committing.join().unwrap();
}

#[test]
fn who_always_finds_something_lets_other_tasks_run() {
    run(&current_thread(), async {
        let (mut sender, receiver) = spsc_of(4, &sleepy());
        let mut receiver = receiver.into_async().unwrap();
        let other = tokio::spawn(async {});
        for round in 0.. {
            if other.is_finished() {
                break;
            }
            assert!(round < 1_000_000, "the other task never runs");
            assert_eq!(sender.try_send(round), Ok(None));
            assert_eq!(receiver.recv().await, Ok(round));
        }
    });
}

#[test]
fn without_slices_no_clock_is_needed() {
    let runtime = Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let (mut sender, receiver) = spsc_of(1, &sleepy());
        let mut receiver = receiver.into_async().unwrap();
        let sending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            sender.send(7).unwrap();
        });
        assert_eq!(receiver.recv().await, Ok(7));
        assert!(receiver.get_ref().counters().sleeps > 0);
        sending.join().unwrap();
    });
}

#[test]
fn without_a_runtime_or_an_event_there_is_an_error() {
    let refused = Some(Error::Runtime { errno: 0 });
    let (sender, receiver) = spsc_of(1, &sleepy());
    assert_eq!(receiver.into_async().err(), refused);
    Builder::new_current_thread().build().unwrap().block_on(async {
        assert_eq!(sender.into_async().err(), refused);
    });
    current_thread().block_on(async {
        // Each has the event of the other direction.
        let (_, receiver) = spsc_of(1, &Options::new().room_event(event()));
        assert_eq!(receiver.into_async().err(), Some(Error::EventMissing));
        let (sender, _) = spsc_of(1, &Options::new().messages_event(event()));
        assert_eq!(sender.into_async().err(), Some(Error::EventMissing));
    });
}

#[test]
fn a_strategy_that_never_sleeps_gives_way_to_the_event() {
    current_thread().block_on(async {
        let (_sender, receiver) = spsc_of(1, &sleepy().strategy(Strategy::doorbell()));
        assert_eq!(receiver.report().sleeping, Sleeping::Never);
        let report = receiver.into_async().unwrap().get_ref().report();
        assert_ne!(report.sleeping, Sleeping::Never);
        assert_eq!(report.sleeps_on, SleepsOn::Event);
    });
}
