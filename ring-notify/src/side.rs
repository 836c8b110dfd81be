//! One side of a ring: it waits for one thing, and wakes those who wait for the other.

mod wait;

use alloc::sync::Arc;
use core::time::Duration;

use ring_core::sync::AtomicU64;

use crate::barrier::{Barrier, Heavy, Light};
use crate::bell::Bell;
use crate::counters::Tally;
use crate::options::Parts;
use crate::report::Report;
use crate::ring::{Direction, Handle, NotPushed, Push, Try};
use crate::strategy::{Budget, SharedCpu, Strategy};
use crate::sys::{self, Deadline};
use crate::word::{self, Events};
#[cfg(feature = "tokio")]
pub(crate) use wait::try_ready;
pub(crate) use wait::{TURNS_PER_LOOK, Wait};

/// No sleep is longer where perhaps nobody ends it: another handle was in the way, or one that wakes may not know yet
/// that it must fence.
const SHORT_SLICE: Duration = Duration::from_millis(1);

/// A handle, and all that waiting needs.
#[derive(Debug)]
pub(crate) struct Side<H: Handle, L> {
    pub(crate) ring: H,
    /// What it does before it looks whether somebody sleeps.
    light: Light,
    /// Bits of the word of those whom it wakes that want something done.
    attention: u64,
    /// What was asked for; light and heavy are what was had of it.
    barrier: Barrier,
    /// What it does before it sleeps. None: it has not had to yet.
    heavy: Option<Heavy>,
    pub(crate) strategy: Strategy,
    pub(crate) budget: Budget,
    /// No sleep is longer.
    slice: Option<Duration>,
    /// When to see whether the other side still lives, in whatever wait. None: there was none yet.
    check_at: Deadline,
    liveness: L,
    /// What this side sleeps on, and what the other one does.
    pub(crate) own_bell: Bell,
    other_bell: Bell,
    /// Tries that ended well, so far, where the ring itself does not count.
    successes: u64,
    pub(crate) tally: Arc<Tally>,
    /// The kernel has once refused to let it sleep on its bell.
    has_dozed: bool,
    shared_cpu: SharedCpu,
}

impl<H: Handle, L> Side<H, L> {
    pub(crate) fn new(ring: H, parts: Parts<L>) -> Self {
        let Parts { strategy, barrier, slice, liveness, own_bell, other_bell } = parts;
        let words = ring.wait_words();
        let light = match H::IS_WAITED_FOR {
            true => Light::of(barrier, woken::<H>().map(|direction| direction.word(words))),
            false => Light::None,
        };
        let mut side = Self {
            ring,
            light,
            attention: 0,
            barrier,
            heavy: None,
            strategy,
            budget: Budget::of(strategy.spin),
            slice,
            check_at: None,
            liveness,
            own_bell,
            other_bell,
            successes: 0,
            tally: Arc::default(),
            has_dozed: false,
            shared_cpu: SharedCpu::default(),
        };
        side.attention = side.attention();
        if strategy.bed.is_some() {
            side.heavy();
        }
        side.wake_in_any_case();
        side
    }

    /// The barrier of who goes to sleep. Had when it is first asked for: a side that only spins by itself may sleep as
    /// one of several that are waited for.
    pub(crate) fn heavy(&mut self) -> Heavy {
        if let Some(heavy) = self.heavy {
            return heavy;
        }
        let heavy = Heavy::of(self.barrier, self.own_word());
        if heavy == (Heavy::Here { is_safe: false }) {
            self.slice = Some(self.slice.map_or(SHORT_SLICE, |slice| slice.min(SHORT_SLICE)));
        }
        self.heavy = Some(heavy);
        heavy
    }

    /// The kernel refuses by now what it granted: what can be had instead.
    #[cold]
    pub(crate) fn heavy_anew(&mut self) -> Heavy {
        self.heavy = None;
        self.heavy()
    }

    /// A try, after which the other side knows.
    #[inline(always)]
    pub(crate) fn attempt<T>(&mut self, attempt: &mut impl FnMut(&mut H) -> Try<T>) -> Try<T> {
        let before = self.ring.mark();
        let result = attempt(&mut self.ring);
        let is_done = matches!(result, Try::Done(_));
        self.count(is_done);
        let is_news = before.map_or(is_done, |before| self.ring.mark() != Some(before));
        if is_news {
            self.notify(H::DIRECTION.other());
        }
        result
    }

    /// A try to pop where it is short: none where the pop shows the other side something, but in a ring where each
    /// does. So a failure says only that [`attempt`](Self::attempt) is worth it. No message has to outlive a call here,
    /// so it stays in registers.
    #[inline(always)]
    pub(crate) fn attempt_shortly<T>(&mut self, attempt: &mut impl FnMut(&mut H) -> Try<T>) -> Option<T> {
        let before = self.ring.mark();
        if before.is_some() && !self.ring.is_next_pop_silent() {
            return None;
        }
        match attempt(&mut self.ring) {
            Try::Done(value) => {
                self.count(true);
                if before.is_none() {
                    self.notify(H::DIRECTION.other());
                }
                Some(value)
            }
            // A ring that is found empty gets all its credit back.
            _ => {
                if self.ring.mark() != before {
                    self.notify(H::DIRECTION.other());
                }
                None
            }
        }
    }

