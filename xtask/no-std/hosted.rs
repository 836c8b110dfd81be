//! What a program without std takes from the C library: the way in, the way out, and an allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int, c_void};
use core::panic::PanicInfo;

#[link(name = "c")]
unsafe extern "C" {
    fn abort() -> !;
    fn aligned_alloc(align: usize, len: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    crate::main();
    0
}

/// The compiled core names it, though nothing here unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: ends the program.
    unsafe { abort() }
}

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: as malloc's.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the alignment is a power of two.
        unsafe { aligned_alloc(layout.align(), layout.size().next_multiple_of(layout.align())).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: it came from `alloc`.
        unsafe { free(memory.cast()) }
    }
}
