//! Waiting for events instead of polling.
//!
//! # Safety
//!
//! A count that the library keeps in a completion queue is read while the queue is there.
#![allow(unsafe_code)]

use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;

use ring_verbs::{
    CompletionChannel, CompletionQueue, CompletionQueueOptions, Opcode, QueuePair, QueuePairOptions, Rc,
    Request, Rts, Slab, WcStatus,
};

use crate::Tests;
use crate::objects::nothing_is_left;
use crate::rig::{PATIENCE, Rig, completions};

pub(crate) const TESTS: Tests = &[
    ("no_event_is_lost_one_at_a_time", || no_event_is_lost(1)),
    ("no_event_is_lost_by_32", || no_event_is_lost(32)),
    ("only_solicited_ones_wake", only_solicited_ones_wake),
    ("an_error_wakes_who_waits_for_solicited_ones", an_error_wakes_who_waits_for_solicited_ones),
    ("an_event_that_somebody_else_has_read", an_event_that_somebody_else_has_read),
    ("completions_that_were_there_before", completions_that_were_there_before),
    ("a_wait_ends", a_wait_ends),
];

/// Messages of each of the two tests: 100,000 in all, and as many answers.
const MESSAGES: u32 = 50_000;

/// Two connected queue pairs: the completions of all sends in one queue, of all receives in the other, with one
/// channel for both.
struct Stage {
    rig: Rig,
    a: QueuePair<Rc, Rts>,
    b: QueuePair<Rc, Rts>,
    sends: CompletionQueue<Slab>,
    receives: CompletionQueue<Slab>,
    channel: CompletionChannel,
}

impl Stage {
    fn new(is_solicited_only: bool) -> Self {
        let rig = Rig::new();
        let channel = CompletionChannel::new(&rig.context).unwrap();
        let options = CompletionQueueOptions::new(128).channel(&channel);
        let sends = options.build(&rig.context).unwrap();
        let receives = options.solicited_only(is_solicited_only).build(&rig.context).unwrap();
        let options = QueuePairOptions::new(32, 32);
        let [a, b] = [(); 2].map(|()| options.build(&rig.domain, &sends, &receives).unwrap());
        let (a, b) = rig.connect(a, b);
        Self { rig, a, b, sends, receives, channel }
    }

    fn send(&mut self, request: &Request<Rc>) {
        self.b.post_receive(self.rig.slab(&[0; 8])).unwrap();
        self.a.post(request, self.rig.slab(b"wake up!")).unwrap();
    }

    /// Whether an event is there, after a wait for it.
    fn has_event(&self, wait: Duration) -> bool {
        let descriptor = self.channel.as_fd().as_raw_fd();
        let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let wait = i32::try_from(wait.as_millis()).expect("short");
        // SAFETY: the entry can be written.
        unsafe { libc::poll(&raw mut entry, 1, wait) == 1 }
    }
}

/// Events that were acknowledged so far. Up to 31 are not yet.
fn events(queue: &CompletionQueue<Slab>) -> u32 {
    // SAFETY: the queue is there, and this thread alone acknowledges events.
    unsafe { (*queue.as_raw()).comp_events_completed }
}

/// Sends in bursts, and sleeps until a thread at the other end has answered each.
fn no_event_is_lost(burst: u32) {
    let test = || {
        let rig = Rig::new();
        let mut channel = CompletionChannel::new(&rig.context).unwrap();
        let options = CompletionQueueOptions::new(64).channel(&channel);
        let [mut sends, mut receives] = [(); 2].map(|()| options.build(&rig.context).unwrap());
        let mut theirs = rig.completion_queue(128);
        let options = QueuePairOptions::new(64, 32).max_inline(16);
        let a = options.build(&rig.domain, &sends, &receives).unwrap();
        let b = options.build(&rig.domain, &theirs, &theirs).unwrap();
        let (mut a, mut b) = rig.connect::<Rc, _>(a, b);
        for _ in 0..32 {
            a.post_receive(rig.slab(&[0; 8])).unwrap();
            b.post_receive(rig.slab(&[0; 8])).unwrap();
        }
        let mut waits = 0;
        thread::scope(|scope| {
            scope.spawn(|| answer(&mut b, &mut theirs));
            let mut left = MESSAGES;
            while left > 0 {
                let burst = burst.min(left);
                for _ in 0..burst {
                    a.post_inline(&Request::send(), b"here").unwrap();
                }
                left -= burst;
                let (mut sent, mut received) = (0, 0);
                while sent < burst || received < burst {
                    waits += 1;
                    if !channel.wait(&mut [&mut sends, &mut receives], Some(PATIENCE)).unwrap() {
                        let there = (sends.poll().unwrap(), receives.poll().unwrap());
                        panic!(
                            "no event, {sent} sent and {received} received of {burst}, {left} left: {there:?}"
                        );
                    }
                    while let Some(completion) = sends.poll().unwrap() {
                        completion.result().unwrap();
                        sent += 1;
                    }
                    while let Some(completion) = receives.poll().unwrap() {
                        completion.result().unwrap();
                        a.post_receive(completion.buffer.unwrap()).unwrap();
                        received += 1;
                    }
                }
                assert_eq!((sent, received), (burst, burst));
            }
        });
        let events = events(&sends) + events(&receives);
        println!(
            "bursts of {burst}: {:.3} events a completion ({events} events, {waits} waits, {} completions)",
            f64::from(events) / f64::from(2 * MESSAGES),
            2 * MESSAGES,
        );
        assert!(events >= 32, "it has hardly slept: {events} events");
    };
    nothing_is_left(test);
}

