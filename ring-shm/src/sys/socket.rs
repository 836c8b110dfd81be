//! Sockets in the file system, and descriptors that go over them.
//!
//! # Safety
//!
//! What [`super`] rests on, and of messages: the structures that describe one point to buffers that outlive the
//! call, and the room for control messages is aligned for their headers. A number in an SCM_RIGHTS message that
//! was received is open and belongs to this process, to nobody else in it.
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation)] // All structures and messages here are small.

use core::ffi::{CStr, c_char, c_int, c_uint};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;

use super::{call, errno, timespec};
use crate::{Descriptor, Errno};

/// Descriptors that fit one message.
pub(crate) const MAX_DESCRIPTORS: usize = 16;

/// Connections that wait to be accepted.
const BACKLOG: c_int = 128;

const NUMBER_BYTES: usize = size_of::<c_int>();

/// A path, as the kernel takes it for a socket.
#[derive(Clone, Copy)]
pub(crate) struct Address(libc::sockaddr_un);

impl Address {
    /// None if it is too long.
    pub(crate) fn new(path: &CStr) -> Option<Self> {
        let mut address =
            libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
        let bytes = path.to_bytes_with_nul();
        for (place, &byte) in address.sun_path.get_mut(..bytes.len())?.iter_mut().zip(bytes) {
            *place = byte as c_char;
        }
        Some(Self(address))
    }

    /// The kernel reads up to the first zero byte.
    const BYTES: libc::socklen_t = size_of::<libc::sockaddr_un>() as libc::socklen_t;

    fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.0).cast()
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.sun_path.map(|byte| byte as u8);
        fmt::Debug::fmt(CStr::from_bytes_until_nul(&path).unwrap_or_default(), formatter)
    }
}

/// The process at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// 0 where this process cannot see it, such as from another process namespace.
    pub(crate) process: i32,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// What to wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A message, a client, or the end of the connection.
    Input,
    /// Room to send, or the end of the connection.
    Output,
}

/// A socket that keeps messages apart, and does not block.
pub(crate) fn open() -> Result<Descriptor, Errno> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call has no conditions.
    call(|| unsafe { libc::socket(libc::AF_UNIX, kind, 0) }).map(Descriptor::owning)
}

/// Makes a file for the socket, which must not exist yet, with the socket's own mode less the umask.
pub(crate) fn bind(socket: &Descriptor, address: &Address) -> Result<(), Errno> {
    // SAFETY: the socket is open and the address readable.
    call(|| unsafe { libc::bind(socket.raw(), address.as_ptr(), Address::BYTES) }).map(drop)
}

pub(crate) fn listen(socket: &Descriptor) -> Result<(), Errno> {
    // SAFETY: the socket is open.
    call(|| unsafe { libc::listen(socket.raw(), BACKLOG) }).map(drop)
}

pub(crate) fn accept(listener: &Descriptor) -> Result<Descriptor, Errno> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the socket is open, and no address is asked for.
    call(|| unsafe { libc::accept4(listener.raw(), ptr::null_mut(), ptr::null_mut(), flags) })
        .map(Descriptor::owning)
}

pub(crate) fn connect(socket: &Descriptor, address: &Address) -> Result<(), Errno> {
    // SAFETY: the socket is open and the address readable.
    call(|| unsafe { libc::connect(socket.raw(), address.as_ptr(), Address::BYTES) }).map(drop)
}

