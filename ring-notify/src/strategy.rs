//! How to wait: how long to spin, and what to do then.

use core::time::Duration;

use crate::sys;
use crate::word::Bed;

/// Turns that whoever waits spins by default.
const SPINS: u32 = 1_000;

/// How a handle waits: it spins, then lets other threads run a few times, then sleeps.
///
/// A turn of spinning is a pause of the processor and a look at the ring, 10 to 50 ns. Whoever was last woken from its
/// own CPU does not spin the next time, and whoever has spun in vain and then had what it waited for when it let others
/// run does not spin the next 64 times: the other side could not run meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strategy {
    pub(crate) spin: Spin,
    pub(crate) yields: u32,
    /// None: never sleeps.
    pub(crate) bed: Option<Bed>,
}

/// Turns before it yields or sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spin {
    Fixed(u32),
    Adaptive,
}

impl Strategy {
    /// Spins until there is something, and makes no system call, but for a look at the clock now and then where there
    /// is a time-out. Takes a whole core, and wakes up fastest.
    #[must_use]
    pub const fn doorbell() -> Self {
        Self { spin: Spin::Fixed(0), yields: 0, bed: None }
    }

    /// Spins 1,000 turns, then sleeps in the kernel until it is woken. The default.
    #[must_use]
    pub const fn futex() -> Self {
        Self { spin: Spin::Fixed(SPINS), yields: 0, bed: Some(Bed::Futex) }
    }

    /// Spins 1,000 turns, then sleeps until the event of its direction is signalled, which the options name.
    #[cfg(feature = "std")]
    #[must_use]
    pub const fn event() -> Self {
        Self { spin: Spin::Fixed(SPINS), yields: 0, bed: Some(Bed::Event) }
    }

    /// Spins so many turns before it yields or sleeps. Default: 1,000. A doorbell spins on in any case.
    #[must_use]
    pub const fn spins(mut self, turns: u32) -> Self {
        self.spin = Spin::Fixed(turns);
        self
    }

    /// Learns how long to spin from the gaps between messages, instead of a fixed number of turns.
    ///
    /// Each time that the turns are used up, the mean gap since the last such time decides: up to 50 µs, as long as a
    /// sleep costs both sides in all, it spins for four gaps from then on, and 100 µs at most; beyond, it does not spin
    /// at all. So a busy ring never sleeps, and an idle one sleeps after 100 µs at most. It begins with 1,000 turns.
    /// [`Receiver::spin_turns`](crate::Receiver::spin_turns) tells what it has learned.
    #[must_use]
    pub const fn adaptive(mut self) -> Self {
        self.spin = Spin::Adaptive;
        self
    }

    /// Lets other threads run so many times, with a look at the ring after each, before it sleeps. Default: 0.
    #[must_use]
    pub const fn yields(mut self, times: u32) -> Self {
        self.yields = times;
        self
    }
}

/// As [`futex`](Strategy::futex).
impl Default for Strategy {
    fn default() -> Self {
        Self::futex()
    }
}

/// Gaps up to this are worth spinning for: a sleep costs both sides about as much, with the barrier, two system calls,
/// two changes of context, and the time until the processor is back.
const WORTH_NS: u64 = 50_000;
/// No more than this is spun at a time.
const MOST_NS: u64 = 2 * WORTH_NS;
/// Gaps that are spun for: gaps vary.
const GAPS: u64 = 4;

/// How many turns to spin.
#[derive(Debug)]
pub(crate) struct Budget {
    turns: u32,
    /// None: fixed.
    learning: Option<Learning>,
}

#[derive(Debug)]
struct Learning {
    turn_ns: u64,
    /// When the turns were last used up,
    since: Duration,
    /// and how many waits had ended well by then.
    successes: u64,
}

impl Budget {
    pub(crate) fn of(spin: Spin) -> Self {
        match spin {
            Spin::Fixed(turns) => Self { turns, learning: None },
            Spin::Adaptive => {
                let learning = Learning { turn_ns: turn_ns(), since: sys::now(), successes: 0 };
                Self { turns: SPINS, learning: Some(learning) }
            }
        }
    }

    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    /// Whether there may be turns: what is learned may be none for now.
    pub(crate) fn may_spin(&self) -> bool {
        self.turns > 0 || self.learning.is_some()
    }

    /// The turns were used up in vain, after so many successes in all. Says how many there are to spin now.
    pub(crate) fn learn(&mut self, now: Duration, successes: u64) -> u32 {
        if let Some(learning) = &mut self.learning {
            self.turns = learning.turns(now, successes);
        }
        self.turns
    }
}

impl Learning {
    fn turns(&mut self, now: Duration, successes: u64) -> u32 {
        let elapsed = u64::try_from(now.saturating_sub(self.since).as_nanos()).unwrap_or(u64::MAX);
        let gaps = successes.wrapping_sub(self.successes).max(1);
        (self.since, self.successes) = (now, successes);
        let gap_ns = elapsed / gaps;
        if gap_ns > WORTH_NS {
            return 0;
        }
        let turns = (GAPS * gap_ns).min(MOST_NS) / self.turn_ns;
        u32::try_from(turns).unwrap_or(u32::MAX).max(1)
    }
}

/// Waits without spinning, after one in which others had to be let run: then spinning is tried once more.
const VAIN: u32 = 64;

/// Whether the other side seems to share the CPU of who waits, so that spinning only keeps it from running.
#[derive(Debug, Default)]
pub(crate) struct SharedCpu {
    /// Waits to go without spinning.
    vain: u32,
}

impl SharedCpu {
    /// At the start of a wait. A neighbour is who has woken this side from its own CPU.
    pub(crate) fn is_spinning_vain(&mut self, has_neighbour: bool) -> bool {
        let was_vain = self.vain > 0;
        self.vain = self.vain.saturating_sub(1);
        was_vain || has_neighbour
    }

    /// What was waited for came when others were let run.
    pub(crate) fn yielding_helped(&mut self, is_known: bool) {
        if !is_known {
            self.vain = VAIN;
        }
    }
}

/// What a turn takes, roughly: the fastest of a few, since others may run in between.
fn turn_ns() -> u64 {
    const TURNS: u64 = 64;
    let measure = |_| {
        let begin = sys::now();
        (0..TURNS).for_each(|_| ring_core::sync::spin_loop());
        sys::now().saturating_sub(begin).as_nanos()
    };
    let fastest = (0..4).map(measure).min().unwrap_or_default();
    (u64::try_from(fastest).unwrap_or(u64::MAX) / TURNS).max(1)
}
