//! Waiting: spin, then yield, then sleep, with a try after each turn.

use core::time::Duration;

use ring_core::Liveness;

use super::{SHORT_SLICE, Side};
#[cfg(feature = "std")]
use crate::error::Error;
use crate::error::WaitError;
use crate::ring::{Handle, PeerState, Try};
use crate::strategy::SharedCpu;
use crate::sys::{self, Deadline, Woken};
use crate::word::{self, Bed};

/// Turns between two looks at the clock.
pub(crate) const TURNS_PER_LOOK: u32 = 256;

/// How a wait stands.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    /// When the caller's time is over.
    pub(crate) deadline: Deadline,
}

impl Wait {
    pub(crate) fn up_to(timeout: Option<Duration>) -> Self {
        Self { deadline: timeout.and_then(|timeout| sys::now().checked_add(timeout)) }
    }
}

impl<H: Handle, L: Liveness> Side<H, L> {
    /// Tries until it is done, and waits in between.
    pub(crate) fn wait<T>(
        &mut self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut H) -> Try<T>,
    ) -> Result<T, WaitError> {
        let wait = Wait::up_to(timeout);
        let result = match timeout {
            // It has had its try.
            Some(Duration::ZERO) => self.on_time(&wait).and(Err(WaitError::TimedOut)),
            _ => self.wait_on(&wait, &mut attempt),
        };
        match result {
            Ok(value) => Ok(value),
            // What came while the clock was looked at, or was the last that the other side did.
            Err(error) => match self.attempt(&mut attempt) {
                Try::Done(value) => Ok(value),
                _ => Err(error),
            },
        }
    }

    /// Whether a try is worth it.
    pub(crate) fn is_ready_now(&mut self) -> bool {
        matches!(self.attempt(&mut try_ready), Try::Done(()))
    }

    pub(crate) fn wait_until_ready(&mut self, timeout: Option<Duration>) -> Result<(), WaitError> {
        if self.is_ready_now() { Ok(()) } else { self.wait(timeout, try_ready) }
    }

    /// Waits as the strategy has it.
    fn wait_on<T>(
        &mut self,
        wait: &Wait,
        attempt: &mut impl FnMut(&mut H) -> Try<T>,
    ) -> Result<T, WaitError> {
        let Some(bed) = self.strategy.bed else { return self.spin_on(wait, attempt) };
        let is_vain =
            self.budget.may_spin() && self.shared_cpu.is_spinning_vain(word::was_neighbour(self.own_word()));
        if !is_vain {
            let mut spun = 0;
            let mut turns = self.budget.turns();
            loop {
                if let Some(value) = self.spin(turns.saturating_sub(spun), wait, attempt)? {
                    return Ok(value);
                }
                spun = spun.max(turns);
                turns = self.budget.learn(sys::now(), self.ring.position().unwrap_or(self.successes));
                if turns <= spun {
                    break;
                }
            }
        }
        for _ in 0..self.strategy.yields {
            sys::yield_now();
            self.tally.yields.add(1);
            if let Try::Done(value) = self.attempt(attempt) {
                self.shared_cpu.yielding_helped(is_vain);
                return Ok(value);
            }
            self.on_time(wait)?;
        }
        self.shared_cpu = SharedCpu::default();
        // What is due by now: then a sleep would end at once.
        self.on_time(wait)?;
        loop {
            if let Some(value) = self.sleep(bed, wait, attempt)? {
                return Ok(value);
            }
        }
    }

    /// Spins for so many turns.
    fn spin<T>(
        &mut self,
        turns: u32,
        wait: &Wait,
        attempt: &mut impl FnMut(&mut H) -> Try<T>,
    ) -> Result<Option<T>, WaitError> {
        for turn in 1..=turns {
            ring_core::sync::spin_loop();
            if let Try::Done(value) = self.attempt(attempt) {
                self.tally.spins.add(turn.into());
                return Ok(Some(value));
            }
            if turn % TURNS_PER_LOOK == 0 && (wait.deadline.is_some() || self.slice.is_some()) {
                if let Err(error) = self.on_time(wait) {
                    self.tally.spins.add(turn.into());
                    return Err(error);
                }
            }
        }
        self.tally.spins.add(turns.into());
        Ok(None)
    }

    /// Spins until it is over.
    fn spin_on<T>(
        &mut self,
        wait: &Wait,
        attempt: &mut impl FnMut(&mut H) -> Try<T>,
    ) -> Result<T, WaitError> {
        loop {
            if let Some(value) = self.spin(TURNS_PER_LOOK, wait, attempt)? {
                return Ok(value);
            }
        }
    }

    /// Says that it is about to sleep. Whoever publishes something after the look that follows wakes it.
    pub(crate) fn announce(&mut self, bed: Bed) -> u32 {
        let epoch = word::announce(self.own_word(), bed, sys::cpu());
        while !self.heavy().pass() {
            self.heavy_anew();
        }
        epoch
    }

    /// Says that somebody is about to sleep on the event, unless there is something. True: it may.
    #[cfg(feature = "std")]
    pub(crate) fn arm(&mut self) -> Result<bool, Error> {
        if !self.own_bell.has_event() {
            return Err(Error::EventMissing);
        }
        // Before the notice: a signal from now on is meant for it.
        let had_signal = self.own_bell.clear();
        self.announce(Bed::Event);
        if self.is_ready_now() {
            self.own_bell.pass_on(had_signal);
            return Ok(false);
        }
        self.tally.sleeps.add(1);
        Ok(true)
    }

    /// Sleeps once, unless there is something.
    fn sleep<T>(
        &mut self,
        bed: Bed,
        wait: &Wait,
        attempt: &mut impl FnMut(&mut H) -> Try<T>,
    ) -> Result<Option<T>, WaitError> {
        // Before the notice: a signal from now on is meant for it.
        let had_signal = bed == Bed::Event && self.own_bell.clear();
        let epoch = self.announce(bed);
        let result = self.attempt(attempt);
        if let Try::Done(value) = result {
            self.own_bell.pass_on(had_signal);
            return Ok(Some(value));
        }
        let until = self.sleeps_until(wait, matches!(result, Try::Busy));
        self.tally.sleeps.add(1);
        let word = self.own_word();
        let mut woken = match bed {
            Bed::Futex => sys::futex_wait(word, epoch, until),
            Bed::Event => self.own_bell.wait(until),
        };
        if woken == Woken::Refused {
            self.has_dozed = true;
            sys::doze(until);
            woken = Woken::TimedOut;
        }
        let is_woken = woken == Woken::Up;
        self.tally.wakes_received.add(is_woken.into());
        match self.attempt(attempt) {
            Try::Done(value) => {
                self.tally.found_unwoken.add((!is_woken).into());
                return Ok(Some(value));
            }
            _ => self.tally.spurious_wakes.add(is_woken.into()),
        }
        self.on_time(wait)?;
        Ok(None)
    }

    /// When a sleep that begins now ends at the latest.
    pub(crate) fn sleeps_until(&mut self, wait: &Wait, is_busy: bool) -> Deadline {
        let now = sys::now();
        if self.check_at.is_none() {
            self.check_at = self.slice.and_then(|slice| now.checked_add(slice));
        }
        let busy_until = if is_busy { now.checked_add(SHORT_SLICE) } else { None };
        sys::earlier(sys::earlier(wait.deadline, self.check_at), busy_until)
    }

    /// Ends a wait whose time is over or whose peer has died.
    pub(crate) fn on_time(&mut self, wait: &Wait) -> Result<(), WaitError> {
        let now = sys::now();
        if self.check_at.is_none_or(|check_at| check_at <= now) {
            let is_first = self.check_at.is_none();
            self.check_at = self.slice.and_then(|slice| now.checked_add(slice));
            if !is_first && self.is_peer_gone() {
                return Err(WaitError::PeerGone);
            }
        }
        match wait.deadline {
            Some(deadline) if deadline <= now => Err(WaitError::TimedOut),
            _ => Ok(()),
        }
    }

    /// Whether the other side has died.
    fn is_peer_gone(&mut self) -> bool {
        let PeerState { is_gone, left_something } = self.ring.peer_state(&self.liveness);
        if left_something {
            // It may be of use to others.
            self.notify_all();
        }
        is_gone
    }
}

/// A try that only looks.
pub(crate) fn try_ready<H: Handle>(ring: &mut H) -> Try<()> {
    if ring.is_ready() { Try::Done(()) } else { Try::Nothing }
}
