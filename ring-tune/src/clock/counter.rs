//! The processor's own counter.
//!
//! # Safety
//!
//! The unsafe blocks read registers that every program may read on the architecture they are compiled for;
//! [`source`] finds out whether the optional `rdtscp` is there. The assembly does not say `nomem`, so that the
//! compiler moves no access to memory across a stamp.
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{announced_hz, source, start, stop};
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use absent::{announced_hz, source, start, stop};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{announced_hz, source, start, stop};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::arch::{
        asm,
        x86_64::{__cpuid, CpuidResult},
    };

    use crate::clock::Source;

    const LARGEST_EXTENDED_LEAF: u32 = 0x8000_0000;
    const EXTENDED_FEATURES: u32 = 0x8000_0001;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const RDTSCP: u32 = 1 << 27;
    const INVARIANT_TSC: u32 = 1 << 8;

    pub(in crate::clock) fn source() -> Option<Source> {
        let usable = cpuid(LARGEST_EXTENDED_LEAF).eax >= POWER_MANAGEMENT
            && cpuid(EXTENDED_FEATURES).edx & RDTSCP != 0
            && cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0;
        usable.then_some(Source::Tsc)
    }

    #[allow(unused_unsafe, reason = "the intrinsic is safe from Rust 1.94 on")]
    fn cpuid(leaf: u32) -> CpuidResult {
        // SAFETY: every x86-64 processor has the instruction; it touches no memory.
        unsafe { __cpuid(leaf) }
    }

    /// The TSC does not say its rate in a way that virtual machines keep.
    pub(in crate::clock) fn announced_hz() -> Option<f64> {
        None
    }

    #[inline(always)]
    pub(in crate::clock) fn start() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: reads a counter; clobbers what it names.
        unsafe {
            asm!("lfence", "rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags))
        };
        high << 32 | low
    }

    #[inline(always)]
    pub(in crate::clock) fn stop() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: reads a counter that `source` found; clobbers what it names.
        unsafe {
            asm!("rdtscp", "lfence", out("rax") low, out("rdx") high, out("rcx") _,
                options(nostack, preserves_flags));
        };
        high << 32 | low
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use core::arch::asm;

    use crate::clock::Source;

    pub(in crate::clock) fn source() -> Option<Source> {
        Some(Source::Cntvct)
    }

    /// The firmware writes the rate of the counter here.
    pub(in crate::clock) fn announced_hz() -> Option<f64> {
        let hz: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
        (hz != 0).then_some(hz as f64)
    }

    #[inline(always)]
    pub(in crate::clock) fn start() -> u64 {
        let ticks: u64;
        // SAFETY: reads a counter.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    }

    #[inline(always)]
    pub(in crate::clock) fn stop() -> u64 {
        let ticks: u64;
        // SAFETY: reads a counter.
        unsafe {
            asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags))
        };
        ticks
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod absent {
    use crate::clock::Source;

    pub(in crate::clock) fn source() -> Option<Source> {
        None
    }

    pub(in crate::clock) fn announced_hz() -> Option<f64> {
        None
    }

    /// Never reached: no clock has a counter as its source here.
    pub(in crate::clock) fn start() -> u64 {
        0
    }

    pub(in crate::clock) fn stop() -> u64 {
        0
    }
}
