//! Who pays for the order between "I am about to sleep" and "there is something".
//!
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | F1 ↔ F2 | between what was published and the look at the word | between the notice and the second look at the ring | one of the two sees what the other has written |

use ring_core::sync::{AtomicU64, Ordering, fence, light_fence};

use crate::{sys, word};

/// Who pays so that no wake-up is lost. Each handle chooses for itself, and any choice of one side works with any of
/// the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Barrier {
    /// Whoever goes to sleep pays, by the system call `membarrier`; whoever sends or receives pays nothing but a look
    /// at a word that it has in its cache. For traffic that seldom sleeps.
    ///
    /// The call takes some 1 µs when nobody else runs and 9 µs when a process runs that takes part, and interrupts that
    /// one for 5 µs, also on an isolated core. To make such a handle enters the process as one that takes part: that
    /// takes up to 30 ms in one that has threads, the first time.
    ///
    /// Where the kernel refuses, [`Plain`](Self::Plain) is taken, and [`Report`](crate::Report) says so.
    #[default]
    Asymmetric,
    /// Both pay, with a fence each: whoever sends after each message, or after each batch, 10 to 20 ns and more where
    /// lines are on their way. No process is interrupted.
    Plain,
    /// This side never wakes anybody, and pays nothing: for rings on which the other side never sleeps.
    None,
}

/// The barrier that whoever wakes has in fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Light {
    /// Nobody is woken.
    None,
    /// The sleeper issues it.
    Omitted,
    Fence,
}

impl Light {
    /// What of a choice can be had, for those who sleep on these words.
    pub(crate) fn of<'a>(choice: Barrier, words: impl Iterator<Item = &'a AtomicU64>) -> Self {
        match choice {
            Barrier::None => Self::None,
            Barrier::Asymmetric if sys::register_for_heavy_barriers() => {
                // In one step: either this side sees that it must fence, or whoever asks for that sees that it may not.
                let found = words.fold(0, |found, word| found | word::declare(word, word::LIGHT));
                if found & word::FENCE == 0 { Self::Omitted } else { Self::Fence }
            }
            _ => Self::Fence,
        }
    }

    /// Between what was published and the look at the word.
    #[inline(always)]
    pub(crate) fn pass(self) {
        match self {
            Self::None => {}
            // ORDERING: SeqCst (F1): the heavy barrier of the other side makes it one; pairs with F2 in Heavy::pass.
            Self::Omitted => light_fence(),
            // ORDERING: SeqCst (F1): what was published, before the look at the word; pairs with F2 in Heavy::pass.
            Self::Fence => fence(Ordering::SeqCst),
        }
    }
}

/// The barrier that whoever goes to sleep has in fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heavy {
    /// On each core that runs a process of those who wake.
    Everywhere,
    /// Here. Those who wake issue their own.
    Here {
        /// Whether each of them knows that it must. Where one may not know yet, a wake-up can be lost.
        is_safe: bool,
    },
}

impl Heavy {
    /// What of a choice can be had, for who sleeps on this word.
    pub(crate) fn of(choice: Barrier, word: &AtomicU64) -> Self {
        if choice == Barrier::Asymmetric && sys::has_heavy_barriers() {
            return Self::Everywhere;
        }
        let found = word::declare(word, word::FENCE);
        // After a fence on each core, whoever had looked before has published for all to see, and whoever looks later
        // sees that it must fence.
        Self::Here { is_safe: found & word::LIGHT == 0 || sys::has_heavy_barriers() }
    }

    /// Between the notice and the second look at the ring. False: the kernel refuses it by now, as where a program has
    /// locked itself in since.
    #[must_use]
    pub(crate) fn pass(self) -> bool {
        match self {
            Self::Everywhere => {
                // ORDERING: SeqCst (F2): the notice, before the look at the ring, also for those who omit their fence;
                // pairs with F1 in Light::pass.
                sys::heavy_barrier()
            }
            Self::Here { .. } => {
                // ORDERING: SeqCst (F2): the notice, before the look at the ring; pairs with F1 in Light::pass.
                fence(Ordering::SeqCst);
                true
            }
        }
    }
}
