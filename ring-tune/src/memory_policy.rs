//! NUMA nodes from which memory comes.
//!
//! # Safety
//!
//! The kernel reads and writes an array of plain integers whose length it is told, and does not read or write the
//! memory whose place is chosen.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use core::ffi::{c_int, c_long, c_ulong};

use crate::{Errno, Error};

/// The most nodes that Linux is built for.
const NODES: usize = 1_024;
const WORD_BITS: usize = c_ulong::BITS as usize;
/// The kernel takes one off the number of bits, as set_mempolicy(2) does not say.
const MASK_BITS: usize = NODES + 1;

/// Flags of mbind(2), from the kernel's `include/uapi/linux/mempolicy.h`: fail where a page lies elsewhere, after moving
/// those that belong to this process alone.
const STRICT: c_ulong = 1;
const MOVE: c_ulong = 2;

/// From where a thread gets its memory, when it is first to touch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryPolicy {
    /// From the node of the CPU that it runs on, and from others if that has none left.
    Local,
    /// From this node alone. Where it has none left, the kernel reclaims, and ends somebody if that does not help.
    Bind {
        /// The number of the node.
        node: usize,
    },
    /// From this node, and from others if it has none left.
    Preferred {
        /// The number of the node.
        node: usize,
    },
    /// What this crate does not set: several nodes, interleaved or otherwise.
    Other {
        /// The kernel's number of the mode, with its flags; set_mempolicy(2).
        mode: c_int,
    },
}

/// Chooses from where the calling thread gets memory that it is first to touch, and reads the choice back. Threads that
/// it creates later, and programs that it executes, inherit the policy; what is there already does not move.
///
/// # Errors
///
/// [`Error::MemoryPolicy`] where the kernel refuses the node, [`Error::OtherMemoryPolicy`] for
/// [`MemoryPolicy::Other`], [`Error::MemoryPolicyNotInEffect`], [`Error::ReadMemoryPolicy`].
///
/// ```
/// use ring_tune::{MemoryPolicy, memory_policy, set_memory_policy};
///
/// set_memory_policy(MemoryPolicy::Local)?;
/// assert_eq!(memory_policy()?, MemoryPolicy::Local);
/// # Ok::<(), ring_tune::Error>(())
/// ```
pub fn set_memory_policy(policy: MemoryPolicy) -> Result<(), Error> {
    let (mode, node) = match policy {
        MemoryPolicy::Local => {
            let set = set_policy(libc::MPOL_DEFAULT, None);
            return set.map_err(|source| Error::ReadMemoryPolicy { source });
        }
        MemoryPolicy::Bind { node } => (libc::MPOL_BIND, node),
        MemoryPolicy::Preferred { node } => (libc::MPOL_PREFERRED, node),
        MemoryPolicy::Other { mode } => return Err(Error::OtherMemoryPolicy { mode }),
    };
    set_policy(mode, Some(node)).map_err(|source| Error::MemoryPolicy { node, source })?;
    if memory_policy()? == policy { Ok(()) } else { Err(Error::MemoryPolicyNotInEffect { node }) }
}

/// From where the calling thread gets memory that it is first to touch.
///
/// # Errors
///
/// [`Error::ReadMemoryPolicy`] where the kernel has no NUMA policies, or a sandbox forbids the call.
///
/// ```
/// let policy = ring_tune::memory_policy()?;
/// println!("{policy:?}");
/// # Ok::<(), ring_tune::Error>(())
/// ```
pub fn memory_policy() -> Result<MemoryPolicy, Error> {
    let mut mode: c_int = 0;
    let mut nodes = [0 as c_ulong; NODES / WORD_BITS];
    let (nowhere, flags): (usize, c_ulong) = (0, 0);
    // SAFETY: the kernel writes one integer to `mode`, and no more bits to `nodes` than it has.
    let status = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, &raw mut nodes, MASK_BITS, nowhere, flags)
    };
    done(status).map_err(|source| Error::ReadMemoryPolicy { source })?;
    let mut bits = (0..NODES).filter(|node| nodes[node / WORD_BITS] >> (node % WORD_BITS) & 1 == 1);
    Ok(match (mode, bits.next(), bits.next()) {
        (libc::MPOL_DEFAULT | libc::MPOL_LOCAL, ..) => MemoryPolicy::Local,
        (libc::MPOL_BIND, Some(node), None) => MemoryPolicy::Bind { node },
        (libc::MPOL_PREFERRED, Some(node), None) => MemoryPolicy::Preferred { node },
        _ => MemoryPolicy::Other { mode },
    })
}

/// Has the pages of a range come from one NUMA node, whoever touches them first, and moves those that lie elsewhere and
/// belong to this process alone. Pages that the range shares with its neighbours at its ends are meant as a whole.
///
/// # Errors
///
/// [`Error::MemoryPolicy`] where the kernel refuses the node, or a page lies elsewhere and cannot move.
///
/// ```
/// use ring_tune::{Error, bind_memory};
///
/// let buffer = vec![1_u8; 64 << 10];
/// match bind_memory(&buffer, 0) {
///     Ok(()) => assert_eq!(buffer[5], 1),
///     // A machine without NUMA, or a sandbox: the error says which.
///     Err(error) => assert!(matches!(error, Error::MemoryPolicy { node: 0, .. }), "{error}"),
/// }
/// ```
pub fn bind_memory(range: &[u8], node: usize) -> Result<(), Error> {
    let refused = |source| Error::MemoryPolicy { node, source };
    let nodes = mask(node).map_err(refused)?;
    if range.is_empty() {
        return Ok(());
    }
    // SAFETY: takes a plain number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page_bytes = usize::try_from(page_bytes).map_err(|_| refused(Errno::last()))?;
    let start = range.as_ptr().addr();
    let aligned = start - start % page_bytes;
    let bytes = start - aligned + range.len();
    let (mode, flags) = (libc::MPOL_BIND as c_ulong, MOVE | STRICT);
    // SAFETY: the kernel reads no more bits of `nodes` than it has, and pages keep their content where they move.
    let status =
        unsafe { libc::syscall(libc::SYS_mbind, aligned, bytes, mode, &raw const nodes, MASK_BITS, flags) };
    done(status).map_err(refused)
}

fn set_policy(mode: c_int, node: Option<usize>) -> Result<(), Errno> {
    let nodes = node.map_or(Ok([0; NODES / WORD_BITS]), mask)?;
    // SAFETY: the kernel reads no more bits of `nodes` than it has.
    done(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const nodes, MASK_BITS) })
}

fn mask(node: usize) -> Result<[c_ulong; NODES / WORD_BITS], Errno> {
    let mut nodes = [0; NODES / WORD_BITS];
    *nodes.get_mut(node / WORD_BITS).ok_or(Errno::INVAL)? = 1 << (node % WORD_BITS);
    Ok(nodes)
}

fn done(status: c_long) -> Result<(), Errno> {
    if status == 0 { Ok(()) } else { Err(Errno::last()) }
}
