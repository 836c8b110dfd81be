//! The time of one operation, taken apart by its steps.

mod breakdown;
#[cfg(test)]
mod tests;

use std::boxed::Box;
use std::vec::Vec;

use crate::{Clock, Error, Recorder};
pub use breakdown::{Breakdown, Part};

/// Begins what [`Stages::to_bytes`] writes.
const FORMAT: &[u8; 8] = b"ringstg1";

/// Empty operations, of which the median tells what a step costs.
const TRIALS: usize = 1_001;

/// Records how long each of `N` named steps of an operation takes, and the whole of them.
///
/// A stamp is taken when a step is passed: earlier code is done by then, and later code has not begun. What a step shows
/// in which nothing happens (some 20 to 40 ns) is measured when this is made and taken off; a step that was shorter took
/// 0 ns. The whole is the sum of the steps. Recording allocates nothing and never fails; an operation that is given up,
/// passes a step out of turn, or whose clock went back is left out of the figures and counted. Each step takes the memory
/// of a [`Recorder`].
///
/// ```
/// use ring_tune::{Clock, Stages};
///
/// const ENCODE: usize = 0;
/// const SEND: usize = 1;
///
/// let mut stages = Stages::new(Clock::new(), ["encode", "send"]);
/// for _ in 0..100 {
///     let mut operation = stages.begin();
///     std::hint::black_box("a message".len());
///     operation.passed(ENCODE);
///     std::hint::spin_loop();
///     operation.passed(SEND);
/// }
/// let breakdown = stages.breakdown().expect("100 operations were recorded");
/// assert_eq!(breakdown.whole.count, 100);
/// assert_eq!(breakdown.parts[SEND].name, "send");
/// println!("{breakdown}{:?} taken off", stages.costs_ns());
///
/// stages.begin().passed(SEND);
/// drop(stages.begin());
/// assert_eq!((stages.misordered(), stages.abandoned(), stages.count()), (1, 1, 100));
/// ```
#[derive(Debug, Clone)]
pub struct Stages<const N: usize> {
    clock: Clock,
    names: [&'static str; N],
    parts: Box<[Recorder; N]>,
    whole: Recorder,
    /// What is taken off each step of an [`Operation`].
    empty_ns: [f64; N],
    /// What is taken off where stamps come from elsewhere.
    pair_ns: f64,
    abandoned: u64,
    misordered: u64,
}

/// An operation on its way; what is dropped before its last step was passed is counted as given up.
#[derive(Debug)]
#[must_use = "an operation that passes no step is counted as given up"]
pub struct Operation<'a, const N: usize> {
    stages: &'a mut Stages<N>,
    start: u64,
    passed: [u64; N],
    next: usize,
    is_misordered: bool,
}

impl<const N: usize> Stages<N> {
    /// Names the steps in the order in which an operation passes them, and measures in a thousand trials what empty ones
    /// show.
    ///
    /// # Panics
    ///
    /// If there are no steps.
    #[must_use]
    pub fn new(clock: Clock, names: [&'static str; N]) -> Self {
        assert!(N > 0, "an operation has one step at least");
        let mut trial = Self::taking_off(clock, names, [0.0; N], 0.0);
        for _ in 0..TRIALS {
            let mut operation = trial.begin();
            (0..N).for_each(|step| operation.passed(step));
        }
        let empty_ns = trial.parts.each_ref().map(|part| part.quantile_ns(0.5).unwrap_or(0.0));
        Self::taking_off(clock, names, empty_ns, clock.measure_cost_ns())
    }

    fn taking_off(clock: Clock, names: [&'static str; N], empty_ns: [f64; N], pair_ns: f64) -> Self {
        let parts = Box::new(core::array::from_fn(|_| Recorder::new()));
        let whole = Recorder::new();
        Self { clock, names, parts, whole, empty_ns, pair_ns, abandoned: 0, misordered: 0 }
    }

    /// Stamps the start of an operation.
    #[inline]
    pub fn begin(&mut self) -> Operation<'_, N> {
        let start = self.clock.start();
        Operation { stages: self, start, passed: [0; N], next: 0, is_misordered: false }
    }

    /// Records an operation whose stamps were taken elsewhere, raw ticks of the same clock in another thread or process:
    /// when it began, and when it passed each step. [`Clock::measure_cost_ns`] is taken off each.
    ///
    /// ```
    /// use ring_tune::{Clock, Stages};
    ///
    /// let mut stages = Stages::new(Clock::monotonic(), ["sent", "received"]);
    /// stages.record(1_000, &[1_500, 3_500]);
    /// stages.record(1_000, &[1_500, 900]);
    /// assert_eq!((stages.count(), stages.misordered()), (1, 1));
    /// ```
    pub fn record(&mut self, start: u64, passed: &[u64; N]) {
        self.add(start, passed, [self.pair_ns; N]);
    }

    fn add(&mut self, start: u64, passed: &[u64; N], costs_ns: [f64; N]) {
        let mut last = start;
        let steps_ns = passed.map(|stamp| self.clock.between_ns(core::mem::replace(&mut last, stamp), stamp));
        if steps_ns.iter().any(|&ns| ns < 0.0) {
            self.misordered = self.misordered.saturating_add(1);
            return;
        }
        let mut whole_ns = 0.0;
        for ((part, step_ns), cost_ns) in self.parts.iter_mut().zip(steps_ns).zip(costs_ns) {
            let own_ns = (step_ns - cost_ns).max(0.0);
            part.record(own_ns);
            whole_ns += own_ns;
        }
        self.whole.record(whole_ns);
    }

    /// How many operations the figures stand on.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.whole.count()
    }

