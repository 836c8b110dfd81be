//! Counts what each thread takes from the heap.
//!
//! # Safety
//!
//! The system's allocator does everything.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
    static IS_DEVICE: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

// SAFETY: as the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !IS_DEVICE.get() {
            TAKEN.set(TAKEN.get() + 1);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// How often this thread has taken memory from the heap, the scripted device apart.
pub(crate) fn taken() -> u64 {
    TAKEN.get()
}

/// What the device does, which does not count.
pub(crate) fn of_the_device<R>(action: impl FnOnce() -> R) -> R {
    let before = IS_DEVICE.replace(true);
    let result = action();
    IS_DEVICE.set(before);
    result
}
