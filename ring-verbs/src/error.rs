//! Why a verb failed, and what to do.

use core::fmt;

use crate::Errno;
use crate::queue_pair::Rejection;
use crate::sys::LoadError;

/// Why something failed. How a request ended is told by its completion, by a [`Failure`](crate::Failure).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// libibverbs is not there, or too old.
    #[error(transparent)]
    Library(#[from] LoadError),
    /// The library finds no device.
    #[error(
        "there is no RDMA device: see `rdma link`; load the driver of yours, or make a software one (`rdma link add rxe0 type rxe netdev eth0`); where the kernel has one, its file below /dev/infiniband must be there, also in a container"
    )]
    NoDevice,
    /// There are devices, and none of this name.
    #[error("no RDMA device has the name {name}: `rdma link` lists those that are there")]
    NoSuchDevice {
        /// As it was asked for, cut to what a name can have.
        name: DeviceName,
    },
    /// The kernel's device file cannot be opened.
    #[error(
        "cannot open {device}: {errno}; may this user read and write /dev/infiniband/uverbs*? (module ib_uverbs, a udev rule or a group)"
    )]
    Open {
        /// The device.
        device: DeviceName,
        /// Why not.
        errno: Errno,
    },
    /// The device has no such port.
    #[error("there is no port {port}: the device has {ports}, counted from 1")]
    NoSuchPort {
        /// As it was asked for.
        port: u8,
        /// How many there are.
        ports: u8,
    },
    /// The port takes no part in the network.
    #[error(
        "port {port} is {state:?}, not ACTIVE: is the cable in, and the network interface up (`ip link`)?"
    )]
    PortDown {
        /// Which one.
        port: u8,
        /// What it is instead.
        state: crate::sys::PortState,
    },
    /// The port has no address that RoCE v2 can use.
    #[error(
        "port {port} has no RoCE v2 address but link-local ones: give its network interface an IP address, or name an entry yourself"
    )]
    NoGid {
        /// Which port.
        port: u8,
    },
    /// The port's table has nothing at this index.
    #[error("the table of addresses of port {port} has nothing at {index}: `Port::gids` lists what is there")]
    NoSuchGid {
        /// Which port.
        port: u8,
        /// Which entry.
        index: u32,
    },
    /// Memory cannot be locked.
    #[error(
        "{operation}: ENOMEM with {bytes} bytes: the limit of locked memory is {limit_bytes} bytes (`ulimit -l`, LimitMEMLOCK= of systemd, RLIMIT_MEMLOCK); raise it, or register less"
    )]
    LockedMemory {
        /// What needed it.
        operation: Operation,
        /// How much was to be locked.
        bytes: u64,
        /// What this process may lock in all; `u64::MAX` is no limit.
        limit_bytes: u64,
    },
    /// Rights that do not go together.
    #[error(
        "whoever lets others write memory, or do atomics on it, must be able to write it: add LOCAL_WRITE"
    )]
    RemoteWithoutLocal,
    /// More than the device can do.
    #[error("{what}: {asked} asked for, the device has {most} at most")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many were asked for.
        asked: u64,
        /// How many there can be.
        most: u64,
    },
    /// A completion queue that could overflow, and be lost.
    #[error(
        "the completion queue has room for {room} more requests, and the queue needs {needed}: make it larger, or allow it to overflow with `overcommit`"
    )]
    CompletionQueueFull {
        /// What is left of it.
        room: u32,
        /// What is needed.
        needed: u32,
    },
    /// A queue pair, a completion queue, a domain or a region of different devices.
    #[error("{operation}: the objects belong to different devices, or to different openings of one")]
    OtherDevice {
        /// What was to be done.
        operation: Operation,
    },
    /// The driver does not do this.
    #[error("{operation}: the device or its driver does not support this")]
    NotSupported {
        /// What was to be done.
        operation: Operation,
    },
    /// A request was not posted.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Anything else that the driver or the kernel refuses.
    #[error("{operation}: {errno}{}", advice(*.operation, *.errno))]
    Refused {
        /// What was to be done.
        operation: Operation,
        /// Why not.
        errno: Errno,
    },
}

impl Error {
    /// What a verb's error number means.
    pub(crate) fn of(operation: Operation, errno: Errno) -> Self {
        match errno.0 {
            libc::EOPNOTSUPP | libc::ENOSYS | libc::EPROTONOSUPPORT => Self::NotSupported { operation },
            _ => Self::Refused { operation, errno },
        }
    }

