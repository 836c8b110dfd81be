//! Which slabs are free: a stack of numbers that any thread takes from and gives back to.
//!
//! The top word holds the number on top and a count of changes, so that a taker whose picture of the stack is old
//! fails to exchange it, also where the same number is on top again.
//!
//! | edge | from | to |
//! |---|---|---|
//! | R1 → A1 | `FreeList::give_back` puts a number on top | `FreeList::take` reads the top: the next number below it, and what was written to the slab |
//! | R1 → A2 | the same, when the stack changed meanwhile | `FreeList::take` looks again |

#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use crate::sync::{AtomicU64, Ordering};

/// The number on top where the stack is empty, and the one below the lowest.
const NONE: u32 = u32::MAX;

/// Beside a number that is out.
const OUT: u64 = 1 << 32;

/// The free numbers below a count.
#[derive(Debug)]
pub(crate) struct FreeList {
    /// The changes so far, modulo 2^32, in the upper half; the number on top in the lower.
    top: AtomicU64,
    /// By number: the number below it, or [`OUT`].
    below: Box<[AtomicU64]>,
}

impl FreeList {
    /// All of `places` numbers are free; the lowest is on top.
    pub(crate) fn new(places: u32) -> Self {
        let below = (0..places).map(|number| {
            let below = if number + 1 < places { number + 1 } else { NONE };
            AtomicU64::new(below.into())
        });
        let top = if places == 0 { NONE } else { 0 };
        Self { top: AtomicU64::new(top.into()), below: below.collect() }
    }

    /// How many numbers there are, free or out.
    pub(crate) fn places(&self) -> u32 {
        u32::try_from(self.below.len()).unwrap_or(u32::MAX)
    }

    /// Takes the number on top; none where all are out.
    #[inline]
    pub(crate) fn take(&self) -> Option<u32> {
        // ORDERING: Acquire (A1): the number below the top was written before; pairs with R1 in FreeList::give_back.
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let number = number_of(top);
            let place = self.below.get(number as usize)?;
            // ORDERING: Relaxed: where the stack has changed since, this may be any old value, and the exchange fails.
            let below = number_of(place.load(Ordering::Relaxed));
            let taken = self.top.compare_exchange(
                top,
                changed(top, below),
                // ORDERING: Relaxed: it reads what the last look has read, which was an Acquire.
                Ordering::Relaxed,
                // ORDERING: Acquire (A2): the new top's number below was written before; pairs with R1 in
                // FreeList::give_back.
                Ordering::Acquire,
            );
            match taken {
                Ok(_) => {
                    // ORDERING: Relaxed: the number is this thread's alone; it is for who counts.
                    place.store(OUT, Ordering::Relaxed);
                    return Some(number);
                }
                Err(now) => top = now,
            }
        }
    }

    /// Puts a number back that was taken.
    #[inline]
    pub(crate) fn give_back(&self, number: u32) {
        let place = &self.below[number as usize];
        // ORDERING: Relaxed: the exchange checks that it is still the top.
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            // ORDERING: Relaxed: the exchange below publishes it.
            place.store(number_of(top).into(), Ordering::Relaxed);
            let given = self.top.compare_exchange(
                top,
                changed(top, number),
                // ORDERING: Release (R1): the number below, and what was done to the slab, come before; pairs with A1 in
                // FreeList::take and A2 in FreeList::take.
                Ordering::Release,
                // ORDERING: Relaxed: only the word itself is used.
                Ordering::Relaxed,
            );
            match given {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// How many numbers are out.
    pub(crate) fn out(&self) -> u32 {
        // ORDERING: Relaxed: a count that may be old.
        let out = self.below.iter().filter(|below| below.load(Ordering::Relaxed) == OUT).count();
        u32::try_from(out).unwrap_or(u32::MAX)
    }
}

/// The lower half of a word.
#[allow(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn number_of(word: u64) -> u32 {
    word as u32
}

/// The top after a change, with another number.
fn changed(top: u64, number: u32) -> u64 {
    (top & !u64::from(u32::MAX)).wrapping_add(1 << 32) | u64::from(number)
}
