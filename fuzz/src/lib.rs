//! What the targets share: the steps that they take, memory between guard pages, the peer that writes rubbish into it,
//! and messages that can be told from each other.
//!
//! # Safety
//!
//! A [`Fenced`] owns its mapping, and what lies between the guard pages is readable, writable and zeroed at first. The
//! region begins a multiple of [`REGION_ALIGN`] before the upper one; handles apart, its words are reached as atomics.
#![allow(unsafe_code)]

mod handles;
mod steps;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use handles::{End, leave, where_head_is, where_tail_is};
pub use steps::{Input, Target};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_core::{REGION_ALIGN, Region};

const PAGE_BYTES: usize = 4096;

/// A region with a page on either side that nobody can touch; it ends where the upper one begins.
pub struct Fenced {
    mapping: NonNull<u8>,
    mapping_bytes: usize,
    base: NonNull<u8>,
    bytes: usize,
    is_spoiled: AtomicBool,
}

impl Fenced {
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(REGION_ALIGN);
        let inside = bytes.next_multiple_of(PAGE_BYTES);
        let mapping_bytes = inside + 2 * PAGE_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), mapping_bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(mapping, libc::MAP_FAILED);
        let mapping = NonNull::new(mapping.cast::<u8>()).expect("a mapping is not at 0");
        // SAFETY: behind the lower guard page, in the mapping.
        let first = unsafe { mapping.add(PAGE_BYTES) };
        // SAFETY: `bytes` before the upper guard page, and `inside` are as many or more.
        let base = unsafe { first.add(inside - bytes) };
        // SAFETY: the pages between the guards, which nobody uses yet.
        let opened =
            unsafe { libc::mprotect(first.as_ptr().cast(), inside, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(opened, 0);
        Self { mapping, mapping_bytes, base, bytes, is_spoiled: AtomicBool::new(false) }
    }

    /// Whether a peer spoils it or has: then nobody is held to anything but to stay inside.
    pub fn is_spoiled(&self) -> bool {
        // ORDERING: Relaxed: this thread alone writes it and asks.
        self.is_spoiled.load(Ordering::Relaxed)
    }

    fn give_up(&self) {
        // ORDERING: Relaxed: as above.
        self.is_spoiled.store(true, Ordering::Relaxed);
    }

    /// Writes rubbish into one word.
    fn spoil(&self, spoil: &Spoil) {
        let words = self.bytes / 8;
        // Most of what matters lies in the header.
        let index = if spoil.header { spoil.place as usize % 64 } else { spoil.place as usize } % words;
        // SAFETY: the index is below the number of words, which lie in the region.
        let word = unsafe { self.base.cast::<u64>().add(index) };
        // SAFETY: aligned and initialised, and shared as atomics only.
        let word = unsafe { AtomicU64::from_ptr(word.as_ptr()) };
        // ORDERING: Relaxed: a peer that spoils keeps to no order.
        let before = word.load(Ordering::Relaxed);
        let value = match spoil.value {
            Value::Raw(value) => value,
            Value::Near(delta) => before.wrapping_add_signed(delta.into()),
            Value::Flip(bit) => before ^ (1 << (bit % 64)),
            Value::Shifted(value, by) => u64::from(value) << (by % 64),
        };
        // ORDERING: Relaxed: as above.
        word.store(value, Ordering::Relaxed);
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nobody uses it any more.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapping_bytes) };
    }
}

// SAFETY: the words are reached through atomics and handles only.
unsafe impl Sync for Fenced {}

// SAFETY: the mapping stays where it is, is readable, writable, zeroed, and reached through atomics and handles only.
unsafe impl Region for Fenced {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What the peer writes where.
#[derive(Debug, Arbitrary)]
pub struct Spoil {
    header: bool,
    place: u16,
    value: Value,
}

#[derive(Debug, Arbitrary)]
enum Value {
    Raw(u64),
    Near(i8),
    Flip(u8),
    Shifted(u8, u8),
}

/// A message of a size that is no multiple of a word.
pub type Message = [u8; 13];

/// The only message like it: of a position, say, in the ring that was made for the `making`th time.
pub fn message(making: u8, number: u64) -> Message {
    let mut message = [making; 13];
    message[..8].copy_from_slice(&number.to_le_bytes());
    message
}
