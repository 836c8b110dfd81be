#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

#[cfg(not(target_has_atomic = "64"))]
compile_error!("ring-core needs 64-bit atomics, which this target lacks");

pub mod broadcast;
pub mod bytes;
mod delivery;
mod error;
mod header;
mod inspect;
mod liveness;
mod message;
pub mod mpmc;
mod pair;
mod region;
mod registry;
mod slots;
pub mod spsc;
#[doc(hidden)]
pub mod sync;

#[cfg(all(test, feature = "alloc"))]
use sync::testing;

pub use error::Error;
pub use header::ARCHITECTURE;
pub use inspect::{Inspector, Kind, Progress};
pub use liveness::{AssumeAlive, AssumeGone, Liveness, Owner, Role};
pub use message::Message;
#[cfg(feature = "alloc")]
pub use region::HeapRegion;
pub use region::{REGION_ALIGN, Region, StaticRegion, Trusted, TrustedRegion};
pub use registry::Registry;
