//! What `cargo xtask bench` and the program of the comparison say to each other: a line of JSON each.

use serde::{Deserialize, Serialize};

use crate::Slice;

/// An arm whose two sides are threads of one process, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Threads {
    /// A bare word each way, over so many lines in turn.
    Floor {
        /// Lines each way, a power of two.
        lines: usize,
    },
    /// Two queues of one producer and one consumer, one each way.
    Pair {
        /// Whose.
        queue: Queue,
        /// Messages that each holds.
        depth: usize,
    },
    /// One queue of several producers and consumers.
    Many {
        /// Whose: one that can do this.
        queue: Queue,
        /// Messages that it holds.
        depth: usize,
        /// Threads that push.
        producers: usize,
        /// Threads that pop.
        consumers: usize,
    },
}

/// A queue between threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Queue {
    /// Our ring for one producer and one consumer.
    Spsc,
    /// Our ring for many producers and consumers.
    Mpmc,
    /// rtrb's ring buffer.
    Rtrb,
    /// crossbeam-queue's `ArrayQueue`.
    Crossbeam,
    /// ringbuf's heap ring buffer.
    Ringbuf,
    /// iceoryx2's publish-subscribe service over shared memory.
    Iceoryx2,
    /// disruptor's single producer with an event poller.
    Disruptor,
}

/// What the program makes at its start.
#[derive(Debug, Serialize, Deserialize)]
pub struct Make {
    /// CPUs of the lead and of its peer.
    pub cpus: [usize; 2],
    /// The arms.
    pub arms: Vec<Threads>,
}

/// A slice to run. The answer is what it has shown.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// Which arm.
    pub arm: usize,
    /// What both sides do.
    pub slice: Slice,
}
