//! A cache line over which two CPUs hand a word to and fro.

#[cfg(test)]
mod tests;

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};

/// Polls between two looks at whether the other side lives, and gives way to it on a machine with one CPU.
const PATIENCE: u32 = 1 << 16;

/// A word alone on its line, and on the neighbour that prefetchers fetch along with it.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Line(AtomicU64);

/// The other side has gone, so that no word will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerGone;

impl Line {
    /// Hands a word over, which must differ from the one before.
    #[inline]
    pub(crate) fn send(&self, word: u64) {
        // ORDERING: Relaxed: the word is all that travels.
        self.0.store(word, Ordering::Relaxed);
    }

    /// Polls until the word is another one than `last`. Once `is_alive` says no, whatever the other side has sent is to be
    /// seen.
    #[inline]
    pub(crate) fn receive(&self, last: u64, is_alive: impl Fn() -> bool) -> Result<u64, PeerGone> {
        loop {
            for _ in 0..PATIENCE {
                if let Some(word) = self.other_than(last) {
                    return Ok(word);
                }
                spin_loop();
            }
            std::thread::yield_now();
            if !is_alive() {
                // Its last word may have come after the last look.
                return self.other_than(last).ok_or(PeerGone);
            }
        }
    }

    #[inline]
    fn other_than(&self, last: u64) -> Option<u64> {
        // ORDERING: Relaxed: the word is all that travels; stamps order themselves against it.
        Some(self.0.load(Ordering::Relaxed)).filter(|&word| word != last)
    }
}
