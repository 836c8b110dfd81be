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

/// How long a step is a gap, and how long the loop runs, in ticks. A thread that gets its CPU late runs as long as the
/// others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) threshold: u64,
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
pub(super) fn spin(clock: &Clock, cost: Cost, rules: Rules, mut gaps: Gaps, stop: &AtomicBool) -> Spun {
    let before = Usage::now();
    let mut usage = before;
    let begin = clock.start();
    let end = begin.saturating_add(rules.length);
    gaps.slices = Slices::of(clock.ticks_to_ns(rules.length));
    let mut last = begin;
    let mut looked = false;
    loop {
        let now = clock.start();
        // Looking takes part in the step after it, some of it from cold caches, and is no gap; what came on top of it
        // is one like any other.
        let (own, slack) = if looked { (cost.look, cost.look.saturating_mul(4)) } else { (0, 0) };
        let step = now.saturating_sub(last);
        last = now;
        looked = step > rules.threshold.saturating_add(slack);
        if looked {
            let later = Usage::now();
            gaps.record(Gap {
                at_seconds: clock.ticks_to_ns(now.saturating_sub(begin)) / 1e9,
                ns: clock.ticks_to_ns(step.saturating_sub(own)),
                cause: Cause::of(later.since(usage)),
            });
            usage = later;
        }
        // ORDERING: Relaxed: it says nothing about other memory.
        if now >= end || stop.load(Ordering::Relaxed) {
            return Spun {
                gaps,
                ns: clock.ticks_to_ns(now.saturating_sub(begin)),
                usage: Usage::now().since(before),
            };
        }
    }
}
