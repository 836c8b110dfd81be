//! A future that is dropped has taken nothing and sent nothing.

use core::future::{Future, poll_fn, ready};
use core::task::Poll;
use core::time::Duration;
use std::thread;

use ring_core::spsc;
use ring_notify::RecvError;

use crate::{current_thread, run, runtimes, sleepy, spsc_of};

#[test]
fn what_is_cancelled_receives_nothing_and_loses_nothing() {
    const MESSAGES: u64 = 20_000;
    for runtime in runtimes() {
        let (mut sender, receiver) = spsc_of(2, &sleepy());
        let sending = thread::spawn(move || {
            for value in 0..MESSAGES {
                sender.send(value).unwrap();
                if value % 64 == 0 {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        let cancelled = run(&runtime, async move {
            let mut receiver = receiver.into_async().unwrap();
            let (mut expected, mut cancelled) = (0, 0_u64);
            while expected < MESSAGES {
                // In any order: sometimes it is dropped without ever being polled.
                tokio::select! {
                    value = receiver.recv() => {
                        assert_eq!(value, Ok(expected));
                        expected += 1;
                    }
                    () = ready(()) => {
                        cancelled += 1;
                        if cancelled % 8 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                }
            }
            cancelled
        });
        assert!(cancelled > 0);
        sending.join().unwrap();
    }
}

#[test]
fn what_is_cancelled_sends_nothing() {
    const MESSAGES: u64 = 20_000;
    for runtime in runtimes() {
        let (sender, mut receiver) = spsc_of(1, &sleepy());
        let receiving = thread::spawn(move || {
            (0..MESSAGES).for_each(|value| assert_eq!(receiver.recv(), Ok(value)));
            receiver.recv()
        });
        let cancelled = run(&runtime, async move {
            let mut sender = sender.into_async().unwrap();
            let (mut next, mut cancelled) = (0, 0_u64);
            while next < MESSAGES {
                tokio::select! {
                    biased;
                    sent = sender.send(next) => {
                        sent.unwrap();
                        next += 1;
                    }
                    () = tokio::task::yield_now() => cancelled += 1,
                }
            }
            sender.close();
            cancelled
        });
        assert!(cancelled > 0);
        assert_eq!(receiving.join().unwrap(), Err(RecvError::Ring(spsc::PopError::Closed)));
    }
}

#[test]
fn a_message_that_comes_for_a_dropped_future_waits_for_the_next() {
    run(&current_thread(), async {
        let (mut sender, receiver) = spsc_of(4, &sleepy());
        let mut receiver = receiver.into_async().unwrap();
        for value in 0..1_000 {
            {
                let mut receiving = Box::pin(receiver.recv());
                let first = poll_fn(|context| Poll::Ready(receiving.as_mut().poll(context))).await;
                assert!(first.is_pending());
                assert_eq!(sender.try_send(value), Ok(None));
            }
            assert_eq!(receiver.recv().await, Ok(value));
        }
    });
}