    /// Counts a try that ended well, where the ring does not.
    #[inline(always)]
    fn count(&mut self, is_done: bool) {
        if self.ring.position().is_none() {
            self.successes = self.successes.wrapping_add(is_done.into());
        }
    }

    /// Pushes a message, after which the other side knows.
    #[inline(always)]
    pub(crate) fn push<M, E>(&mut self, value: M) -> Result<(), NotPushed<E, M>>
    where
        H: Push<Message = M, Error = E>,
    {
        self.ring.push(value)?;
        self.count(true);
        self.notify(H::DIRECTION.other());
        Ok(())
    }

    /// Whatever was done with the handle: all who may wait for it know.
    pub(crate) fn notify_all(&mut self) {
        woken::<H>().for_each(|direction| self.notify(direction));
    }

    /// Lets `use_it` do with the handle whatever it can, and then all who may wait for it know: also where it panics, since
    /// it may have published something before.
    #[inline]
    pub(crate) fn use_and_tell<T>(&mut self, use_it: impl FnOnce(&mut H) -> T) -> T {
        struct Tell<'a, H: Handle, L>(&'a mut Side<H, L>);
        impl<H: Handle, L> Drop for Tell<'_, H, L> {
            fn drop(&mut self) {
                if H::IS_ONE_OF_MANY {
                    // A grant that was leaked: a later try would take it back, and tell nobody.
                    self.0.ring.settle();
                }
                self.0.notify_all();
            }
        }
        let tell = Tell(self);
        use_it(&mut tell.0.ring)
    }

    /// Wakes who sleeps until there is what was just published.
    #[inline(always)]
    pub(crate) fn notify(&mut self, direction: Direction) {
        if self.light == Light::None {
            return;
        }
        self.light.pass();
        if word::look(direction.word(self.ring.wait_words())) & self.attention == 0 {
            self.tally.wakes_saved.add(1);
        } else {
            self.attend(direction);
        }
    }

    /// Does what the word asks for: fences from now on, wakes.
    #[cold]
    #[inline(never)]
    fn attend(&mut self, direction: Direction) {
        let word = direction.word(self.ring.wait_words());
        if self.light == Light::Omitted && word::look(word) & word::FENCE != 0 {
            self.light = Light::Fence;
            self.attention = self.attention();
            self.light.pass();
        }
        match word::raise(word, sys::cpu(), self.events(direction)) {
            Some(asleep) => {
                self.bell(direction).ring(word, asleep);
                self.tally.wakes_sent.add(1);
            }
            None => self.tally.wakes_saved.add(1),
        }
    }

    /// A former owner of the handle may have been killed before it woke those whose notice it had taken back.
    fn wake_in_any_case(&mut self) {
        if self.light == Light::None {
            return;
        }
        for direction in woken::<H>() {
            let word = direction.word(self.ring.wait_words());
            word::raise_anyway(word, sys::cpu(), self.events(direction));
            self.bell(direction).ring(word, word::Asleep::ALL);
        }
    }

    /// The word of those who wait for what this side waits for.
    pub(crate) fn own_word(&self) -> &AtomicU64 {
        H::DIRECTION.word(self.ring.wait_words())
    }

    /// Bits of the word of those whom it wakes that want something done.
    fn attention(&self) -> u64 {
        let has_event = self.own_bell.has_event() || self.other_bell.has_event();
        let asleep = if has_event { word::ASLEEP } else { word::ASLEEP_ON_FUTEX };
        if self.light == Light::Omitted { asleep | word::FENCE } else { asleep }
    }

    /// Those of its own kind may have events that only the other side has been told of.
    fn events(&self, direction: Direction) -> Events {
        let is_of_all = direction != H::DIRECTION && self.bell(direction).has_event();
        if is_of_all { Events::OfAll } else { Events::OfSome }
    }

    fn bell(&self, direction: Direction) -> &Bell {
        if direction == H::DIRECTION { &self.own_bell } else { &self.other_bell }
    }

    pub(crate) fn report(&self) -> Report {
        let heavy = self.heavy.unwrap_or(Heavy::Here { is_safe: true });
        Report::of(self.light, heavy, self.strategy.bed, self.has_dozed)
    }
}

impl<H: Handle, L> Drop for Side<H, L> {
    fn drop(&mut self) {
        // Dropping the handle would show the other side something, and then nobody could wake it any more.
        self.ring.settle();
        self.notify_all();
    }
}

/// Whom it wakes: those on the other side, and where it is one of many those of its own kind.
fn woken<H: Handle>() -> impl Iterator<Item = Direction> {
    let own = H::IS_ONE_OF_MANY.then_some(H::DIRECTION);
    core::iter::once(H::DIRECTION.other()).chain(own)
}
