//! Waiting on several rings at once.

use alloc::vec::Vec;
use core::time::Duration;

use ring_core::Liveness;
use ring_core::sync::AtomicU64;

use crate::barrier::Heavy;
use crate::bell::Bell;
use crate::counters::Tally;
use crate::error::{WaitAnyError, WaitError};
use crate::report::SleepsOn;
use crate::ring::{Consumer, Handle, Producer};
use crate::side::{Side, TURNS_PER_LOOK, Wait};
use crate::strategy::{Budget, SharedCpu, Strategy};
use crate::sys::{self, Deadline, Woken};
use crate::word::{self, Bed};
use crate::{Counters, Receiver, Sender};

/// Waits for several handles at once, of any rings, for messages or for room.
///
/// The handles stay the caller's, and which ones they are may change from wait to wait. It spins as its own strategy
/// has it; for slices of sleep, liveness, barriers and events those of the handles count.
///
/// With [`Strategy::event`] it sleeps until one of the handles' events is signalled, which may be the same one. With
/// [`Strategy::futex`], and where a handle has no event, it sleeps on all their futexes at once (`futex_waitv`, Linux
/// 5.16). Where the kernel refuses that it looks once a millisecond, and [`sleeps_on`](Self::sleeps_on) says so.
///
/// ```
/// use ring_core::{HeapRegion, bytes, spsc};
/// use ring_notify::{AnyOf, Options, Strategy};
///
/// let layout = spsc::Layout::<u64>::new(16)?;
/// let region = HeapRegion::new(layout.bytes());
/// let (producer, consumer) = spsc::create(&region, &layout)?;
/// let mut quotes = Options::new().receiver(consumer)?;
/// let mut sender = Options::new().sender(producer)?;
///
/// let layout = bytes::Layout::new(4096)?;
/// let region = HeapRegion::new(layout.bytes());
/// let (_producer, consumer) = bytes::create(&region, &layout)?;
/// let mut orders = Options::new().receiver(consumer)?;
///
/// sender.send(7)?;
/// let mut any = AnyOf::new(Strategy::futex());
/// match any.wait(&mut [&mut orders, &mut quotes], None)? {
///     0 => unreachable!("no order was sent"),
///     _ => assert_eq!(quotes.try_recv(), Ok(Some(7))),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AnyOf {
    strategy: Strategy,
    budget: Budget,
    /// Which one is looked at first, so that each has its turn.
    first: usize,
    /// Waits that ended well so far.
    successes: u64,
    tally: Tally,
    sleeps_on: SleepsOn,
    shared_cpu: SharedCpu,
}

impl AnyOf {
    /// Waits as this strategy has it.
    #[must_use]
    pub fn new(strategy: Strategy) -> Self {
        let sleeps_on = match strategy.bed {
            None => SleepsOn::Nothing,
            Some(Bed::Futex) => SleepsOn::Futex,
            Some(Bed::Event) => SleepsOn::Event,
        };
        let (budget, tally) = (Budget::of(strategy.spin), Tally::default());
        Self { strategy, budget, first: 0, successes: 0, tally, sleeps_on, shared_cpu: SharedCpu::default() }
    }

    /// Waits until one of the handles is worth a try, and returns its index. None: as long as it takes. Handles that
    /// are ready all the time are returned in turn.
    ///
    /// In an mpmc ring another handle may be faster, so that the try gives nothing. A ring that is closed or corrupted has
    /// that to tell, whenever it is asked: leave it out from then on. Whoever finds nothing ready allocates a little.
    ///
    /// # Errors
    ///
    /// [`WaitAnyError::TimedOut`], and [`WaitAnyError::PeerGone`] if a [`liveness`](crate::Options::liveness) tells.
    ///
    /// # Panics
    ///
    /// If there is no handle, or there are more than 128.
    pub fn wait(
        &mut self,
        handles: &mut [&mut dyn Waits],
        timeout: Option<Duration>,
    ) -> Result<usize, WaitAnyError> {
        assert!((1..=sys::WAITV_MAX).contains(&handles.len()), "one waits for 1 to 128 handles");
        let count = handles.len();
        let from_first = (0..count).map(|offset| (self.first + offset) % count);
        let found = from_first.into_iter().find(|index| handles[*index].member().is_ready());
        let index = match found {
            Some(index) => index,
            None => self.wait_for_one(handles, timeout)?,
        };
        self.first = (index + 1) % count;
        self.successes = self.successes.wrapping_add(1);
        Ok(index)
    }

