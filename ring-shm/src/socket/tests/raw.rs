//! What peers do that do not keep to the rules, and what a kernel does to a process.
//!
//! # Safety
//!
//! The structures that describe a message point to buffers that outlive the call.
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation)]

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::Descriptor;

/// Sends one byte, with as many copies of a descriptor as asked for.
pub(super) fn send_copies(socket: &Descriptor, descriptor: &Descriptor, copies: usize) {
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = [0_u64; 256];
    let bytes = (copies * size_of::<c_int>()) as u32;
    // SAFETY: zeroes are null pointers and lengths of nothing.
    let mut message = unsafe { core::mem::zeroed::<libc::msghdr>() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: the call computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as _;
    // SAFETY: the message has room for a header.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: the header lies in the room, is aligned, and zeroes are a valid one.
    let header = unsafe { &mut *header };
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: the call computes a length.
    header.cmsg_len = unsafe { libc::CMSG_LEN(bytes) } as _;
    // SAFETY: the header is that of the message.
    let numbers = unsafe { libc::CMSG_DATA(header) }.cast::<c_int>();
    for index in 0..copies {
        // SAFETY: the room is large enough.
        let number = unsafe { numbers.add(index) };
        // SAFETY: the number lies in the room.
        unsafe { number.write_unaligned(descriptor.raw()) };
    }
    // SAFETY: the message describes buffers that live.
    assert_eq!(unsafe { libc::sendmsg(socket.raw(), &raw const message, 0) }, 1);
}

/// Has the kernel put a control message about the sender to each message that a socket receives.
pub(super) fn ask_for_credentials(socket: &Descriptor) {
    let one: c_int = 1;
    let value = (&raw const one).cast::<c_void>();
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PASSCRED);
    // SAFETY: the value is readable.
    let result = unsafe { libc::setsockopt(socket.raw(), level, option, value, size_of::<c_int>() as u32) };
    assert_eq!(result, 0);
}

/// In a forked child: drops the value, then ends.
pub(super) fn drop_in_a_forked_child<T>(value: T) -> T {
    // SAFETY: the child runs the drop of a value that makes system calls and frees memory, and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        drop(value);
        // SAFETY: the call has no conditions.
        unsafe { libc::_exit(0) }
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the status writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    value
}

/// From now on a signal interrupts calls of its thread, and does nothing else.
pub(super) fn let_signals_interrupt() {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: zeroes are a valid action, without SA_RESTART.
    let mut action = unsafe { core::mem::zeroed::<libc::sigaction>() };
    action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
    // SAFETY: the handler does nothing.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) }, 0);
}

pub(super) fn interrupt(thread: libc::pthread_t) {
    // SAFETY: the caller has not joined the thread, and the signal has a handler.
    unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
}
