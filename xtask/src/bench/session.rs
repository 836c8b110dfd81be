//! The arms of a plan, made in both processes, for as long as a suite runs.

use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context, Result};
use measure::threads::Threads;
use measure::usage::Used;
use measure::{Arm, Samples, Slice, Timer};
use ring_shm::{Pages, Report};
use ring_tune::Clock;

use super::arms::{LeadSide, Spec};
use super::compared::Compared;
use super::count::Counting;
use super::memory::{Kind, Memory};
use super::plan::{Case, Plan};
use super::process::Peer;

/// Both processes, ready to run slices.
pub(crate) struct Session {
    arms: Vec<Box<dyn Arm>>,
    peer: Peer,
    /// Runs the arms that are threads, which count for themselves.
    compared: Option<Compared>,
    timer: Timer,
    memory: Memory,
}

impl Session {
    /// Makes memory, arms and peer.
    pub(crate) fn start(plan: &Plan, cpus: [usize; 2], clock: Clock, program: Option<&Path>) -> Result<Self> {
        // Several segments: where the pool has pages for some of them only, arms in pages of two sizes would be
        // compared with each other.
        let Lead { memory, arms, theirs } = match Lead::make(plan, Pages::Huge2MiBRequired) {
            Err(error) if lacks_huge_pages(&error) => Lead::make(plan, Pages::Base)?,
            made => made?,
        };
        let compared =
            program.map(|program| Compared::start(program, cpus, threads(plan).collect())).transpose()?;
        let peer = Peer::start(cpus[1], &memory, theirs)?;
        Ok(Self { arms, peer, compared, timer: Timer::new(clock), memory })
    }

    /// Runs a slice of a series in both processes.
    pub(crate) fn run(&mut self, plan: &Plan, series: usize, slice: Slice) -> Result<Samples> {
        let arm = plan.series[series].arm;
        if let (Spec::Threads(wanted), Some(compared)) = (plan.specs[arm], &mut self.compared) {
            let number = threads(plan).position(|threads| threads == wanted);
            let samples = compared.run(number.context("an arm that was not made")?, slice)?;
            self.peer.gets_on();
            return Ok(samples);
        }
        self.peer.follow(arm, slice)?;
        let samples = self.arms[arm].lead(slice, self.timer);
        self.peer.wait_for_answer()?;
        Ok(samples)
    }

    /// What a start and a stop of the clock cost, which is taken off.
    pub(crate) fn clock_cost_ns(&self) -> f64 {
        self.timer.cost_ns
    }

    /// The memory that was obtained.
    pub(crate) fn reports(&self) -> Vec<(Kind, Report)> {
        self.memory.reports()
    }

    /// Runs each case that has something to count once more, and returns what both processes used then: their system
    /// calls above all.
    ///
    /// # Errors
    ///
    /// The inner one: why nothing can be counted here.
    pub(crate) fn count(&mut self, plan: &Plan) -> Result<Result<Vec<Option<Used>>>> {
        if plan.cases.iter().all(|case| case.counted.is_none()) {
            return Ok(Ok(vec![None; plan.cases.len()]));
        }
        let _counting = match Counting::start(&self.memory, self.peer.id()) {
            Ok(counting) => counting,
            Err(error) => return Ok(Err(error)),
        };
        let count = |case: &Case| {
            let [series] = case.source.series() else { return Ok(None) };
            case.counted.map_or(Ok(None), |slice| Ok(self.run(plan, *series, slice)?.used))
        };
        plan.cases.iter().map(count).collect::<Result<_>>().map(Ok)
    }

    /// Process id of the peer.
    pub(crate) fn peer_id(&self) -> u32 {
        self.peer.id()
    }
}

/// The arms of the program of the comparison.
fn threads(plan: &Plan) -> impl Iterator<Item = Threads> {
    plan.specs.iter().filter_map(|spec| match spec {
        Spec::Threads(threads) => Some(*threads),
        _ => None,
    })
}

/// What the lead makes before there is a peer.
struct Lead {
    memory: Memory,
    arms: Vec<Box<dyn Arm>>,
    /// What the peer makes its own arms of.
    theirs: Vec<(Spec, Vec<OwnedFd>)>,
}

impl Lead {
    /// Makes all that is not in pages of a kind of its own of `usual` ones.
    fn make(plan: &Plan, usual: Pages) -> Result<Self> {
        let mut memory = make_memory(plan, usual)?;
        let (mut arms, mut theirs) = (Vec::new(), Vec::new());
        for spec in &plan.specs {
            let LeadSide { arm, for_peer } = spec.lead(&mut memory, usual)?;
            arms.push(arm);
            theirs.push((*spec, for_peer));
        }
        Ok(Self { memory, arms, theirs })
    }
}

/// Whether pages of 2 MiB were asked for and are too few.
pub(crate) fn lacks_huge_pages(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ring_shm::Error::NoHugePages { .. }))
}

fn make_memory(plan: &Plan, usual: Pages) -> Result<Memory> {
    let parts: Vec<(Kind, usize)> = plan.specs.iter().flat_map(|spec| spec.parts()).collect();
    let mut memory = Memory::default();
    for kind in [Kind::Usual, Kind::Base, Kind::Huge] {
        let lengths: Vec<usize> =
            parts.iter().filter(|part| part.0 == kind).map(|&(_, bytes)| bytes).collect();
        if !lengths.is_empty() {
            memory.create(kind, usual, &lengths).context("cannot make the shared segment")?;
        }
    }
    Ok(memory)
}