    fn wait_for_one(
        &mut self,
        handles: &mut [&mut dyn Waits],
        timeout: Option<Duration>,
    ) -> Result<usize, WaitAnyError> {
        let mut members: Vec<&mut dyn Member> = handles.iter_mut().map(|handle| handle.member()).collect();
        match self.wait_on(&mut members, Wait::up_to(timeout).deadline) {
            Ok(index) => Ok(index),
            // What came while the clock was looked at.
            Err(error) => self.look(&mut members).ok_or(error),
        }
    }

    /// What it has done so far. It wakes nobody.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.tally.read()
    }

    /// What the last wait that slept has slept on.
    #[must_use]
    pub fn sleeps_on(&self) -> SleepsOn {
        self.sleeps_on
    }

    /// The first that is worth a try.
    fn look(&self, members: &mut [&mut dyn Member]) -> Option<usize> {
        let count = members.len();
        (0..count).map(|offset| (self.first + offset) % count).find(|index| members[*index].is_ready())
    }

    /// Waits as the strategy has it.
    fn wait_on(
        &mut self,
        members: &mut [&mut dyn Member],
        deadline: Deadline,
    ) -> Result<usize, WaitAnyError> {
        let has_neighbour = members.iter().any(|member| word::was_neighbour(member.word()));
        let is_vain = self.shared_cpu.is_spinning_vain(has_neighbour);
        let mut turns = match self.strategy.bed {
            None => TURNS_PER_LOOK,
            Some(_) if is_vain => 0,
            Some(_) => self.budget.turns(),
        };
        let mut yields = self.strategy.yields;
        let mut is_first = true;
        loop {
            for turn in 1..=turns {
                ring_core::sync::spin_loop();
                if let Some(index) = self.look(members) {
                    self.tally.spins.add(turn.into());
                    return Ok(index);
                }
                if turn % TURNS_PER_LOOK == 0 {
                    on_time(members, deadline).inspect_err(|_| self.tally.spins.add(turn.into()))?;
                }
            }
            self.tally.spins.add(turns.into());
            for _ in 0..yields {
                sys::yield_now();
                self.tally.yields.add(1);
                if let Some(index) = self.look(members) {
                    self.shared_cpu.yielding_helped(is_vain);
                    return Ok(index);
                }
                on_time(members, deadline)?;
            }
            if is_first && self.strategy.bed.is_some() {
                self.shared_cpu = SharedCpu::default();
                self.budget.learn(sys::now(), self.successes);
                // Once a wait: a slice that is over is no reason to stay awake.
                (turns, yields, is_first) = (0, 0, false);
            }
            // What is due by now: then a sleep would end at once.
            on_time(members, deadline)?;
            let slept = self.strategy.bed.and_then(|bed| self.sleep(bed, members, deadline));
            if let Some(index) = slept {
                return Ok(index);
            }
        }
    }

    /// Sleeps once, unless there is something.
    fn sleep(&mut self, bed: Bed, members: &mut [&mut dyn Member], deadline: Deadline) -> Option<usize> {
        let bed = if members.iter().all(|member| member.bell().has_event()) { bed } else { Bed::Futex };
        // Before the notices: a signal from now on is meant for them.
        let had_signal: Vec<bool> =
            members.iter().map(|member| bed == Bed::Event && member.bell().clear()).collect();
        // One that reaches every core does for all. Each is asked, since it may have to ask for something in its turn.
        let heavies: Vec<Heavy> = members.iter_mut().map(|member| member.heavy()).collect();
        let is_everywhere = |heavy: &Heavy| *heavy == Heavy::Everywhere;
        let mut heaviest = heavies.into_iter().find(is_everywhere);
        let epochs: Vec<u32> =
            members.iter().map(|member| word::announce(member.word(), bed, sys::cpu())).collect();
        while !heaviest.unwrap_or(Heavy::Here { is_safe: true }).pass() {
            heaviest = members.iter_mut().map(|member| member.heavy_anew()).find(is_everywhere);
        }
        if let Some(index) = self.look(members) {
            for (member, had_signal) in members.iter().zip(had_signal) {
                member.bell().pass_on(had_signal);
            }
            return Some(index);
        }
        let until =
            members.iter_mut().fold(deadline, |until, member| sys::earlier(until, member.sleeps_until()));
        self.tally.sleeps.add(1);
        let mut woken = match bed {
            Bed::Futex => sys::futex_wait_any(
                members.iter().map(|member| member.word()).zip(epochs.iter().copied()),
                until,
            ),
            Bed::Event => crate::bell::wait_for_any(members.iter().map(|member| member.bell()), until),
        };
        self.sleeps_on = if bed == Bed::Futex { SleepsOn::Futex } else { SleepsOn::Event };
        if woken == Woken::Refused {
            self.sleeps_on = SleepsOn::Clock;
            sys::doze(until);
            woken = Woken::TimedOut;
        }
        let is_woken = woken == Woken::Up;
        self.tally.wakes_received.add(is_woken.into());
        let found = self.look(members);
        match found {
            Some(_) => self.tally.found_unwoken.add((!is_woken).into()),
            None => self.tally.spurious_wakes.add(is_woken.into()),
        }
        found
    }
}

