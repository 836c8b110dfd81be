//! What sleeps when a task waits.
//!
//! # Safety
//!
//! The runtime registers a descriptor that it owns from then on, that nobody exchanges, and that nobody else has: it is
//! a duplicate of the event's.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::catch_unwind;

use ::tokio::io::Interest;
use ::tokio::io::unix::AsyncFd;
use ::tokio::task::coop;
use ::tokio::time::{Instant, Sleep, sleep_until};
use ring_core::Liveness;

use crate::error::{Error, WaitError};
use crate::ring::{Handle, Try};
use crate::side::{Side, Wait};
use crate::sys::{self, Deadline};
use crate::word::Bed;

/// How the wait of a task stands.
#[derive(Debug)]
pub(super) struct Sleeper {
    event: AsyncFd<OwnedFd>,
    /// None: never needed so far, and perhaps the runtime has no clock.
    timer: Option<Pin<Box<Sleep>>>,
    /// What it is set for; none: it has rung.
    set_for: Deadline,
    /// A notice went out, the look after it found nothing, and no edge has come since.
    is_asleep: bool,
}

impl Sleeper {
    /// Has a side sleep on its event, whatever its strategy says.
    pub(super) fn new<H: Handle, L>(side: &mut Side<H, L>) -> Result<Self, Error> {
        let event = side.own_bell.event().ok_or(Error::EventMissing)?;
        // Each handle has one of its own: a runtime takes no descriptor twice.
        let descriptor = event.as_fd().try_clone_to_owned().map_err(|error| refused(&error))?;
        let event = register(descriptor)?;
        if side.strategy.bed.replace(Bed::Event).is_none() {
            side.heavy();
        }
        Ok(Self { event, timer: None, set_for: None, is_asleep: false })
    }

    /// Tries once, or twice if it is about to sleep; Pending: the task will be woken.
    #[inline]
    pub(super) fn poll<H: Handle, L: Liveness, T>(
        &mut self,
        side: &mut Side<H, L>,
        context: &mut Context<'_>,
        mut attempt: impl FnMut(&mut H) -> Try<T>,
    ) -> Poll<Result<T, WaitError>> {
        // A ring that always has something does not keep other tasks from running.
        let progress = ready!(coop::poll_proceed(context));
        let result = self.poll_within_budget(side, context, &mut attempt);
        if result.is_ready() {
            progress.made_progress();
        }
        result
    }

    fn poll_within_budget<H: Handle, L: Liveness, T>(
        &mut self,
        side: &mut Side<H, L>,
        context: &mut Context<'_>,
        attempt: &mut impl FnMut(&mut H) -> Try<T>,
    ) -> Poll<Result<T, WaitError>> {
        let mut is_slice_over = false;
        loop {
            let is_woken = self.is_asleep && self.take_edge(context);
            self.is_asleep &= !is_woken;
            side.tally.wakes_received.add(is_woken.into());
            let mut result = side.attempt(attempt);
            if let Try::Done(value) = result {
                if is_slice_over || self.is_asleep && self.has_timer_rung() {
                    self.is_asleep = false;
                    side.tally.found_unwoken.add(1);
                }
                return Poll::Ready(Ok(value));
            }
            side.tally.spurious_wakes.add(is_woken.into());
            if !self.is_asleep {
                if !is_woken {
                    self.take_edge(context);
                }
                side.announce(Bed::Event);
                result = side.attempt(attempt);
                if let Try::Done(value) = result {
                    return Poll::Ready(Ok(value));
                }
                self.is_asleep = true;
                side.tally.sleeps.add(1);
            }
            let until = side.sleeps_until(&Wait::default(), matches!(result, Try::Busy));
            ready!(self.poll_timer(context, until));
            (self.is_asleep, is_slice_over) = (false, true);
            if let Err(error) = side.on_time(&Wait::default()) {
                // What came while the clock was looked at, or was the last that the other side did.
                return Poll::Ready(match side.attempt(attempt) {
                    Try::Done(value) => Ok(value),
                    _ => Err(error),
                });
            }
        }
    }

    /// Takes the runtime's note of an edge, and says whether there was one. The next one wakes the task.
    fn take_edge(&self, context: &mut Context<'_>) -> bool {
        let Poll::Ready(note) = self.event.poll_read_ready(context) else { return false };
        let mut note = note.expect("the runtime in which the handle was made is still there");
        // It clears nothing that came after it.
        note.clear_ready();
        if self.event.poll_read_ready(context).is_ready() {
            // Another edge since, which the next poll takes.
            context.waker().wake_by_ref();
        }
        true
    }

    fn has_timer_rung(&self) -> bool {
        self.set_for.is_some() && self.timer.as_ref().is_some_and(|timer| timer.is_elapsed())
    }

    fn poll_timer(&mut self, context: &mut Context<'_>, until: Deadline) -> Poll<()> {
        let Some(time) = until else { return Poll::Pending };
        if self.set_for != until {
            // This clock first, so that the time has come by it when the timer rings.
            let left = time.saturating_sub(sys::now());
            let Some(instant) = Instant::now().checked_add(left) else { return Poll::Pending };
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(instant),
                None => self.timer = Some(Box::pin(sleep_until(instant))),
            }
            self.set_for = until;
        }
        if let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(context));
        }
        self.set_for = None;
        Poll::Ready(())
    }
}

fn register(descriptor: OwnedFd) -> Result<AsyncFd<OwnedFd>, Error> {
    // SAFETY: this gives the runtime a duplicate that nobody else has, and that nobody exchanges.
    let register = || unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    // A runtime says by a panic alone that it has no I/O, or that there is none.
    match catch_unwind(AssertUnwindSafe(register)) {
        Ok(Ok(event)) => Ok(event),
        Ok(Err(error)) => Err(refused(&error.into())),
        Err(_) => Err(Error::Runtime { errno: 0 }),
    }
}

fn refused(error: &io::Error) -> Error {
    Error::Runtime { errno: error.raw_os_error().unwrap_or(0) }
}
