//! The kernel in a model: who sleeps is in a list, under one lock.
//!
//! As in the kernel, whoever is about to sleep looks at the word once more with the lock in hand, and whoever wakes
//! takes the lock. Sleepers on other words stay asleep. Nothing ends by time.
#![allow(missing_docs, reason = "what is public is described where the kernel does it")]

use core::time::Duration;
use std::vec::Vec;

use loom::sync::{Condvar, Mutex};
use ring_core::sync::{AtomicU64, Ordering, fence};

use super::{Deadline, Woken};
use crate::Error;

#[derive(Default)]
struct Sleepers {
    next: u64,
    /// Word and number of each.
    asleep: Vec<(usize, u64)>,
}

loom::lazy_static! {
    static ref SLEEPERS: Mutex<Sleepers> = Mutex::new(Sleepers::default());
    static ref ANY_WOKEN: Condvar = Condvar::new();
    static ref COUNTS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    static ref ANY_RAISED: Condvar = Condvar::new();
}

fn address(word: &AtomicU64) -> usize {
    core::ptr::from_ref(word).addr()
}

#[expect(clippy::cast_possible_truncation, reason = "the epoch is the lower half")]
fn has_epoch(word: &AtomicU64, epoch: u32) -> bool {
    // ORDERING: Relaxed: the lock orders it, as the kernel's does.
    word.load(Ordering::Relaxed) as u32 == epoch
}

pub(crate) fn futex_wait(word: &AtomicU64, epoch: u32, deadline: Deadline) -> Woken {
    futex_wait_any(core::iter::once((word, epoch)), deadline)
}

pub(crate) fn futex_wait_any<'a>(
    words: impl Iterator<Item = (&'a AtomicU64, u32)>,
    _deadline: Deadline,
) -> Woken {
    let words: Vec<_> = words.collect();
    let mut sleepers = SLEEPERS.lock().unwrap();
    if !words.iter().all(|(word, epoch)| has_epoch(word, *epoch)) {
        return Woken::Up;
    }
    let mine = sleepers.next;
    sleepers.next += 1;
    sleepers.asleep.extend(words.iter().map(|(word, _)| (address(word), mine)));
    while sleepers.asleep.iter().filter(|(_, number)| *number == mine).count() == words.len() {
        sleepers = ANY_WOKEN.wait(sleepers).unwrap();
    }
    sleepers.asleep.retain(|(_, number)| *number != mine);
    Woken::Up
}

pub(crate) fn futex_wake(word: &AtomicU64) {
    let mut sleepers = SLEEPERS.lock().unwrap();
    let before = sleepers.asleep.len();
    sleepers.asleep.retain(|(asleep, _)| *asleep != address(word));
    if sleepers.asleep.len() != before {
        ANY_WOKEN.notify_all();
    }
}

/// What an [`Event`] is to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A count under a lock.
    Model,
}

/// A count that can be waited for: its place among those of all events, which are under one lock, so that one can wait for
/// several.
#[derive(Debug)]
pub struct Event(usize);

impl Event {
    pub fn new() -> Result<Self, Error> {
        let mut counts = COUNTS.lock().unwrap();
        counts.push(0);
        Ok(Self(counts.len() - 1))
    }

    pub fn kind(&self) -> EventKind {
        EventKind::Model
    }

    pub fn signal(&self) {
        COUNTS.lock().unwrap()[self.0] += 1;
        ANY_RAISED.notify_all();
    }

    pub fn clear(&self) -> bool {
        core::mem::take(&mut COUNTS.lock().unwrap()[self.0]) > 0
    }

    pub(crate) fn wait(&self, deadline: Deadline) -> Woken {
        wait_for_any(core::iter::once(self), deadline)
    }
}

pub(crate) fn wait_for_any<'a>(events: impl Iterator<Item = &'a Event>, _deadline: Deadline) -> Woken {
    let events: Vec<_> = events.collect();
    let mut counts = COUNTS.lock().unwrap();
    while events.iter().all(|event| counts[event.0] == 0) {
        counts = ANY_RAISED.wait(counts).unwrap();
    }
    Woken::Up
}

pub(crate) fn register_for_heavy_barriers() -> bool {
    true
}

pub(crate) fn has_heavy_barriers() -> bool {
    true
}

/// The fence of whoever sleeps; [`light_fence`](ring_core::sync::light_fence) is that of whoever wakes.
#[track_caller]
pub(crate) fn heavy_barrier() -> bool {
    // Stands for the system call.
    fence(Ordering::SeqCst);
    true
}

pub(crate) fn now() -> Duration {
    Duration::ZERO
}

pub(crate) fn cpu() -> u64 {
    0
}

pub(crate) fn yield_now() {
    loom::thread::yield_now();
}

pub(crate) fn doze(_deadline: Deadline) {
    loom::thread::yield_now();
}
