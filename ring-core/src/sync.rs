//! The one place where a build for loom differs from a production build.
//!
//! Atomics, fences, the pause, the payload of a slot and the words of a byte ring come from here. What is public is for
//! the crates that are built on this one, and no part of the API.
//!
//! # Safety
//!
//! `place` is called with memory of a region that the callers' `Memory` has checked.
#![allow(unsafe_code)]

#[cfg(loom)]
mod atomic;
pub(crate) mod bytes;
#[cfg(not(loom))]
mod copy;
#[cfg(loom)]
#[cfg_attr(not(test), allow(dead_code, reason = "only models kill"))]
pub(crate) mod death;
#[cfg(loom)]
mod mutant;
mod payload;
pub mod testing;
mod waiting;

use core::ptr::NonNull;

#[cfg(loom)]
pub use atomic::{AtomicU64, fence, light_fence};
#[cfg(not(loom))]
pub use core::hint::spin_loop;
#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::sync::atomic::Ordering;
pub(crate) use payload::{Access, Racing, Tracker, read, read_racing, write, write_racing};
pub use waiting::{Closable, WaitWords, Waitable};

/// The side of a fence that the other side pays for, by a system call that has every core pass one that runs this
/// process: it keeps the compiler from moving accesses across, and costs nothing.
#[cfg(not(loom))]
#[inline(always)]
pub fn light_fence() {
    // Which edge it is an end of stands where it is called.
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// Starts to bring the line at `address` near, to be read. A hint: it changes nothing, and any address will do.
#[inline(always)]
pub(crate) fn prefetch_read<T>(address: NonNull<T>) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe {
        core::arch::asm!("prefetcht0 [{}]", in(reg) address.as_ptr(), options(nostack, readonly, preserves_flags));
    }
    #[cfg(all(target_arch = "aarch64", not(loom)))]
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address.as_ptr(), options(nostack, readonly, preserves_flags));
    }
    #[cfg(any(loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

/// As [`prefetch_read`], to be written: other cores lose their copies.
#[inline(always)]
pub(crate) fn prefetch_write<T>(address: NonNull<T>) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a prefetch never faults and changes nothing; processors without this one take it for a no-op.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) address.as_ptr(), options(nostack, readonly, preserves_flags));
    }
    #[cfg(all(target_arch = "aarch64", not(loom)))]
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) address.as_ptr(), options(nostack, readonly, preserves_flags));
    }
    #[cfg(any(loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

/// A reference to shared words at `at`.
///
/// In production any initialised bytes will do; loom's atomics must be made first, which `new` does.
///
/// # Safety
///
/// `at` is aligned, its bytes are initialised and valid for `'a`, and `T` is made of atomics, with one in front.
#[cfg(not(loom))]
pub(crate) unsafe fn place<'a, T>(at: NonNull<T>, _new: impl FnOnce() -> T) -> &'a T {
    // SAFETY: the caller's promise is that of `as_ref`, and atomics may be shared.
    unsafe { at.as_ref() }
}

#[cfg(loom)]
pub(crate) unsafe fn place<'a, T>(at: NonNull<T>, new: impl FnOnce() -> T) -> &'a T {
    // SAFETY: the caller's promise: valid, aligned, and an `AtomicU64` in front.
    if unsafe { at.cast::<u64>().read() } == 0 {
        // SAFETY: the caller's promise: valid and aligned.
        unsafe { at.write(new()) };
    }
    // SAFETY: written just now or earlier.
    unsafe { at.as_ref() }
}
