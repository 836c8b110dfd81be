//! Nobody sleeps on who was to wake, and nobody stays awake.

use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;
use std::thread;

use ring_core::{HeapRegion, bytes, mpmc};
use ring_notify::{Options, SendError};
use tokio::time::{sleep, timeout};

use crate::common::event_without_eventfd;
use crate::{BOUND, current_thread, event, mpmc_of, run, runtimes, sleepy, spsc_of};

#[test]
fn ping_pong_over_one_slot_ends() {
    const EXCHANGES: u64 = 10_000;
    for runtime in runtimes() {
        run(&runtime, async {
            let options = sleepy();
            let (there, here) = (spsc_of(1, &options), spsc_of(1, &sleepy()));
            let (mut there, mut at_there) = (there.0.into_async().unwrap(), there.1.into_async().unwrap());
            let (mut back, mut at_back) = (here.0.into_async().unwrap(), here.1.into_async().unwrap());
            let echo = tokio::spawn(async move {
                while let Ok(value) = at_there.recv().await {
                    back.send(value).await.unwrap();
                }
            });
            for value in 0..EXCHANGES {
                there.send(value).await.unwrap();
                assert_eq!(at_back.recv().await, Ok(value));
            }
            assert!(at_back.get_ref().counters().sleeps > 0);
            there.close();
            echo.await.unwrap();
        });
    }
}

#[test]
fn a_task_and_a_thread_wake_each_other_in_both_directions() {
    const MESSAGES: u64 = 10_000;
    for runtime in runtimes() {
        let options = sleepy();
        let ((mut to_task, at_task), (to_thread, mut at_thread)) =
            (spsc_of(1, &options), spsc_of(1, &options));
        let sending = thread::spawn(move || (0..MESSAGES).for_each(|value| to_task.send(value).unwrap()));
        let receiving = thread::spawn(move || {
            (0..MESSAGES).for_each(|value| assert_eq!(at_thread.recv(), Ok(value)));
        });
        run(&runtime, async move {
            let (mut at_task, mut to_thread) =
                (at_task.into_async().unwrap(), to_thread.into_async().unwrap());
            for _ in 0..MESSAGES {
                to_thread.send(at_task.recv().await.unwrap()).await.unwrap();
            }
        });
        sending.join().unwrap();
        receiving.join().unwrap();
    }
}

#[test]
fn bytes_and_slices_pass_through_a_short_ring() {
    run(&current_thread(), async {
        let options = sleepy();
        let layout = bytes::Layout::new(64).unwrap();
        let (producer, consumer) = bytes::create(Arc::new(HeapRegion::new(layout.bytes())), &layout).unwrap();
        let mut sender = options.clone().sender(producer).unwrap().into_async().unwrap();
        let mut receiver = options.receiver(consumer).unwrap().into_async().unwrap();
        let (pushing, popping) = spsc_of(4, &sleepy());
        let (mut pushing, mut popping) = (pushing.into_async().unwrap(), popping.into_async().unwrap());
        let sending = tokio::spawn(async move {
            let values: Vec<u64> = (0..1_000).collect();
            let mut sent = 0;
            while sent < values.len() {
                sent += pushing.send_slice(&values[sent..]).await.unwrap();
            }
            for number in 0..1_000_usize {
                sender.ready().await.unwrap();
                sender.send(&[7; 24][..1 + number % 24]).await.unwrap();
            }
            assert!(matches!(
                sender.send(&[0; 64]).await,
                Err(SendError::Ring(bytes::PushError::TooLong { .. }))
            ));
        });
        let (mut received, mut values) = (Vec::new(), [0; 3]);
        while received.len() < 1_000 {
            let count = popping.recv_slice(&mut values).await.unwrap();
            received.extend_from_slice(&values[..count]);
        }
        assert!(received.into_iter().eq(0..1_000));
        let mut buffer = [0; 24];
        for number in 0..1_000_usize {
            receiver.ready().await.unwrap();
            assert_eq!(receiver.recv(&mut buffer).await, Ok(1 + number % 24));
        }
        sending.await.unwrap();
    });
}

