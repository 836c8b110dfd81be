//! A loop on each CPU, and a reader that counts around them.
//!
//! After a gap the loop asks for its thread's counters, a system call of some 0.3 µs. What the kernel tells of
//! interrupts takes some 70 µs to read, and would be the largest disturbance itself: the reader does that before and
//! after.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use ring_tune::{Clock, CpuSet, Tree, current_cpu, pin_to};

use super::gaps::Gaps;
use super::report::{OfCpu, Report};
use super::signals::Signals;
use super::spin::{Cost, Rules, Spun, spin};
use super::window::Sample;
use crate::say::warn;

/// A gap is at least so many steps of the loop: a step varies by some cache misses.
const STEPS_OF_A_GAP: u64 = 10;

const LEAST_THRESHOLD_NS: f64 = 1_000.0;

const BETWEEN_SIGNS: Duration = Duration::from_secs(1);

/// Threads that are to end are looked at so often.
const A_WHILE: Duration = Duration::from_millis(10);

/// A thread that has not ended so long after it was told does not get its CPU.
const PATIENCE: Duration = Duration::from_secs(1);

/// What to measure.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) cpus: CpuSet,
    pub(super) time: Duration,
    pub(super) threshold_ns: Option<f64>,
}

/// A thread that is pinned, and knows what its loop costs.
#[derive(Debug, Clone, Copy)]
struct Ready {
    task: u32,
    cost: Cost,
}

/// The two ends of a thread that the reader holds.
struct Spinner<'scope> {
    cpu: usize,
    is_ready: Receiver<Result<Ready, ring_tune::Error>>,
    go: Sender<Rules>,
    thread: thread::ScopedJoinHandle<'scope, Option<(Spun, bool)>>,
}

pub(super) fn measure(order: &Order) -> anyhow::Result<Report> {
    let tree = Tree::live();
    let clock = Clock::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Whatever fails, the threads end with the senders that they wait for.
        let start = |cpu| Spinner::start(scope, cpu, &clock, &stop);
        let spinners = order.cpus.iter().map(start).collect::<io::Result<Vec<_>>>();
        let spinners = spinners.context("cannot start a thread for each CPU")?;
        let ready = spinners.iter().map(Spinner::is_ready).collect::<anyhow::Result<Vec<_>>>()?;
        let rules = rules(order, &clock, &ready)?;

        // Until here a signal ends the program as ever, since there is nothing to report; from now on none cuts the
        // report off.
        let signals = Signals::block().context("cannot wait for signals")?;
        let before = Sample::take(&tree);
        for spinner in &spinners {
            // One that has ended is found when it is joined.
            let _ = spinner.go.send(rules);
        }
        let have_ended = || spinners.iter().all(|spinner| spinner.thread.is_finished());
        let ended_early = wait(order.time, &signals, &stop, have_ended);
        if !have_ended() {
            signals.unblock();
        }
        let spun = spinners.into_iter().map(Spinner::join).collect::<anyhow::Result<Vec<_>>>()?;
        let after = Sample::take(&tree);

        let tasks = after.tasks_since(&before, &order.cpus, &tree);
        let cost_ns = |cost: Cost| [cost.step, cost.look].map(|ticks| clock.ticks_to_ns(ticks));
        let of_cpus = spun.into_iter().zip(ready).map(|((cpu, spun, has_stayed), ready)| {
            let seen = after.since(&before, cpu, &tasks, ready.task);
            OfCpu::new(cpu, cost_ns(ready.cost), &spun, has_stayed, seen)
        });
        let of_cpus = of_cpus.collect();
        let threshold_ns = clock.ticks_to_ns(rules.threshold).round();
        Ok(Report::new(&tree, threshold_ns, ended_early, of_cpus, after.pressure_since(&before)))
    })
}

impl<'scope> Spinner<'scope> {
    fn start(
        scope: &'scope thread::Scope<'scope, '_>,
        cpu: usize,
        clock: &'scope Clock,
        stop: &'scope AtomicBool,
    ) -> io::Result<Self> {
        let (ready, is_ready) = channel();
        let (go, may_go) = channel();
        let body = move || spinner(cpu, clock, &ready, &may_go, stop);
        let thread = thread::Builder::new().name(format!("spin-{cpu}")).spawn_scoped(scope, body)?;
        Ok(Self { cpu, is_ready, go, thread })
    }

