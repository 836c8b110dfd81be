//! Copies of many bytes by the processor's own wide instructions.
//!
//! To the compiler they are opaque, so a peer that writes the bytes meanwhile spoils them and nothing else. To the
//! processor they are loads and stores in the order of the program: a later store that publishes the bytes comes after
//! them.
//!
//! # Safety
//!
//! A [`copy`] goes between two ranges whose lengths the caller has checked.

/// Bytes that one move copies. As long as there are four, a step makes four.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const BLOCK: usize = 16;

/// Bytes from which the string instruction is faster than a loop of blocks; it takes some 40 cycles to begin.
#[cfg(target_arch = "x86_64")]
const LONG: usize = if cfg!(target_feature = "sse2") { 3072 } else { 512 };

/// How many of the first bytes [`copy`] takes, a multiple of 8; the others go by words.
#[inline(always)]
pub(super) fn wide_part(bytes: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if bytes >= LONG {
        return bytes / 8 * 8;
    }
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return bytes / BLOCK * BLOCK;
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    0
}

/// Copies a [`wide_part`].
///
/// # Safety
///
/// Both ranges are valid and initialised, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= LONG {
        // SAFETY: the caller's promise; the direction flag is clear wherever Rust code runs.
        unsafe {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") bytes => _,
                inout("rdi") to => _,
                inout("rsi") from => _,
                options(nostack, preserves_flags),
            );
        }
        return;
    }
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if bytes >= BLOCK {
        // SAFETY: the caller's promise; the bytes are whole blocks, and one at least.
        unsafe {
            core::arch::asm!(
                "sub {left}, 64",
                "jb 3f",
                "2:",
                "movups {a}, [{from}]",
                "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + 32]",
                "movups {d}, [{from} + 48]",
                "movups [{to}], {a}",
                "movups [{to} + 16], {b}",
                "movups [{to} + 32], {c}",
                "movups [{to} + 48], {d}",
                "add {from}, 64",
                "add {to}, 64",
                "sub {left}, 64",
                "jnb 2b",
                "3:",
                "add {left}, 64",
                "jz 5f",
                "4:",
                "movups {a}, [{from}]",
                "movups [{to}], {a}",
                "add {from}, 16",
                "add {to}, 16",
                "sub {left}, 16",
                "jnz 4b",
                "5:",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                left = inout(reg) bytes => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (to, from, bytes);
}
