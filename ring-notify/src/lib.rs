#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test, loom))]
extern crate std;

mod any;
mod barrier;
mod bell;
mod counters;
mod error;
mod options;
mod receiver;
mod report;
mod ring;
mod sender;
mod side;
mod strategy;
mod sys;
#[cfg(test)]
mod tests;
#[cfg(feature = "tokio")]
mod tokio;
mod word;

#[cfg(feature = "tokio")]
pub use self::tokio::{AsyncReceiver, AsyncSender};
pub use any::{AnyOf, Waits};
pub use barrier::Barrier;
pub use counters::{Counters, Watch};
pub use error::{Error, RecvError, SendError, WaitAnyError, WaitError};
pub use options::Options;
pub use receiver::Receiver;
pub use report::{Report, Sleeping, SleepsOn, Waking};
pub use ring::{Consumer, Handle, Pop, Producer, Push};
pub use sender::Sender;
pub use strategy::Strategy;
#[cfg(feature = "std")]
pub use sys::{Event, EventKind};

/// Compiles the programs that the workspace's README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