    fn is_ready(&self) -> anyhow::Result<Ready> {
        let ready = self.is_ready.recv().map_err(|_| anyhow!("the thread of CPU {} ended", self.cpu))?;
        ready.with_context(|| format!("cannot spin on CPU {}", self.cpu))
    }

    fn join(self) -> anyhow::Result<(usize, Spun, bool)> {
        let spun = self.thread.join().ok().flatten();
        let (spun, has_stayed) = spun.with_context(|| format!("the thread of CPU {} ended", self.cpu))?;
        Ok((self.cpu, spun, has_stayed))
    }
}

/// The life of a thread: what it saw, and whether it was where it was to be until the end; none if it was not to start.
fn spinner(
    cpu: usize,
    clock: &Clock,
    ready: &Sender<Result<Ready, ring_tune::Error>>,
    may_go: &Receiver<Rules>,
    stop: &AtomicBool,
) -> Option<(Spun, bool)> {
    // The signals are for the reader.
    let _ = Signals::block();
    let prepared = pin_to(cpu).map(|()| Ready { task: own_task(), cost: Cost::measure(clock) });
    let cost = prepared.as_ref().ok().map(|ready| ready.cost);
    let gaps = Gaps::new();
    ready.send(prepared).ok()?;
    let rules = may_go.recv().ok()?;
    let spun = spin(clock, cost?, rules, gaps, stop);
    Some((spun, current_cpu().is_ok_and(|now| now == cpu)))
}

/// 0, which is no task's, where /proc does not tell.
fn own_task() -> u32 {
    let own = fs::read_link("/proc/thread-self").ok();
    own.and_then(|path| path.file_name()?.to_str()?.parse().ok()).unwrap_or(0)
}

fn rules(order: &Order, clock: &Clock, ready: &[Ready]) -> anyhow::Result<Rules> {
    let step = ready.iter().map(|ready| ready.cost.step).max().unwrap_or(0);
    let least = step.saturating_mul(STEPS_OF_A_GAP).max(ticks(clock, LEAST_THRESHOLD_NS * 1e-9));
    let mut threshold = least;
    if let Some(named_ns) = order.threshold_ns {
        let step_ns = clock.ticks_to_ns(step);
        ensure!(
            named_ns >= 2.0 * step_ns,
            "--threshold-ns {named_ns}: a step of the loop itself takes {step_ns:.0} ns; name twice that at least"
        );
        threshold = ticks(clock, named_ns * 1e-9);
    }
    Ok(Rules { look: least.min(threshold), threshold, length: ticks(clock, order.time.as_secs_f64()) })
}

#[allow(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
fn ticks(clock: &Clock, seconds: f64) -> u64 {
    (seconds * clock.hz()) as u64
}

/// Waits until the threads have ended, with a sign of life for people. A signal has them stop; whether one came.
fn wait(time: Duration, signals: &Signals, stop: &AtomicBool, have_ended: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    let has_reader = io::stderr().is_terminal() && time > 3 * BETWEEN_SIGNS;
    let mut told: Option<Instant> = None;
    while !have_ended() && told.is_none_or(|at| at.elapsed() < PATIENCE) {
        let left = time.saturating_sub(begin.elapsed());
        if has_reader {
            let passed = time.saturating_sub(left);
            warn(format_args!("\rspinning: {} of {} s ", passed.as_secs(), time.as_secs()));
        }
        let longest = if told.is_some() || left.is_zero() { A_WHILE } else { left };
        if signals.wait(if has_reader { longest.min(BETWEEN_SIGNS) } else { longest }) {
            told.get_or_insert_with(Instant::now);
            // ORDERING: Relaxed: it says nothing about other memory.
            stop.store(true, Ordering::Relaxed);
        }
    }
    if has_reader {
        // ECMA-48, erase in line: the report stands where the signs were.
        warn(format_args!("\r\x1b[K"));
    }
    told.is_some()
}
