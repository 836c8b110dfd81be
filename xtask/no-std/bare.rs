//! What a program without a C library brings along itself: the way in, the way out, and moving bytes.

use core::arch::{asm, global_asm};
use core::panic::PanicInfo;

#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start:", "xor ebp, ebp", "call {start}", "ud2", start = sym start);
#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "bl {start}", "brk #0", start = sym start);

extern "C" fn start() -> ! {
    crate::main();
    exit(0)
}

/// The compiled core names it, though nothing here unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}

fn exit(status: u64) -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: exit_group ends the program.
    unsafe {
        asm!("syscall", in("rax") 231, in("rdi") status, options(noreturn))
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: exit_group ends the program.
    unsafe {
        asm!("svc #0", in("x8") 94, in("x0") status, options(noreturn))
    }
}

/// # Safety
///
/// As in C; the same holds for the others.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for index in 0..len {
        // SAFETY: the caller's promise.
        unsafe { to.add(index).write(from.add(index).read()) }
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for step in 0..len {
        let index = if to.cast_const() < from { step } else { len - 1 - step };
        // SAFETY: the caller's promise.
        unsafe { to.add(index).write(from.add(index).read()) }
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    for index in 0..len {
        // SAFETY: the caller's promise.
        unsafe { to.add(index).write(byte as u8) }
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, len: usize) -> i32 {
    for index in 0..len {
        // SAFETY: the caller's promise.
        let (left, right) = unsafe { (one.add(index).read(), other.add(index).read()) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, len: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(one, other, len) }
}
