//! What wakes those who wait for one thing: the futex, and an event where they have one.

#[cfg(feature = "std")]
use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;

use ring_core::sync::AtomicU64;

use crate::sys::{self, Deadline, Woken};
use crate::word::{Asleep, Bed};

/// The events of a direction. Whoever sleeps does so on the first; whoever wakes signals all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bell {
    #[cfg(feature = "std")]
    events: Vec<Arc<crate::Event>>,
}

impl Bell {
    #[cfg(feature = "std")]
    pub(crate) fn add(&mut self, event: Arc<crate::Event>) {
        self.events.push(event);
    }

    /// The one to sleep on.
    #[cfg(feature = "std")]
    pub(crate) fn event(&self) -> Option<&Arc<crate::Event>> {
        self.events.first()
    }

    pub(crate) fn has_event(&self) -> bool {
        #[cfg(feature = "std")]
        return !self.events.is_empty();
        #[cfg(not(feature = "std"))]
        return false;
    }

    /// Wakes all who sleep.
    pub(crate) fn ring(&self, word: &AtomicU64, asleep: Asleep) {
        if asleep.is_in(Bed::Futex) {
            sys::futex_wake(word);
        }
        #[cfg(feature = "std")]
        if asleep.is_in(Bed::Event) {
            self.events.iter().for_each(|event| event.signal());
        }
    }

    /// Takes signals back, and says whether there were any.
    pub(crate) fn clear(&self) -> bool {
        #[cfg(feature = "std")]
        return self.event().is_some_and(|event| event.clear());
        #[cfg(not(feature = "std"))]
        return false;
    }

    /// Gives a signal back that was taken by one who does not sleep after all: others may sleep on the same event, and
    /// it may have been for what they wait for.
    pub(crate) fn pass_on(&self, had_signal: bool) {
        #[cfg(feature = "std")]
        if let (true, Some(event)) = (had_signal, self.event()) {
            event.signal();
        }
        #[cfg(not(feature = "std"))]
        let _ = had_signal;
    }

    /// Sleeps until there is a signal. Refused where there is no event.
    pub(crate) fn wait(&self, deadline: Deadline) -> Woken {
        #[cfg(feature = "std")]
        return self.event().map_or(Woken::Refused, |event| event.wait(deadline));
        #[cfg(not(feature = "std"))]
        {
            let _ = deadline;
            Woken::Refused
        }
    }
}

/// Sleeps until there is a signal on one of them.
pub(crate) fn wait_for_any<'a>(bells: impl Iterator<Item = &'a Bell>, deadline: Deadline) -> Woken {
    #[cfg(feature = "std")]
    return sys::wait_for_any(bells.filter_map(|bell| bell.event().map(Arc::as_ref)), deadline);
    #[cfg(not(feature = "std"))]
    {
        let _ = (bells, deadline);
        Woken::Refused
    }
}
