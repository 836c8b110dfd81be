//! What a suite measures: arms, series of slices over them, and the cases that are made from series.

#[cfg(test)]
mod tests;

use core::time::Duration;

use measure::threads::Threads;
use measure::{Pace, Reader, Slice};

use super::arms::Spec;
use super::memory::Kind;

/// Lines of the floor of whatever has no slots.
pub(crate) const FLOOR_LINES: usize = 16;

/// How much a run measures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Rounds over all arms.
    pub(crate) rounds: u32,
    /// Shorter slices.
    pub(crate) quick: bool,
    /// Other crates as well.
    pub(crate) compare: bool,
    /// No round begins after this time in a suite.
    pub(crate) at_most: Option<Duration>,
}

/// One arm in one mode: slices of it run in each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) arm: usize,
    /// What runs close to the slices of the others, between those of the floor: short, for the ratio.
    pub(crate) closely: Option<Slice>,
    /// What runs afterwards, in rounds that count: longer, for the tails.
    pub(crate) afterwards: Option<Slice>,
}

/// Where the figures of a case come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// One series.
    One(usize),
    /// In each round the fastest of these.
    Fastest([usize; 2]),
}

impl Source {
    /// The series that it may come from.
    pub(crate) fn series(&self) -> &[usize] {
        match self {
            Self::One(series) => core::slice::from_ref(series),
            Self::Fastest(series) => series,
        }
    }
}

/// A row of the report.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) source: Source,
    /// What it is compared with, in each round; nothing where there is no second CPU.
    pub(crate) floor: Option<Source>,
    /// What runs once more, after all rounds, while the system calls of both processes are counted.
    pub(crate) counted: Option<Slice>,
}

/// All that a suite measures.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) suite: &'static str,
    pub(crate) scale: Scale,
    /// Whether two CPUs are there.
    pub(crate) pair: bool,
    pub(crate) specs: Vec<Spec>,
    pub(crate) series: Vec<Series>,
    pub(crate) cases: Vec<Case>,
    /// What a round begins and ends with: the floor. Nothing where there is no second CPU.
    pub(crate) edges: Option<Source>,
    /// Cases that this host cannot run, and why.
    pub(crate) missing: Vec<(String, String)>,
}

impl Plan {
    /// No case yet.
    pub(crate) fn new(suite: &'static str, scale: Scale, pair: bool) -> Self {
        let mut plan = Self {
            suite,
            scale,
            pair,
            specs: vec![],
            series: vec![],
            cases: vec![],
            edges: None,
            missing: vec![],
        };
        plan.edges = pair.then(|| plan.floor(Kind::Usual, FLOOR_LINES));
        plan
    }

    /// Adds a case of round trips.
    pub(crate) fn round_trips(&mut self, name: &str, spec: Spec) {
        if self.takes(name, spec.needs_one_cpu()) {
            let (closely, afterwards) = round_trip_slices(&spec, self.scale);
            let source = Source::One(self.series(spec, closely, afterwards));
            self.add(name, source, &spec, None);
        }
    }

    /// Adds a case of messages that are due at fixed gaps, or with no gap as soon as the one before was taken.
    pub(crate) fn paced(&mut self, name: &str, spec: Spec, gap_ns: u64) {
        // The sender spins, whatever the receiver does.
        if self.takes(name, false) {
            let (slice, counted) = paced_slices(gap_ns, self.scale);
            let source = Source::One(self.series(spec, None, Some(slice)));
            self.add(name, source, &spec, Some(counted));
        }
    }

    /// Adds a case of streaming.
    pub(crate) fn stream(&mut self, name: &str, spec: Spec, reader: Reader) {
        if self.takes(name, spec.needs_one_cpu()) {
            let messages = if self.scale.quick { 20_000 } else { 40_000 };
            // What calls the kernel for each message takes twenty times as long.
            let messages = if spec.channel().is_some() { messages / 2 } else { messages };
            let source = Source::One(self.series(spec, Some(Slice::Stream { reader, messages }), None));
            let flood = Slice::Paced { pace: Pace::Flood, warm_up: messages / 10, messages };
            self.add(name, source, &spec, matches!(spec, Spec::Notify(_)).then_some(flood));
        }
    }

    /// Adds a floor as a case of its own. It is compared with the usual floor.
    pub(crate) fn floor_case(&mut self, name: &str, kind: Kind, lines: usize) {
        if self.takes(name, false) {
            let source = self.floor(kind, lines);
            for &series in source.series() {
                let series = &mut self.series[series];
                series.afterwards = round_trip_slices(&self.specs[series.arm], self.scale).1;
            }
            let usual = Spec::Rotating { kind: Kind::Usual, lines: FLOOR_LINES };
            self.add(name, source, &usual, None);
        }
    }

    /// Says that a case cannot be had here.
    pub(crate) fn miss(&mut self, name: &str, reason: &str) {
        self.missing.push((name.into(), reason.into()));
    }

