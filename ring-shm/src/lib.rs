//! Shared-memory segments to put rings in: exclusive, reserved, prefaulted, locked, with a report of what was
//! obtained.
//!
//! One process creates a segment, makes a ring in it and publishes it; others attach. A segment is named
//! (POSIX shared memory, a file in /dev/shm) or anonymous (a memfd that a child inherits).
//!
//! ```
//! use core::time::Duration;
//! use ring_core::spsc;
//! use ring_shm::{Error, Options};
//!
//! type Message = [u64; 7];
//!
//! # let name = format!("doc-lib-{}", std::process::id());
//! // One process:
//! let layout = spsc::Layout::<Message>::new(1024)?;
//! let new = Options::new().create(&name, layout.bytes())?;
//! layout.init(&new)?;
//! let segment = new.publish();
//! println!("{}", segment.report());
//! let mut producer = spsc::Producer::<Message, _>::attach(&segment)?;
//! producer.try_push([7; 7]).unwrap();
//!
//! // Another:
//! let attached = Options::new().attach(&name, Duration::from_secs(5))?;
//! let mut consumer = spsc::Consumer::<Message, _>::attach(attached)?;
//! assert_eq!(consumer.try_pop(), Ok([7; 7]));
//!
//! segment.unlink()?;
//! # Ok::<(), Error>(())
//! ```
//!
//! What holds:
//!
//! - All memory is reserved at creation: a full /dev/shm is an error there, never a SIGBUS later. What fails
//!   leaves nothing behind.
//! - Nobody attaches to a segment that is not published, and everybody who attaches sees all that was written
//!   before. A creator that dies half-way costs the others a time-out with its own error.
//! - Nothing that a header says is believed: each field is read once and checked against what the kernel
//!   says.
//! - An anonymous segment is sealed: nobody can truncate it, and nobody attaches to a descriptor that is not.
//!
//! What does not hold: whoever may open a segment can write anything to its data, or zero it by punching holes
//! (rings bear both, huge pages do not bear the second: see [`Segment`]). Whoever may open a *named* segment can
//! truncate it, which kills whoever touches it. Keep its mode at 0600 or trust whom you let in; whoever attaches
//! accepts a file of its own user, of root, and of whom it names ([`Options::trust_owner`]).
//!
//! Linux only. Without the default feature `std` the crate needs `core` and the C library alone.
#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(not(target_os = "linux"))]
compile_error!("ring-shm uses system calls that only Linux has");

mod attach;
mod available;
mod create;
mod descriptor;
mod errno;
mod error;
mod header;
mod lines;
mod mapping;
mod name;
mod options;
mod place;
mod report;
mod segment;
mod sys;
mod wait;

pub use descriptor::Descriptor;
pub use errno::Errno;
pub use error::{Error, NameFault};
pub use options::{Lock, Options, Pages};
pub use place::unlink;
pub use report::{Locked, Report};
pub use ring_core::Region;
pub use segment::{NewSegment, Segment};

/// Compiles the programs that the workspace's README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
