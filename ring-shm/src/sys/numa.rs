//! NUMA nodes: where memory is to come from, and where it lies.
//!
//! # Safety
//!
//! The kernel reads and writes arrays of plain integers whose length it is told, and reads nothing of the memory
//! that it is asked about.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_ulong, c_void};
use core::ptr::{self, NonNull};

use super::errno;
use crate::Errno;

/// More than any kernel has.
const NODES: usize = 1024;
const WORD_BITS: usize = c_ulong::BITS as usize;

/// Has new pages of a mapping come from one node. [`Errno::INVAL`] if the machine has no memory there, or this process
/// may not use it.
///
/// A tmpfs remembers it for the file, for whoever allocates later by whatever call. A hugetlbfs does not: there it
/// holds for what is allocated by touching this mapping.
pub(crate) fn bind(address: NonNull<u8>, bytes: usize, node: u32) -> Result<(), Errno> {
    let node = node as usize;
    let mut nodes = [0; NODES / WORD_BITS];
    *nodes.get_mut(node / WORD_BITS).ok_or(Errno::INVAL)? = (1 as c_ulong) << (node % WORD_BITS);
    let (address, nodes) = (address.as_ptr(), nodes.as_ptr());
    // The kernel takes one off the number of bits.
    let (bits, mode, flags): (usize, usize, usize) = (NODES + 1, libc::MPOL_BIND as usize, 0);
    // SAFETY: `nodes` has as many bits as the call reads; for addresses that are not mapped it reports an error.
    match unsafe { libc::syscall(libc::SYS_mbind, address, bytes, mode, nodes, bits, flags) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Tells of every page of a mapping on which node it lies; `None` of one that this process has not touched.
pub(crate) fn locate(
    address: NonNull<u8>,
    bytes: usize,
    page_bytes: usize,
    mut tell: impl FnMut(Option<u32>),
) -> Result<(), Errno> {
    const BATCH: usize = 256;
    let mut pages = [ptr::null::<c_void>(); BATCH];
    let mut found: [c_int; BATCH] = [0; BATCH];
    let mut offsets = (0..bytes).step_by(page_bytes);
    loop {
        let mut count = 0;
        for (page, offset) in pages.iter_mut().zip(&mut offsets) {
            *page = address.as_ptr().wrapping_add(offset).cast_const().cast();
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        ask(&pages[..count], &mut found[..count])?;
        found[..count].iter().for_each(|node| tell(u32::try_from(*node).ok()));
    }
}

/// The nodes of these pages, or negative error numbers.
fn ask(pages: &[*const c_void], found: &mut [c_int]) -> Result<(), Errno> {
    assert_eq!(pages.len(), found.len());
    let (this_process, flags): (usize, usize) = (0, 0);
    let (count, pages, found) = (pages.len(), pages.as_ptr(), found.as_mut_ptr());
    let nowhere = ptr::null::<c_int>();
    // SAFETY: both arrays have `count` elements, and without a list of targets no page moves.
    match unsafe { libc::syscall(libc::SYS_move_pages, this_process, count, pages, nowhere, found, flags) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}
