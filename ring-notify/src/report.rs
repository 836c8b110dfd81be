//! What a handle got of what it was asked to use.

use crate::barrier::{Heavy, Light};
use crate::word::Bed;

/// What a handle got of what its [`Options`](crate::Options) ask for: kernels and sandboxes refuse things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What it costs to look whether somebody is to be woken.
    pub waking: Waking,
    /// What it costs to go to sleep.
    pub sleeping: Sleeping,
    /// What it sleeps on.
    pub sleeps_on: SleepsOn,
}

/// What a handle does for each message, or each time that it makes room, for those who may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waking {
    /// Nothing, and nobody is woken: nobody ever waits for it, or [`Barrier::None`](crate::Barrier::None) was chosen.
    Never,
    /// It looks at a word.
    Look,
    /// It issues a fence and looks at a word: chosen, or the kernel refuses `membarrier`, or somebody who sleeps asked
    /// for it because the kernel refuses it there.
    FenceAndLook,
}

/// What a handle does before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sleeping {
    /// It never sleeps.
    Never,
    /// It calls `membarrier`.
    Membarrier,
    /// It issues a fence, and so does each who may wake it.
    Fence,
    /// It issues a fence, and sleeps for a millisecond at a time: there was somebody on the other side who issues none,
    /// and may not know yet that it must.
    FenceAndShortSlices,
}

/// What a handle sleeps on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SleepsOn {
    /// Nothing: it spins.
    Nothing,
    /// A futex.
    Futex,
    /// An event: [`Event::kind`](crate::Event::kind) tells of which kind.
    Event,
    /// The clock: the kernel refused to let it sleep on anything else, so it looks once a millisecond.
    Clock,
}

impl Report {
    pub(crate) fn of(light: Light, heavy: Heavy, bed: Option<Bed>, has_dozed: bool) -> Self {
        let waking = match light {
            Light::None => Waking::Never,
            Light::Omitted => Waking::Look,
            Light::Fence => Waking::FenceAndLook,
        };
        let sleeping = match (bed, heavy) {
            (None, _) => Sleeping::Never,
            (_, Heavy::Everywhere) => Sleeping::Membarrier,
            (_, Heavy::Here { is_safe: true }) => Sleeping::Fence,
            (_, Heavy::Here { is_safe: false }) => Sleeping::FenceAndShortSlices,
        };
        let sleeps_on = match bed {
            None => SleepsOn::Nothing,
            _ if has_dozed => SleepsOn::Clock,
            Some(Bed::Futex) => SleepsOn::Futex,
            Some(Bed::Event) => SleepsOn::Event,
        };
        Self { waking, sleeping, sleeps_on }
    }
}
