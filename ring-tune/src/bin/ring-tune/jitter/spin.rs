//! The loop.

use core::sync::atomic::{AtomicBool, Ordering};

use ring_tune::Clock;

use super::gaps::{Cause, Gap, Gaps, Slices};
use super::usage::Usage;

/// How often the loop's own cost is looked at: long enough for a median that a pre-emption does not move.
const STEPS: usize = 4_096;

/// What a turn of the loop costs on a CPU, in ticks: medians.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// From one stamp to the next.
    pub(super) step: u64,
    /// Asking the kernel for the thread's counters, and recording.
    pub(super) look: u64,
}

impl Cost {
    pub(super) fn measure(clock: &Clock) -> Self {
        let mut scratch = Gaps::new();
        Self {
            step: median(clock, || ()),
            look: median(clock, || {
                let cause = Cause::of(Usage::now());
                scratch.record(Gap { at_seconds: 0.0, ns: 1.0, cause });
            }),
        }
    }
}

fn median(clock: &Clock, mut act: impl FnMut()) -> u64 {
    let mut steps = vec![0; STEPS];
    let mut last = clock.start();
    for step in &mut steps {
        act();
        let now = clock.start();
        *step = now.saturating_sub(last);
        last = now;
    }
    steps.sort_unstable();
    steps[STEPS / 2]
}

/// How long things are, in ticks. A thread that gets its CPU late runs as long as the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// After a step of this length the kernel is asked what it counted, so that a later gap is not put down to it.
    pub(super) look: u64,
    /// From this length on a step is a gap.
    pub(super) threshold: u64,
    /// How long the loop runs.
    pub(super) length: u64,
}

/// What a loop saw.
#[derive(Debug)]
pub(super) struct Spun {
    pub(super) gaps: Gaps,
    pub(super) ns: f64,
    /// Over the whole time.
    pub(super) usage: Usage,
}

/// Spins until the end, or until it is told to stop; allocates nothing.
pub(super) fn spin(clock: &Clock, cost: Cost, rules: Rules, gaps: Gaps, stop: &AtomicBool) -> Spun {
    // ORDERING: Relaxed: it says nothing about other memory.
    let is_over = || stop.load(Ordering::Relaxed);
    spin_by(|| clock.start(), Usage::now, is_over, clock, (cost, rules), gaps)
}

/// The same, with what the loop reads given.
pub(super) fn spin_by(
    stamp: impl Fn() -> u64,
    counted: impl Fn() -> Usage,
    is_over: impl Fn() -> bool,
    clock: &Clock,
    (cost, rules): (Cost, Rules),
    mut gaps: Gaps,
) -> Spun {
    gaps.slices = Slices::of(clock.ticks_to_ns(rules.length));
    let before = counted();
    let mut usage = before;
    let begin = stamp();
    let end = begin.saturating_add(rules.length);
    let mut last = begin;
    let mut looked = false;
    loop {
        // Asked before the stamp: a gap in which it was told to stop is seen all the same.
        let is_last = is_over();
        let now = stamp();
        // Looking takes part in the step after it, some of it from cold caches, and is no gap; what came on top of it
        // is one like any other.
        let (own, slack) = if looked { (cost.look, cost.look.saturating_mul(4)) } else { (0, 0) };
        let step = now.saturating_sub(last);
        last = now;
        looked = step >= rules.look.saturating_add(slack);
        if looked {
            let later = counted();
            let length = step.saturating_sub(own);
            if length >= rules.threshold {
                gaps.record(Gap {
                    at_seconds: clock.ticks_to_ns(now.saturating_sub(begin)) / 1e9,
                    ns: clock.ticks_to_ns(length),
                    cause: Cause::of(later.since(usage)),
                });
            }
            usage = later;
        }
        if now >= end || is_last {
            return Spun {
                gaps,
                ns: clock.ticks_to_ns(now.saturating_sub(begin)),
                usage: counted().since(before),
            };
        }
    }
}
