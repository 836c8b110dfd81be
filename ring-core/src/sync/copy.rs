//! Copies of many bytes by the processor's own wide instructions.
//!
//! To the compiler they are opaque, so a peer that writes the bytes meanwhile spoils them and nothing else. To the
//! processor moves are loads and stores in the order of the program, and the stores of one string instruction, in
//! whatever order, all come before a later store: one that publishes the bytes comes after them.
//!
//! # Safety
//!
//! A [`copy`] goes between two ranges whose lengths the caller has checked.

/// Fewest bytes that [`copy`] takes; fewer go by words.
pub(super) const FEWEST: usize =
    if cfg!(all(target_arch = "x86_64", target_pointer_width = "64", target_feature = "sse2")) {
        16
    } else if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
        512
    } else {
        usize::MAX
    };

/// Bytes from which the string instruction is faster than a loop of moves; it takes some 40 cycles to begin.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
const LONG: usize = if cfg!(target_feature = "sse2") { 3072 } else { FEWEST };

/// Copies [`FEWEST`] bytes or more.
///
/// # Safety
///
/// Both ranges are valid and initialised, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    debug_assert!(bytes >= FEWEST, "{bytes} bytes go by words");
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
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
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_feature = "sse2"))]
    // SAFETY: the caller's promise.
    unsafe {
        by_moves(to, from, bytes);
    }
    #[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
    let _ = (to, from);
}

/// Copies by moves of 16 bytes. The last ones end where the range ends and copy some bytes again, so none are left over
/// and no length takes a loop below 64.
///
/// # Safety
///
/// As [`copy`].
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_feature = "sse2"))]
#[inline(always)]
unsafe fn by_moves(to: *mut u8, from: *const u8, bytes: usize) {
    match bytes {
        // SAFETY: the caller's promise; two moves from the start and from the end cover 16 to 32 bytes.
        ..=32 => unsafe {
            core::arch::asm!(
                "movups {a}, [{from}]",
                "movups {b}, [{from} + {bytes} - 16]",
                "movups [{to}], {a}",
                "movups [{to} + {bytes} - 16], {b}",
                from = in(reg) from,
                to = in(reg) to,
                bytes = in(reg) bytes,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        },
        // SAFETY: the caller's promise; two moves from the start and two to the end cover 32 to 64 bytes.
        33..=64 => unsafe {
            core::arch::asm!(
                "movups {a}, [{from}]",
                "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + {bytes} - 32]",
                "movups {d}, [{from} + {bytes} - 16]",
                "movups [{to}], {a}",
                "movups [{to} + 16], {b}",
                "movups [{to} + {bytes} - 32], {c}",
                "movups [{to} + {bytes} - 16], {d}",
                from = in(reg) from,
                to = in(reg) to,
                bytes = in(reg) bytes,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        },
        // SAFETY: the caller's promise; whole steps of 64 while more than 64 are left, then one to the end.
        _ => unsafe {
            core::arch::asm!(
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
                "cmp {left}, 64",
                "ja 2b",
                "movups {a}, [{from} + {left} - 64]",
                "movups {b}, [{from} + {left} - 48]",
                "movups {c}, [{from} + {left} - 32]",
                "movups {d}, [{from} + {left} - 16]",
                "movups [{to} + {left} - 64], {a}",
                "movups [{to} + {left} - 48], {b}",
                "movups [{to} + {left} - 32], {c}",
                "movups [{to} + {left} - 16], {d}",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                left = inout(reg) bytes => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack),
            );
        },
    }
}