    /// How many operations were given up before their last step.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// How many operations passed a step out of turn, or had a stamp before its predecessor.
    #[must_use]
    pub fn misordered(&self) -> u64 {
        self.misordered
    }

    /// What is taken off each step of an [`Operation`], in nanoseconds.
    #[must_use]
    pub fn costs_ns(&self) -> &[f64; N] {
        &self.empty_ns
    }

    /// The figures of each step and of the whole; `None` while nothing is recorded.
    #[must_use]
    pub fn breakdown(&self) -> Option<Breakdown> {
        let whole = self.whole.summary()?;
        let whole_ns: f64 = self.parts.iter().map(Recorder::sum_ns).sum();
        let part = |(name, recorder): (&&'static str, &Recorder)| {
            // Not a number where both are zero, or beyond all numbers.
            let share = Some(recorder.sum_ns() / whole_ns).filter(|share| share.is_finite()).unwrap_or(0.0);
            Some(Part { name, summary: recorder.summary()?, share })
        };
        let parts = self.names.iter().zip(self.parts.iter()).map(part).collect::<Option<_>>()?;
        Some(Breakdown { parts, whole, abandoned: self.abandoned, misordered: self.misordered })
    }

    /// What was recorded, for [`merge_bytes`](Self::merge_bytes) in another process.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORMAT.to_vec();
        for number in [N as u64, self.abandoned, self.misordered] {
            bytes.extend(number.to_le_bytes());
        }
        for name in self.names {
            put(&mut bytes, name.as_bytes());
        }
        for recorder in self.parts.iter().chain([&self.whole]) {
            put(&mut bytes, &recorder.to_bytes());
        }
        bytes
    }

    /// Adds what another process recorded of the same steps; nothing is added where it fails.
    ///
    /// # Errors
    ///
    /// [`Error::RecorderBytes`] for what [`to_bytes`](Self::to_bytes) did not write, [`Error::OtherStages`] where the
    /// steps have other names.
    ///
    /// ```
    /// use ring_tune::{Clock, Stages};
    ///
    /// let mut here = Stages::new(Clock::monotonic(), ["sent", "received"]);
    /// let mut there = here.clone();
    /// there.record(1_000, &[1_500, 3_500]);
    /// here.merge_bytes(&there.to_bytes())?;
    /// assert_eq!(here.count(), 1);
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    pub fn merge_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let ([steps, abandoned, misordered], mut rest) = header(bytes).ok_or(Error::RecorderBytes)?;
        if steps != N as u64 {
            return Err(Error::OtherStages);
        }
        for name in self.names {
            if take(&mut rest).ok_or(Error::RecorderBytes)? != name.as_bytes() {
                return Err(Error::OtherStages);
            }
        }
        let mut recorders = Vec::with_capacity(N + 1);
        for _ in 0..=N {
            recorders.push(Recorder::from_bytes(take(&mut rest).ok_or(Error::RecorderBytes)?)?);
        }
        if !rest.is_empty() || recorders.iter().any(|recorder| recorder.count() != recorders[N].count()) {
            return Err(Error::RecorderBytes);
        }
        for (own, other) in self.parts.iter_mut().chain([&mut self.whole]).zip(&recorders) {
            own.merge(other);
        }
        self.abandoned = self.abandoned.saturating_add(abandoned);
        self.misordered = self.misordered.saturating_add(misordered);
        Ok(())
    }
}

impl<const N: usize> Operation<'_, N> {
    /// Stamps the end of a step, named by its place; the last one records the operation. One that is passed after the last
    /// is counted as out of turn, too.
    #[inline]
    pub fn passed(&mut self, stage: usize) {
        let stamp = self.stages.clock.stop();
        match self.passed.get_mut(stage) {
            Some(place) if stage == self.next => *place = stamp,
            _ => self.is_misordered = true,
        }
        self.next += 1;
        if self.next == N && !self.is_misordered {
            self.stages.add(self.start, &self.passed, self.stages.empty_ns);
        }
    }
}

impl<const N: usize> Drop for Operation<'_, N> {
    fn drop(&mut self) {
        if self.is_misordered {
            self.stages.misordered = self.stages.misordered.saturating_add(1);
        } else if self.next < N {
            self.stages.abandoned = self.stages.abandoned.saturating_add(1);
        }
    }
}

/// Adds bytes with their number before them.
fn put(bytes: &mut Vec<u8>, more: &[u8]) {
    bytes.extend((more.len() as u64).to_le_bytes());
    bytes.extend(more);
}

/// Takes what [`put`] added.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (taken, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *bytes = rest;
    Some(taken)
}

/// The numbers at the beginning, and what follows them.
fn header(bytes: &[u8]) -> Option<([u64; 3], &[u8])> {
    let mut rest = bytes.strip_prefix(FORMAT)?;
    let mut numbers = [0; 3];
    for number in &mut numbers {
        let (bytes, behind) = rest.split_first_chunk()?;
        *number = u64::from_le_bytes(*bytes);
        rest = behind;
    }
    Some((numbers, rest))
}
