//! What a latency measurement needs of its host: a pinned thread, an ordered clock, a recorder.
//!
//! - [`pin_to`], [`allowed_cpus`] and [`current_cpu`] place the calling thread and say where it is; [`pin_to_set`],
//!   [`pin_thread`] and [`pin_process`] place others;
//! - [`Fifo`] schedules the calling thread before all others, [`set_memory_policy`] and [`bind_memory`] choose the NUMA
//!   node of memory, [`lock_all_memory`] keeps it in memory, [`LatencyLimit`] keeps CPUs from deep sleep;
//! - [`Clock`] stamps the start and the end of an interval with the processor's own counter, ordered against
//!   the code around it, and converts ticks to nanoseconds;
//! - [`Recorder`] (feature `std`, on by default) keeps latencies in an HDR histogram, [`Stages`] one for each step of an
//!   operation; both are merged across processes.
//!
//! Without the feature `std` the crate needs core and libc alone; pinning and the clock stay. It uses none of
//! the ring crates, and Linux only.
//!
//! ```
//! use ring_tune::{Clock, Recorder, allowed_cpus, pin_to};
//!
//! let cpu = allowed_cpus()?.iter().next().expect("a running thread may run somewhere");
//! pin_to(cpu)?;
//!
//! let clock = Clock::new();
//! let mut recorder = Recorder::new();
//! for _ in 0..1_000 {
//!     let start = clock.start();
//!     core::hint::spin_loop();
//!     let stop = clock.stop();
//!     recorder.record(clock.between_ns(start, stop));
//! }
//!
//! let summary = recorder.summary().expect("1,000 samples were recorded");
//! assert_eq!(summary.count, 1_000);
//! assert!(summary.p50_ns <= summary.max_ns);
//! # Ok::<(), ring_tune::Error>(())
//! ```
#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

mod clock;
mod cpu_set;
mod error;
#[cfg(test)]
#[path = "../tests/common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the tests from outside use it too, and more of it")]
mod laid_out;
#[cfg(feature = "std")]
mod latency_limit;
mod memory_lock;
mod memory_policy;
mod pin;
#[cfg(feature = "std")]
mod recorder;
mod schedule;
#[cfg(feature = "std")]
mod stages;
#[cfg(feature = "std")]
mod topology;
#[cfg(feature = "std")]
mod tree;

pub use clock::{Clock, Source};
pub use cpu_set::{CpuSet, MAX_CPUS};
pub use error::{Errno, Error};
#[cfg(feature = "std")]
pub use latency_limit::LatencyLimit;
pub use memory_lock::{lock_all_memory, unlock_all_memory};
pub use memory_policy::{MemoryPolicy, bind_memory, memory_policy, set_memory_policy};
#[cfg(feature = "std")]
pub use pin::pin_process;
pub use pin::{allowed_cpus, current_cpu, pin_thread, pin_to, pin_to_set};
#[cfg(feature = "std")]
pub use recorder::{Recorder, Summary};
pub use schedule::Fifo;
#[cfg(feature = "std")]
pub use stages::{Breakdown, Operation, Part, Stages};
#[cfg(feature = "std")]
pub use topology::{Share, Topology, cgroup_root};
#[cfg(feature = "std")]
pub use tree::{Tree, Unread};
