//! Shared-memory segments to put rings in: exclusive, reserved, prefaulted, locked, with a report of what was
//! obtained; and roles in a ring, which the kernel takes back when their owner dies.
//!
//! One process makes a segment with a ring in it and takes one of its sides; others take the rest. A segment is named
//! (POSIX shared memory, a file in /dev/shm) or anonymous (a memfd that a child inherits or a server hands out over a
//! socket).
//!
//! ```
//! use core::time::Duration;
//! use ring_core::{Role, spsc};
//! use ring_shm::{Error, Options, Presence};
//!
//! # let name = format!("doc-lib-{}", std::process::id());
//! // One process:
//! let layout = spsc::Layout::new(1024)?;
//! let mut producer: spsc::Producer<[u64; 7], _> = Options::new().create_ring(&name, &layout)?;
//! println!("{}", producer.region().report());
//! producer.try_push([7; 7]).unwrap();
//!
//! // Another:
//! let mut consumer: spsc::Consumer<[u64; 7], _> = Options::new().attach_ring(&name, Duration::from_secs(5))?;
//! assert_eq!(consumer.try_pop(), Ok([7; 7]));
//!
//! // Killed, stopped, or just slow?
//! assert_eq!(consumer.region().presence(Role::Producer)?, Presence::Alive);
//! consumer.region().unlink()?;
//! # Ok::<(), Error>(())
//! ```
//!
//! The steps one by one, for a ring or anything else: [`Options::create`] or [`Options::attach`], [`NewSegment::publish`],
//! [`Segment::claim`], and the ring's own `take_over` with the [`Claim`] as its region.
//!
//! What holds:
//!
//! - All memory is reserved at creation: a full /dev/shm is an error there, never a SIGBUS later. What fails
//!   leaves nothing behind.
//! - Nobody attaches to a segment that is not published, and everybody who attaches sees all that was written
//!   before. A creator that dies half-way costs the others a time-out with its own error, and nothing of it is
//!   in the way of the next.
//! - Nothing that a header says is believed: each field is read once and checked against what the kernel
//!   says.
//! - An anonymous segment is sealed: nobody can truncate it, and nobody attaches to a descriptor that is not.
//!
//! What does not hold: whoever may open a segment can write anything to its data, or zero it by punching holes
//! (rings bear both, huge pages do not bear the second: see [`Segment`]). Whoever may open a *named* segment can
//! truncate it, which kills whoever touches it. Keep its mode at 0600 or trust whom you let in; whoever attaches
//! accepts a file of its own user, of root, and of whom it names ([`Options::trust_owner`]).
//!
//! Linux only. Without the default feature `std` the crate needs `core`, `alloc` and the C library alone, and has no
//! sockets.
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(not(target_os = "linux"))]
compile_error!("ring-shm uses system calls that only Linux has");

mod attach;
mod available;
mod claim;
mod create;
mod descriptor;
mod errno;
mod error;
mod fork;
mod header;
mod lines;
mod list;
mod lock;
mod mapping;
mod name;
mod options;
mod pages;
mod place;
mod report;
mod rest;
mod ring;
mod segment;
#[cfg(feature = "std")]
mod server;
mod short_path;
#[cfg(feature = "std")]
mod socket;
mod sys;
mod wait;

pub use claim::{Claim, Locks, Presence};
pub use descriptor::Descriptor;
pub use errno::Errno;
pub use error::{Error, NameFault};
pub use list::{Listed, find, list};
pub use options::{Lock, Options};
pub use pages::Pages;
pub use place::unlink;
pub use report::{FallBack, Locked, Nodes, Report};
pub use ring::Side;
pub use ring_core::Region;
pub use segment::{NewSegment, Segment};
#[cfg(feature = "std")]
pub use server::{Served, Server};