/// Answers each message with another, by polling.
fn answer(pair: &mut QueuePair<Rc, Rts>, queue: &mut CompletionQueue<Slab>) {
    let (mut sent, mut received) = (0, 0);
    while sent < MESSAGES || received < MESSAGES {
        let Some(completion) = queue.poll().unwrap() else {
            thread::yield_now();
            continue;
        };
        completion.result().unwrap();
        if completion.opcode() == Opcode::Receive {
            pair.post_receive(completion.buffer.unwrap()).unwrap();
            pair.post_inline(&Request::send(), b"there").unwrap();
            received += 1;
        } else {
            sent += 1;
        }
    }
}

fn only_solicited_ones_wake() {
    nothing_is_left(|| {
        let mut stage = Stage::new(true);
        assert!(!stage.channel.arm(&mut [&mut stage.receives]).unwrap());
        stage.send(&Request::send());
        // It is there when the sender has its acknowledgement.
        completions(&mut stage.sends, 1)[0].result().unwrap();
        assert!(!stage.has_event(Duration::from_millis(200)), "nobody asked for it");
        stage.send(&Request::send().solicited());
        assert!(stage.has_event(PATIENCE), "the sender asked for it");
        stage.channel.clear(&mut [&mut stage.receives]).unwrap();
        completions(&mut stage.receives, 2);
    });
}

fn an_error_wakes_who_waits_for_solicited_ones() {
    nothing_is_left(|| {
        let mut stage = Stage::new(true);
        stage.b.post_receive(stage.rig.slab(b"")).unwrap();
        assert!(!stage.channel.arm(&mut [&mut stage.receives]).unwrap());
        let b = stage.b.into_error().unwrap();
        assert!(stage.channel.wait(&mut [&mut stage.receives], Some(PATIENCE)).unwrap());
        let flushed = completions(&mut stage.receives, 1).pop().unwrap();
        assert_eq!(flushed.result().unwrap_err().status(), Some(WcStatus::WR_FLUSH_ERR));
        assert_eq!(b.receives_in_flight(), 0);
    });
}

fn an_event_that_somebody_else_has_read() {
    nothing_is_left(|| {
        let mut stage = Stage::new(false);
        for _ in 0..100 {
            let is_ready = stage.channel.arm(&mut [&mut stage.sends, &mut stage.receives]).unwrap();
            assert!(!is_ready);
            stage.send(&Request::send());
            completions(&mut stage.sends, 1);
            completions(&mut stage.receives, 1);
            // Reads the events of both, and knows what to do with one.
            assert!(stage.has_event(PATIENCE));
            stage.channel.clear(&mut [&mut stage.sends]).unwrap();
            // The other queue has no event on the way, must find that out, and asks for one again.
            let (mut channel, mut receives) = (stage.channel, stage.receives);
            let waiter = thread::spawn(move || {
                assert!(receives.wait(&mut channel, Some(PATIENCE)).unwrap());
                (channel, receives)
            });
            thread::sleep(Duration::from_millis(2));
            stage.b.post_receive(stage.rig.slab(&[0; 8])).unwrap();
            stage.a.post(&Request::send(), stage.rig.slab(b"wake up!")).unwrap();
            (stage.channel, stage.receives) = waiter.join().unwrap();
            completions(&mut stage.sends, 1);
            completions(&mut stage.receives, 1);
            stage.channel.clear(&mut [&mut stage.sends, &mut stage.receives]).unwrap();
        }
    });
}

fn completions_that_were_there_before() {
    nothing_is_left(|| {
        let mut stage = Stage::new(false);
        for _ in 0..3 {
            stage.send(&Request::send());
        }
        // Nobody has armed the queue before these, so they make no event.
        completions(&mut stage.sends, 3);
        assert!(stage.receives.wait(&mut stage.channel, None).unwrap());
        // One batch was taken out of the library's queue, of which only the first is polled here.
        assert!(stage.receives.poll().unwrap().is_some());
        assert!(stage.receives.wait(&mut stage.channel, None).unwrap());
        completions(&mut stage.receives, 2);
        // A pair that was dropped has something to give back.
        stage.b.post_receive(stage.rig.slab(b"")).unwrap();
        drop(stage.b);
        assert!(stage.receives.wait(&mut stage.channel, None).unwrap());
        completions(&mut stage.receives, 1);
    });
}

fn a_wait_ends() {
    nothing_is_left(|| {
        let mut stage = Stage::new(false);
        let begin = std::time::Instant::now();
        let wait = Duration::from_millis(30);
        assert!(!stage.channel.wait(&mut [&mut stage.sends, &mut stage.receives], Some(wait)).unwrap());
        assert!(begin.elapsed() >= wait);
    });
}