    /// An error, where more are asked for than there can be; a limit below 0 is 0.
    pub(crate) fn at_most(what: &'static str, asked: u32, most: impl TryInto<u64>) -> Result<(), Self> {
        let (asked, most) = (asked.into(), most.try_into().unwrap_or(0));
        if asked <= most { Ok(()) } else { Err(Self::TooMany { what, asked, most }) }
    }

    /// The error number, where the system gave one.
    pub fn errno(&self) -> Option<Errno> {
        match *self {
            Self::Open { errno, .. }
            | Self::Refused { errno, .. }
            | Self::Rejected(Rejection::Driver(errno)) => Some(errno),
            Self::LockedMemory { .. } => Some(Errno(libc::ENOMEM)),
            _ => None,
        }
    }
}

/// What most often is behind it.
fn advice(operation: Operation, errno: Errno) -> &'static str {
    match (operation, errno.0) {
        (_, libc::ENOMEM) => {
            "; the device or the kernel is out of resources, or the locked memory is (`ulimit -l`)"
        }
        (_, libc::EBUSY) => "; something that was made with it is still there",
        (Operation::Modify(_), libc::EINVAL) => {
            "; an attribute is out of range, or the queue pair has left the state that it was driven to"
        }
        (Operation::PrepareForFork, libc::EINVAL) => "; memory is registered already: call it before",
        (_, libc::EINVAL) => "; an argument is out of the device's range",
        (_, libc::EACCES | libc::EPERM) => "; this user lacks a right for it",
        _ => "",
    }
}

/// What was to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// List the devices.
    ListDevices,
    /// Ask a device what it is.
    QueryDevice,
    /// Ask for a port's state.
    QueryPort,
    /// Read the table of addresses.
    QueryGid,
    /// Make a protection domain.
    AllocateDomain,
    /// Make a thread domain.
    AllocateThreadDomain,
    /// Prepare for forks.
    PrepareForFork,
    /// Map memory.
    MapMemory,
    /// Register memory.
    Register,
    /// Change a registration.
    Reregister,
    /// Make a completion channel.
    CreateChannel,
    /// Make a completion queue.
    CreateCompletionQueue,
    /// Take completions out.
    Poll,
    /// Ask for an event.
    Arm,
    /// Wait for an event.
    Wait,
    /// Set the moderation of events.
    Moderate,
    /// Change a completion queue's size.
    Resize,
    /// Make a shared receive queue.
    CreateSharedQueue,
    /// Change a shared receive queue.
    ModifySharedQueue,
    /// Make an address handle.
    CreateAddressHandle,
    /// Make a queue pair.
    CreateQueuePair,
    /// Choose the number of a queue pair's first packet.
    ChoosePacketNumber,
    /// Drive a queue pair to a state.
    Modify(crate::sys::QpState),
    /// Ask for a queue pair's state.
    QueryQueuePair,
    /// Read an asynchronous event.
    AsyncEvent,
}

impl fmt::Display for Operation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::ListDevices => "cannot list the devices",
            Self::QueryDevice => "cannot query the device",
            Self::QueryPort => "cannot query the port",
            Self::QueryGid => "cannot read the table of addresses",
            Self::AllocateDomain => "cannot make a protection domain",
            Self::AllocateThreadDomain => "cannot make a thread domain",
            Self::PrepareForFork => "cannot prepare for forks",
            Self::MapMemory => "cannot map memory",
            Self::Register => "cannot register memory",
            Self::Reregister => "cannot change the registration",
            Self::CreateChannel => "cannot make a completion channel",
            Self::CreateCompletionQueue => "cannot make a completion queue",
            Self::Poll => "cannot take completions out",
            Self::Arm => "cannot ask for an event",
            Self::Wait => "cannot wait for an event",
            Self::Moderate => "cannot set the moderation of events",
            Self::Resize => "cannot change the completion queue's size",
            Self::CreateSharedQueue => "cannot make a shared receive queue",
            Self::ModifySharedQueue => "cannot change the shared receive queue",
            Self::CreateAddressHandle => "cannot make an address handle",
            Self::CreateQueuePair => "cannot make a queue pair",
            Self::ChoosePacketNumber => "cannot choose the number of the first packet",
            Self::Modify(state) => return write!(to, "cannot drive the queue pair to {state:?}"),
            Self::QueryQueuePair => "cannot query the queue pair",
            Self::AsyncEvent => "cannot read an asynchronous event",
        };
        to.write_str(text)
    }
}

/// A device's name: at most 63 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceName {
    bytes: [u8; 63],
    length: u8,
}

impl DeviceName {
    pub(crate) fn new(name: &str) -> Self {
        let mut end = name.len().min(63);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; 63];
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        Self { bytes, length: u8::try_from(end).unwrap_or(0) }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or("")
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), to)
    }
}