    /// Takes the cases of one kind of memory out: the host does not have it. Their slices still run.
    pub(crate) fn forget(&mut self, kind: Kind, reason: &str) {
        let lies_there = |case: &Case| {
            let mut arms = case.source.series().iter().map(|&series| self.series[series].arm);
            arms.any(|arm| self.specs[arm].kind() == kind)
        };
        let (gone, kept) = self.cases.clone().into_iter().partition(lies_there);
        self.cases = kept;
        let gone: Vec<Case> = gone;
        for case in gone {
            self.miss(&case.name, reason);
        }
    }

    fn takes(&mut self, name: &str, needs_one_cpu: bool) -> bool {
        let takes = self.pair || needs_one_cpu;
        if !takes {
            self.miss(name, "needs two CPUs");
        }
        takes
    }

    fn add(&mut self, name: &str, source: Source, spec: &Spec, counted: Option<Slice>) {
        let floor = self.pair.then(|| self.floor_of(spec));
        self.cases.push(Case { name: name.into(), source, floor, counted });
    }

    /// The protocol-free exchange over a line each way: always the same, or as many in turn as a ring has slots.
    ///
    /// A line each way, since message and answer of two rings never share one. What a single line for both ways
    /// does is another thing: processors that hand a line over for writing when it was just written, as those with
    /// a migratory state do, save its owner the upgrade. `pingpong` has it as a case of its own. Nobody needs to know
    /// its tails, unless it is a case.
    fn floor(&mut self, kind: Kind, lines: usize) -> Source {
        self.fastest([1, lines].map(|lines| Spec::Rotating { kind, lines }))
    }

    /// The floor of an arm: with as many lines as its ring has slots, in the same memory, between two threads where its
    /// sides are threads.
    fn floor_of(&mut self, spec: &Spec) -> Source {
        let lines = floor_lines(spec);
        match spec {
            Spec::Threads(_) => self.fastest([1, lines].map(|lines| Spec::Threads(Threads::Floor { lines }))),
            _ => self.floor(spec.kind(), lines),
        }
    }

    fn fastest(&mut self, specs: [Spec; 2]) -> Source {
        Source::Fastest(specs.map(|spec| {
            let arm = index_of(&mut self.specs, spec);
            let known = self.series.iter().position(|series| series.arm == arm);
            known.unwrap_or_else(|| self.series(spec, round_trip_slices(&spec, self.scale).0, None))
        }))
    }

    fn series(&mut self, spec: Spec, closely: Option<Slice>, afterwards: Option<Slice>) -> usize {
        let arm = index_of(&mut self.specs, spec);
        index_of(&mut self.series, Series { arm, closely, afterwards })
    }
}

/// Lines of the floor of an arm: as many as its ring has slots.
fn floor_lines(spec: &Spec) -> usize {
    match *spec {
        Spec::Spsc { depth, .. }
        | Spec::Shm { depth }
        | Spec::Index { depth }
        | Spec::Other { depth, .. }
        | Spec::Many { depth, .. } => usize::try_from(depth).unwrap_or(FLOOR_LINES),
        Spec::Threads(Threads::Pair { depth, .. }) => depth,
        Spec::Notify(way) => way.ring_depth().unwrap_or(FLOOR_LINES),
        _ => FLOOR_LINES,
    }
}

/// Where `item` stands in `items`, at the end if it is new.
fn index_of<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|known| *known == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

/// Blocks close to those of the other arms, single exchanges afterwards: in 25 rounds 10^6, with some to spare for
/// rounds that are dropped. What sleeps in the kernel takes a thousand times as long: it does fewer, and only
/// afterwards, to keep the others close together.
fn round_trip_slices(spec: &Spec, scale: Scale) -> (Option<Slice>, Option<Slice>) {
    let slice = |warm_up, blocks, singles| Some(Slice::RoundTrips { warm_up, blocks, singles });
    let pick = |full, quick| if scale.quick { quick } else { full };
    match spec {
        Spec::Kernel(_) => (None, slice(50, pick(8, 4), pick(1_200, 500))),
        Spec::PushAlone { .. } => (slice(0, pick(48, 24), 0), None),
        _ => (slice(500, pick(48, 24), 0), slice(1_000, 0, pick(60_000, 10_000))),
    }
}

/// Of messages at fixed gaps: what runs in each round, and what runs while system calls are counted. In both the first
/// messages are not measured, while whoever learns from the gaps learns this one.
fn paced_slices(gap_ns: u64, scale: Scale) -> (Slice, Slice) {
    let (warm_up, full, quick) = match gap_ns {
        0..10_000 => (200, 20_000, 2_000),
        10_000..100_000 => (100, 5_000, 1_000),
        100_000..1_000_000 => (20, 600, 100),
        1_000_000..10_000_000 => (5, 100, 10),
        _ => (2, 10, 2),
    };
    let pace = if gap_ns == 0 { Pace::BackToBack } else { Pace::Every { ns: gap_ns } };
    let slice = |messages| Slice::Paced { pace, warm_up, messages };
    (slice(if scale.quick { quick } else { full }), slice(quick))
}
