#![cfg_attr(feature = "std", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "std"),
    doc = "What a latency measurement needs of its host; the feature `std` has the most of it."
)]
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
#[cfg(test)]
#[path = "../tests/common/skip.rs"]
mod skip;
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