/// Whether a socket that lives is bound to the file, listening or not. False for files that are no sockets.
///
/// Nobody notices: a socket of another kind may not connect, but the kernel says so only where there is one.
pub(crate) fn is_bound(address: &Address) -> Result<bool, Errno> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call has no conditions.
    let probe = call(|| unsafe { libc::socket(libc::AF_UNIX, kind, 0) }).map(Descriptor::owning)?;
    match connect(&probe, address) {
        Ok(()) | Err(Errno::PROTOTYPE) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn peer(socket: &Descriptor) -> Result<Credentials, Errno> {
    let mut found = MaybeUninit::<libc::ucred>::zeroed();
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the socket is open, and the structure writable for as many bytes as it has.
    call(|| unsafe {
        libc::getsockopt(socket.raw(), level, option, found.as_mut_ptr().cast(), &raw mut bytes)
    })?;
    // SAFETY: a `ucred` is plain integers: zeroes are valid, and the kernel wrote the rest.
    let found = unsafe { found.assume_init() };
    Ok(Credentials { process: found.pid, user: found.uid, group: found.gid })
}

/// `AGAIN` as long as there is neither a message nor the end of the connection.
pub(crate) fn has_input(socket: &Descriptor) -> Result<(), Errno> {
    let mut wanted = libc::pollfd { fd: socket.raw(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the structure is writable, and there is one.
    match call(|| unsafe { libc::poll(&raw mut wanted, 1, 0) })? {
        0 => Err(Errno::AGAIN),
        _ => Ok(()),
    }
}

/// Waits for an event, less if a signal comes: the caller looks at the clock.
pub(crate) fn wait(socket: &Descriptor, event: Event, timeout: Duration) -> Result<(), Errno> {
    let events = match event {
        Event::Input => libc::POLLIN,
        Event::Output => libc::POLLOUT,
    };
    let mut wanted = libc::pollfd { fd: socket.raw(), events, revents: 0 };
    let timeout = timespec(timeout);
    // SAFETY: the one entry is writable, the time readable, and the mask of signals stays as it is.
    match unsafe { libc::ppoll(&raw mut wanted, 1, &raw const timeout, ptr::null()) } {
        -1 if errno() != Errno::INTR => Err(errno()),
        _ => Ok(()),
    }
}

/// A directory that can be locked.
pub(crate) fn open_directory_to_lock(path: &CStr) -> Result<Descriptor, Errno> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path ends in a zero byte.
    call(|| unsafe { libc::open(path.as_ptr(), flags) }).map(Descriptor::owning)
}

/// Locks the open file, against all others that lock the same file. Does not wait.
pub(crate) fn try_lock(descriptor: &Descriptor) -> Result<(), Errno> {
    // SAFETY: the descriptor is open.
    call(|| unsafe { libc::flock(descriptor.raw(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

/// Ends a lock, whoever else has a copy of the descriptor.
pub(crate) fn unlock(descriptor: &Descriptor) {
    // SAFETY: the descriptor is open.
    let _ = unsafe { libc::flock(descriptor.raw(), libc::LOCK_UN) };
}

/// Sets the mode of a file in a directory, not of what it may link to.
pub(crate) fn set_mode_in(directory: &Descriptor, name: &CStr, mode: u32) -> Result<(), Errno> {
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the directory is open and the name ends in a zero byte.
    call(|| unsafe { libc::fchmodat(directory.raw(), name.as_ptr(), mode, flags) }).map(drop)
}

/// Sends a message with copies of descriptors, all or nothing. Does not wait.
///
/// # Panics
///
/// If there are more than [`MAX_DESCRIPTORS`].
pub(crate) fn send(socket: &Descriptor, bytes: &[u8], descriptors: &[&Descriptor]) -> Result<(), Errno> {
    let mut numbers = [0; MAX_DESCRIPTORS];
    for (number, descriptor) in numbers[..descriptors.len()].iter_mut().zip(descriptors) {
        *number = descriptor.raw();
    }
    // The kernel only reads what is sent.
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control::new();
    let mut message = describe(&mut part);
    if !descriptors.is_empty() {
        control.hold(&mut message, &numbers[..descriptors.len()]);
    }
    // SAFETY: the socket is open, and the message describes buffers that are readable.
    call_for_bytes(|| unsafe { libc::sendmsg(socket.raw(), &raw const message, libc::MSG_NOSIGNAL) })
        .map(drop)
}

/// What one call received.
#[derive(Debug)]
pub(crate) struct Received {
    /// Bytes of the message, as far as the buffer took them. 0 at the end of the connection as well.
    pub(crate) bytes: usize,
    /// Those that came along, without gaps.
    pub(crate) descriptors: [Option<Descriptor>; MAX_DESCRIPTORS],
    /// The message was longer than the buffer.
    pub(crate) is_cut: bool,
    /// There were more descriptors than fit, or than this process may have.
    pub(crate) is_control_cut: bool,
    /// There was a control message that is not about descriptors.
    pub(crate) is_foreign: bool,
}

/// Receives a message. Does not wait.
pub(crate) fn receive(socket: &Descriptor, buffer: &mut [u8]) -> Result<Received, Errno> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control::new();
    let mut message = describe(&mut part);
    control.lend(&mut message, CONTROL_BYTES);
    let message_ptr = &raw mut message;
    // SAFETY: the socket is open, and the message describes buffers that are writable.
    let bytes =
        call_for_bytes(|| unsafe { libc::recvmsg(socket.raw(), message_ptr, libc::MSG_CMSG_CLOEXEC) })?;
    // First of all each descriptor gets its owner.
    let (descriptors, is_crowded, is_foreign) = take_control(&message);
    Ok(Received {
        bytes,
        descriptors,
        is_cut: message.msg_flags & libc::MSG_TRUNC != 0,
        is_control_cut: is_crowded || message.msg_flags & libc::MSG_CTRUNC != 0,
        is_foreign,
    })
}

/// The descriptors in the control messages, whether there were more of them than fit, and whether there was
/// anything else.
fn take_control(message: &libc::msghdr) -> ([Option<Descriptor>; MAX_DESCRIPTORS], bool, bool) {
    let mut descriptors = [const { None }; MAX_DESCRIPTORS];
    let mut places = descriptors.iter_mut();
    let (mut is_crowded, mut is_foreign) = (false, false);
    // SAFETY: the kernel has set the length of the control messages that it wrote.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: the header lies in the control buffer, which is aligned for it.
        let header = unsafe { next.read() };
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: an SCM_RIGHTS message holds numbers behind its header.
            let numbers = unsafe { libc::CMSG_DATA(next) }.cast::<c_int>();
            for index in 0..(header.cmsg_len as usize).saturating_sub(EMPTY_BYTES) / NUMBER_BYTES {
                // SAFETY: the header says that the message has so many numbers.
                let number = unsafe { numbers.add(index) };
                // SAFETY: the kernel wrote the number; it need not be aligned.
                let descriptor = Descriptor::owning(unsafe { number.read_unaligned() });
                match places.next() {
                    Some(place) => *place = Some(descriptor),
                    None => is_crowded = true,
                }
            }
        } else {
            is_foreign = true;
        }
        // SAFETY: the header is one of this message.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    (descriptors, is_crowded, is_foreign)
}

/// A control message without contents.
// SAFETY: the call computes a length and has no conditions.
const EMPTY_BYTES: usize = unsafe { libc::CMSG_LEN(0) } as usize;

// SAFETY: the call computes a length and has no conditions.
const CONTROL_BYTES: usize = unsafe { libc::CMSG_SPACE((MAX_DESCRIPTORS * NUMBER_BYTES) as c_uint) } as usize;

/// Room for control messages, aligned for their headers.
#[repr(C)]
struct Control {
    aligned: [libc::cmsghdr; 0],
    bytes: [u8; CONTROL_BYTES],
}

impl Control {
    fn new() -> Self {
        Self { aligned: [], bytes: [0; CONTROL_BYTES] }
    }

    /// Lets a message use the first `bytes`. It must not be used once this value is gone.
    fn lend(&mut self, message: &mut libc::msghdr, bytes: usize) {
        message.msg_control = (&raw mut *self).cast();
        message.msg_controllen = bytes as _; // The field has another type with other C libraries.
    }

    /// Puts numbers of descriptors into an SCM_RIGHTS message, which fills the room at most.
    fn hold(&mut self, message: &mut libc::msghdr, numbers: &[c_int]) {
        let payload_bytes = size_of_val(numbers) as c_uint;
        // SAFETY: the call computes a length and has no conditions.
        let space_bytes = unsafe { libc::CMSG_SPACE(payload_bytes) } as usize;
        assert!(space_bytes <= CONTROL_BYTES, "the numbers fit");
        self.lend(message, space_bytes);
        // SAFETY: the message has room for a header and the numbers.
        let header = unsafe { libc::CMSG_FIRSTHDR(message) };
        // SAFETY: the header lies in `self`, is aligned, and zeroes are a valid one.
        let fields = unsafe { &mut *header };
        fields.cmsg_level = libc::SOL_SOCKET;
        fields.cmsg_type = libc::SCM_RIGHTS;
        // SAFETY: the call computes a length and has no conditions.
        fields.cmsg_len = unsafe { libc::CMSG_LEN(payload_bytes) } as _;
        // SAFETY: the header is that of the message.
        let data = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: behind the header is room for the numbers, and they lie elsewhere.
        unsafe { ptr::copy_nonoverlapping(numbers.as_ptr().cast(), data, size_of_val(numbers)) };
    }
}

/// A message of one part, without an address or control messages. It must not be used once the part is gone.
fn describe(part: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: zeroes are null pointers and lengths of nothing. Some C libraries have fields of their own.
    let mut message = unsafe { MaybeUninit::<libc::msghdr>::zeroed().assume_init() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message
}

/// Calls until no signal interrupts; a negative number is an error.
fn call_for_bytes(mut function: impl FnMut() -> libc::ssize_t) -> Result<usize, Errno> {
    loop {
        match usize::try_from(function()) {
            Ok(bytes) => return Ok(bytes),
            Err(_) if errno() == Errno::INTR => {}
            Err(_) => return Err(errno()),
        }
    }
}
