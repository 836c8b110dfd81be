//! How much memory the machine can still give.

use core::ffi::CStr;

use crate::lines::Lines;
use crate::short_path::ShortPath;
use crate::sys;

const TABLE: &CStr = c"/proc/meminfo";

/// Bytes that can be used before the kernel has to kill somebody, as it estimates; all that there are if it
/// does not say. Limits of a control group do not count.
pub(crate) fn available_bytes() -> Option<u64> {
    estimate().or_else(|| sys::memory_bytes().ok())
}

fn estimate() -> Option<u64> {
    let table = sys::open_to_read(TABLE).ok()?;
    sum(Lines::new(|rest| sys::read(&table, rest).unwrap_or(0)))
}

/// Bytes of one NUMA node that can be used before the kernel has to kill somebody, roughly: what is free, and what it
/// can read again from files.
pub(crate) fn available_on_node_bytes(node: u32) -> Option<u64> {
    let path = ShortPath::new(format_args!("/sys/devices/system/node/node{node}/meminfo"))?;
    let table = sys::open_to_read(path.as_c_str()).ok()?;
    sum_of_node(Lines::new(|rest| sys::read(&table, rest).unwrap_or(0)))
}

/// Of lines like "Node 0 MemFree: 1 kB".
fn sum_of_node<R: FnMut(&mut [u8]) -> usize>(mut lines: Lines<R>) -> Option<u64> {
    let fields = ["MemFree:", "Active(file):", "Inactive(file):", "SReclaimable:"];
    let mut found_kib = [None; 4];
    while let Some(line) = lines.next() {
        let line = core::str::from_utf8(line).unwrap_or_default();
        let line = line.splitn(3, ' ').nth(2).unwrap_or_default();
        for (found_kib, field) in found_kib.iter_mut().zip(fields) {
            *found_kib = kib(line, field).or(*found_kib);
        }
    }
    found_kib.into_iter().try_fold(0_u64, |sum, kib| sum.checked_add(kib?))?.checked_mul(1024)
}

/// Memory without swapping, and room to swap out to.
fn sum<R: FnMut(&mut [u8]) -> usize>(mut lines: Lines<R>) -> Option<u64> {
    let (mut available_kib, mut swap_kib) = (None, 0);
    while let Some(line) = lines.next() {
        let line = core::str::from_utf8(line).unwrap_or_default();
        available_kib = kib(line, "MemAvailable:").or(available_kib);
        swap_kib = kib(line, "SwapFree:").unwrap_or(swap_kib);
    }
    available_kib?.checked_add(swap_kib)?.checked_mul(1024)
}

fn kib(line: &str, field: &str) -> Option<u64> {
    line.strip_prefix(field)?.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests;
