//! What a network driver tells through ioctl(SIOCETHTOOL), as texts with a line `name: value` each.
//!
//! # Safety
//!
//! The unsafe block passes a request that names a buffer of this file to the kernel, which reads the request and
//! writes the answer of the command that stands at the start of the buffer. Invariant A: the buffer is larger than any
//! answer to its command, whatever the driver counts at that moment, and lives until the call has returned.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use core::ffi::{c_char, c_int, c_void};
use core::fmt::Write as _;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use ring_tune::{Errno, Unread};

/// linux/sockios.h and linux/ethtool.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GET_COALESCE: u32 = 0x0e;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_INFO: u32 = 0x37;
const SET_OF_STATISTICS: u32 = 1;
const STRING_BYTES: usize = 32;

/// The words of `struct ethtool_coalesce` behind its command, by the names that ethtool(8) sets them with.
const COALESCE: [&str; 22] = [
    "rx-usecs",
    "rx-frames",
    "rx-usecs-irq",
    "rx-frames-irq",
    "tx-usecs",
    "tx-frames",
    "tx-usecs-irq",
    "tx-frames-irq",
    "stats-block-usecs",
    "adaptive-rx",
    "adaptive-tx",
    "pkt-rate-low",
    "rx-usecs-low",
    "rx-frames-low",
    "tx-usecs-low",
    "tx-frames-low",
    "pkt-rate-high",
    "rx-usecs-high",
    "rx-frames-high",
    "tx-usecs-high",
    "tx-frames-high",
    "sample-interval",
];

/// More than any driver counts: the largest count some thousand, one dozen for each queue.
const MOST_STATISTICS: usize = 1 << 16;

/// `struct ifreq` for a pointer; the kernel's has 40 bytes.
#[repr(C)]
struct Request {
    name: [c_char; libc::IFNAMSIZ],
    buffer: *mut c_void,
    rest: [u8; 16],
}

/// How a network device gathers interrupts, as `ethtool -c` shows it.
pub(crate) fn coalesce(netdev: &str) -> Result<String, Unread> {
    let mut buffer = Buffer::new(GET_COALESCE, COALESCE.len() * 4);
    buffer.ask(netdev, "coalesce")?;
    let mut text = String::new();
    for (place, name) in COALESCE.iter().enumerate() {
        let _ = writeln!(text, "{name}: {}", buffer.word(4 + place * 4));
    }
    Ok(text)
}

/// What a network driver counts, as `ethtool -S` shows it.
pub(crate) fn statistics(netdev: &str) -> Result<String, Unread> {
    let mut info = Buffer::new(GET_SET_INFO, 64);
    info.set(8, &(1_u64 << SET_OF_STATISTICS).to_ne_bytes());
    info.ask(netdev, "statistics")?;
    // The kernel clears the bits of the sets that a driver does not have.
    let count = if info.double_word(8) == 0 { 0 } else { info.word(16) };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 {
        return Err(Unread::Absent { path: path(netdev, "statistics") });
    }
    // Twice as many fit, for queues that are made between the calls.
    if count > MOST_STATISTICS / 2 {
        return Err(Unread::strange(&path(netdev, "statistics"), "has more lines than any driver counts"));
    }
    let mut names = Buffer::new(GET_STRINGS, MOST_STATISTICS * STRING_BYTES);
    names.set(4, &SET_OF_STATISTICS.to_ne_bytes());
    names.ask(netdev, "statistics")?;
    let mut values = Buffer::new(GET_STATISTICS, MOST_STATISTICS * 8);
    values.ask(netdev, "statistics")?;
    let mut text = String::new();
    for place in 0..count {
        let name = names.string(12 + place * STRING_BYTES);
        let _ = writeln!(text, "{name}: {}", values.double_word(8 + place * 8));
    }
    Ok(text)
}

/// Where a saved tree has the answer.
fn path(netdev: &str, what: &str) -> String {
    format!("ethtool/{netdev}/{what}")
}

/// A command and its answer.
struct Buffer(Vec<u8>);

impl Buffer {
    /// `bytes`: as long as the answer can be, behind the head of 16 bytes at most.
    fn new(command: u32, bytes: usize) -> Self {
        let mut buffer = Self(vec![0; 16 + bytes]);
        buffer.set(0, &command.to_ne_bytes());
        buffer
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        self.0[at..][..value.len()].copy_from_slice(value);
    }

    fn ask(&mut self, netdev: &str, what: &str) -> Result<(), Unread> {
        let path = || path(netdev, what);
        // Any socket will do: the name says which device is meant.
        let socket = UnixDatagram::unbound().map_err(|error| unread(path(), &error))?;
        let mut request =
            Request { name: [0; libc::IFNAMSIZ], buffer: self.0.as_mut_ptr().cast(), rest: [0; 16] };
        if netdev.len() >= libc::IFNAMSIZ {
            return Err(Unread::Absent { path: path() });
        }
        for (place, byte) in netdev.bytes().enumerate() {
            request.name[place] = c_char::from_ne_bytes([byte]);
        }
        // SAFETY: the request lives until the call returns, and so does the buffer, which is large enough
        // (invariant A).
        let status: c_int = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        if status < 0 { Err(unread(path(), &io::Error::last_os_error())) } else { Ok(()) }
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn double_word(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// Up to the first zero byte; line ends would make two lines of one.
    fn string(&self, at: usize) -> String {
        let bytes = self.0.get(at..).unwrap_or_default().iter().take(STRING_BYTES);
        let bytes: Vec<u8> = bytes.copied().take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).trim().replace(char::is_control, " ")
    }
}

fn unread(path: String, error: &io::Error) -> Unread {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENODEV | libc::ENOTTY) => Unread::Absent { path },
        Some(libc::EACCES | libc::EPERM) => Unread::Denied { path },
        errno => Unread::Strange { path, why: format!("cannot be asked: {}", Errno(errno.unwrap_or(0))) },
    }
}
