#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test, loom))]
extern crate std;

mod address;
mod async_events;
mod buffer;
mod completion;
mod completion_queue;
mod context;
mod deadline;
mod device;
mod domain;
mod errno;
mod error;
mod fixed;
mod flight;
mod free_list;
mod gid;
#[cfg(feature = "std")]
mod handshake;
mod lock;
mod memory;
mod pool;
mod port;
mod queue_pair;
mod shared_receive_queue;
mod sync;
pub mod sys;
mod system;
#[cfg(test)]
mod testing;
mod timing;

pub use address::{AddressHandle, Route};
pub use async_events::{AsyncEvent, AsyncEvents, EventSource, ObjectId};
pub use buffer::{Buffer, PIECES_MAX, Pieces};
pub use completion::{Completion, Failure, Opcode, PollError, Source, Ticket};
pub use completion_queue::{
    Armable, CompletionChannel, CompletionQueue, CompletionQueueOptions, CompletionTarget, Timestamps,
};
pub use context::Context;
pub use deadline::Deadline;
pub use device::{Device, DeviceList, prepare_for_fork};
pub use domain::ProtectionDomain;
pub use errno::Errno;
pub use error::{DeviceName, Error, Operation};
pub use gid::{Gid, GidEntry, Guid};
#[cfg(feature = "std")]
pub use handshake::{Connection, Endpoint, EndpointError, HandshakeError};
pub use memory::{
    ExposedRegion, Memory, MemoryRegion, MemoryRejected, PageMemory, Pages, RemoteMemory, RingMemory,
};
pub use pool::{Pool, PoolOptions, Slab};
pub use port::Port;
pub use queue_pair::{
    Batch, BatchRejected, CanReceive, Connected, Errored, Init, InitAttributes, Overdue, Posting, QueuePair,
    QueuePairOptions, Rc, Rejected, Rejection, Request, Reset, Rtr, RtrAttributes, Rts, RtsAttributes, State,
    TransitionError, Transport, Uc, Ud,
};
pub use shared_receive_queue::SharedReceiveQueue;
pub use sys::{AccessFlags, EventType, GidType, LinkLayer, Mtu, PortState, QpState, QpType, WcStatus};
pub use timing::{AckTimeout, Retries, RnrTimer};