/// Ends a wait whose time is over or one of whose peers has died.
fn on_time(members: &mut [&mut dyn Member], deadline: Deadline) -> Result<(), WaitAnyError> {
    if let Some(index) = members.iter_mut().position(|member| member.is_peer_gone()) {
        return Err(WaitAnyError::PeerGone { index });
    }
    match deadline {
        Some(deadline) if deadline <= sys::now() => Err(WaitAnyError::TimedOut),
        _ => Ok(()),
    }
}

/// A [`Receiver`] or a [`Sender`] of any ring, as one of several that are waited for.
///
/// Not to be implemented elsewhere.
pub trait Waits {
    #[doc(hidden)]
    fn member(&mut self) -> &mut dyn Member;
}

impl<C: Consumer, L: Liveness> Waits for Receiver<C, L> {
    fn member(&mut self) -> &mut dyn Member {
        &mut self.side
    }
}

impl<P: Producer, L: Liveness> Waits for Sender<P, L> {
    fn member(&mut self) -> &mut dyn Member {
        &mut self.side
    }
}

/// What waiting needs of each.
#[doc(hidden)]
#[expect(private_interfaces, reason = "nobody else implements it or calls it")]
pub trait Member {
    fn is_ready(&mut self) -> bool;
    fn bell(&self) -> &Bell;
    fn word(&self) -> &AtomicU64;
    fn heavy(&mut self) -> Heavy;
    fn heavy_anew(&mut self) -> Heavy;
    fn sleeps_until(&mut self) -> Deadline;
    fn is_peer_gone(&mut self) -> bool;
}

impl<H: Handle, L: Liveness> Member for Side<H, L> {
    fn is_ready(&mut self) -> bool {
        self.is_ready_now()
    }

    fn bell(&self) -> &Bell {
        &self.own_bell
    }

    fn word(&self) -> &AtomicU64 {
        self.own_word()
    }

    fn heavy(&mut self) -> Heavy {
        Side::heavy(self)
    }

    fn heavy_anew(&mut self) -> Heavy {
        Side::heavy_anew(self)
    }

    fn sleeps_until(&mut self) -> Deadline {
        Side::sleeps_until(self, &Wait::default(), false)
    }

    fn is_peer_gone(&mut self) -> bool {
        self.on_time(&Wait::default()) == Err(WaitError::PeerGone)
    }
}