#[test]
fn two_tasks_on_one_ring_and_one_event_get_everything() {
    const MESSAGES: u64 = 5_000;
    for runtime in runtimes() {
        let region = mpmc_of(2);
        let options = sleepy();
        let senders = [0; 2].map(|_| {
            options.clone().sender(mpmc::Producer::<u64, _>::attach(Arc::clone(&region)).unwrap()).unwrap()
        });
        let receivers = [0; 2].map(|_| {
            options.clone().receiver(mpmc::Consumer::<u64, _>::attach(Arc::clone(&region)).unwrap()).unwrap()
        });
        let sending = senders.map(|mut sender| {
            thread::spawn(move || {
                (1..=MESSAGES).for_each(|value| sender.send(value).unwrap());
                sender
            })
        });
        let sum = runtime.spawn(async {
            let tasks = receivers.map(|receiver| {
                let mut receiver = receiver.into_async().unwrap();
                tokio::spawn(async move {
                    let mut sum = 0;
                    while let Ok(value) = receiver.recv().await {
                        sum += value;
                        tokio::task::yield_now().await;
                    }
                    sum
                })
            });
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        let closing = thread::spawn(move || {
            let [sender, other] = sending.map(|sending| sending.join().unwrap());
            drop(other);
            sender.close();
        });
        assert_eq!(run(&runtime, sum).unwrap(), MESSAGES * (MESSAGES + 1));
        closing.join().unwrap();
    }
}

#[test]
fn a_signal_for_another_ring_of_the_same_event_is_not_taken_away() {
    const ROUNDS: u64 = 2_000;
    for runtime in runtimes() {
        let shared = sleepy();
        let (mut calls, mut echoes) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (there, back) = (spsc_of(1, &shared), spsc_of(4, &sleepy()));
            calls.push((there.0, back.1));
            echoes.push((there.1, back.0));
        }
        let calling = thread::spawn(move || {
            for round in 0..ROUNDS {
                for (there, back) in &mut calls {
                    there.send(round).unwrap();
                    assert_eq!(back.recv(), Ok(round));
                }
            }
        });
        run(&runtime, async move {
            let tasks: Vec<_> = echoes
                .into_iter()
                .map(|(receiver, mut back)| {
                    let mut receiver = receiver.into_async().unwrap();
                    tokio::spawn(async move {
                        for round in 0..ROUNDS {
                            assert_eq!(receiver.recv().await, Ok(round));
                            assert_eq!(back.try_send(round), Ok(None));
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        calling.join().unwrap();
    }
}

#[test]
fn after_a_million_signals_a_task_sleeps_again() {
    const SIGNALS: u32 = 1_000_000;
    let pipe = || Arc::new(event_without_eventfd());
    for (event, sources) in [(event(), 1), (event(), 8), (pipe(), 1), (pipe(), 8)] {
        let options = Options::new().slice(None).messages_event(Arc::clone(&event));
        let pairs: Vec<_> = (0..sources).map(|_| spsc_of(1, &options)).collect();
        let (mut senders, receivers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let runtime = current_thread();
        runtime.block_on(async {
            let mut receivers: Vec<_> =
                receivers.into_iter().map(|receiver| receiver.into_async().unwrap()).collect();
            let mut polls = 0_u32;
            let mut all = async |polls: &mut u32, time| {
                let first = poll_fn(|context| {
                    *polls += 1;
                    let mut polled = receivers.iter_mut().map(|receiver| receiver.poll_recv(context));
                    polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
                });
                timeout(time, first).await
            };
            assert!(all(&mut polls, Duration::from_millis(1)).await.is_err());
            (0..SIGNALS).for_each(|_| event.signal());
            assert!(all(&mut polls, Duration::from_millis(50)).await.is_err());
            polls = 0;
            let silence = all(&mut polls, Duration::from_millis(300)).await;
            assert!(silence.is_err() && polls <= 3, "{polls} polls in silence");
            // And wakes up from that sleep.
            let last = senders.last_mut().unwrap();
            last.send(7).unwrap();
            assert_eq!(all(&mut polls, BOUND).await.unwrap(), Ok(7));
        });
    }
}

#[test]
fn polls_that_nothing_led_to_pay_for_no_notice() {
    run(&current_thread(), async {
        let (mut sender, receiver) = spsc_of(4, &sleepy());
        let mut receiver = receiver.into_async().unwrap();
        for _ in 0..100 {
            assert!(
                poll_fn(|context| Poll::Ready(receiver.poll_recv(context))).await.is_pending(),
                "nothing was sent"
            );
        }
        assert_eq!(receiver.get_ref().counters().sleeps, 1);
        sender.send(1).unwrap();
        assert_eq!(sender.counters().wakes_sent, 1);
        sender.send(2).unwrap();
        assert_eq!((sender.counters().wakes_sent, sender.counters().wakes_saved), (1, 1));
        assert_eq!((receiver.recv().await, receiver.recv().await), (Ok(1), Ok(2)));
        // The runtime has had a turn by then, and saw the signal.
        sleep(Duration::from_millis(1)).await;
        let silence = timeout(Duration::from_millis(5), receiver.recv()).await;
        assert!(silence.is_err());
        let counters = receiver.get_ref().counters();
        assert_eq!((counters.sleeps, counters.wakes_received, counters.found_unwoken), (2, 1, 0));
    });
}
