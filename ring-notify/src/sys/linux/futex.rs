//! Sleeping on the lower half of a word that processes share.
//!
//! # Safety
//!
//! The words are references, so they are mapped for the length of each call. Structures are as the kernel's headers
//! have them.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_long};
use core::ptr;

use ring_core::sync::AtomicU64;

use super::{errno, timespec};
use crate::sys::{Deadline, WAITV_MAX, Woken};

/// From linux/futex.h: any sleeper is meant, whatever it waits for.
const MATCH_ANY: u32 = u32::MAX;
/// A word of 32 bits.
const SIZE_U32: u32 = 2;

/// The half that holds the epoch. Not a futex of this process alone: other processes map the word elsewhere.
fn epoch_address(word: &AtomicU64) -> *mut u32 {
    let halves = word.as_ptr().cast::<u32>();
    if cfg!(target_endian = "big") { halves.wrapping_add(1) } else { halves }
}

/// Sleeps while the epoch is this one.
pub(crate) fn futex_wait(word: &AtomicU64, epoch: u32, deadline: Deadline) -> Woken {
    let time = deadline.map(timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // The deadline is a point on the monotonic clock: no flag asks for another one.
    // SAFETY: word and time outlive the call, and the kernel writes neither.
    let result: c_long = unsafe {
        libc::syscall(
            libc::SYS_futex,
            epoch_address(word),
            libc::FUTEX_WAIT_BITSET,
            epoch,
            time,
            ptr::null::<u32>(),
            MATCH_ANY,
        )
    };
    outcome(result)
}

/// Wakes all who sleep on the word, in whatever process.
pub(crate) fn futex_wake(word: &AtomicU64) {
    // SAFETY: the word outlives the call, and the kernel does not access it.
    unsafe { libc::syscall(libc::SYS_futex, epoch_address(word), libc::FUTEX_WAKE, c_int::MAX) };
}

/// As linux/futex.h has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Waiter {
    expected: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// Sleeps while each of the words has its epoch. Since Linux 5.16.
pub(crate) fn futex_wait_any<'a>(
    words: impl Iterator<Item = (&'a AtomicU64, u32)>,
    deadline: Deadline,
) -> Woken {
    const NO_FLAGS: u32 = 0;
    let mut waiters = [Waiter { expected: 0, address: 0, flags: SIZE_U32, reserved: 0 }; WAITV_MAX];
    let mut count: u32 = 0;
    for (waiter, (word, epoch)) in waiters.iter_mut().zip(words) {
        waiter.expected = epoch.into();
        waiter.address = epoch_address(word).addr() as u64;
        count += 1;
    }
    let time = deadline.map(timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: words, table and time outlive the call, and the kernel writes none of them.
    let result: c_long = unsafe {
        libc::syscall(libc::SYS_futex_waitv, waiters.as_ptr(), count, NO_FLAGS, time, libc::CLOCK_MONOTONIC)
    };
    outcome(result.min(0))
}

fn outcome(result: c_long) -> Woken {
    match result {
        0 => Woken::Up,
        _ => match errno() {
            libc::EAGAIN | libc::EINTR => Woken::Up,
            libc::ETIMEDOUT => Woken::TimedOut,
            _ => Woken::Refused,
        },
    }
}
