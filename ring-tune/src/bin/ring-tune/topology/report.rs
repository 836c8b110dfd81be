//! The hand-overs of all pairs, as a matrix.

use core::fmt;

use ring_tune::{CpuSet, Topology};
use serde::Serialize;

use super::measure::Way;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    report: &'static str,
    pub(super) cpus: Vec<usize>,
    /// How many each pair had.
    rounds: usize,
    /// In the order of their ends.
    pub(super) pairs: Vec<Pair>,
    /// The quickest pair.
    best_measured: [usize; 2],
    /// The pair that sysfs and isolation speak for.
    best_by_topology: Option<[usize; 2]>,
}

#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub(super) from: usize,
    pub(super) to: usize,
    share: String,
    pub(super) one_way_ns: OneWay,
}

/// Of the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct OneWay {
    pub(super) p50: f64,
    min: f64,
    max: f64,
}

impl Report {
    /// There is one pair at least, and one round.
    pub(super) fn of(topology: &Topology, cpus: &CpuSet, ways: &[Way]) -> Self {
        let pairs: Vec<Pair> = ways.iter().map(|way| Pair::of(topology, way)).collect();
        let quickest = pairs.iter().min_by(|one, other| one.one_way_ns.p50.total_cmp(&other.one_way_ns.p50));
        Self {
            report: "ring-tune topology",
            cpus: cpus.iter().collect(),
            rounds: ways.iter().map(|way| way.rounds_ns.len()).min().unwrap_or(0),
            best_measured: quickest.map_or([0; 2], |pair| [pair.from, pair.to]),
            best_by_topology: topology.best_pair(cpus, None),
            pairs,
        }
    }

    pub(super) fn between(&self, one: usize, other: usize) -> Option<OneWay> {
        let ends = [one.min(other), one.max(other)];
        let place = self.pairs.binary_search_by_key(&ends, |pair| [pair.from, pair.to]).ok()?;
        Some(self.pairs[place].one_way_ns)
    }
}

impl Pair {
    fn of(topology: &Topology, way: &Way) -> Self {
        let [from, to] = way.cpus;
        let mut rounds = way.rounds_ns.clone();
        rounds.sort_by(f64::total_cmp);
        let at = |place: usize| rounds.get(place).copied().unwrap_or(f64::NAN);
        let last = rounds.len().saturating_sub(1);
        let one_way_ns = OneWay { p50: at(rounds.len() / 2), min: at(0), max: at(last) };
        Self { from, to, share: topology.share(from, to).to_string(), one_way_ns }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: usize = 7;
        writeln!(formatter, "one way, in ns")?;
        write!(formatter, "{:WIDTH$}", "CPU")?;
        self.cpus.iter().try_for_each(|cpu| write!(formatter, "{cpu:>WIDTH$}"))?;
        for &row in &self.cpus {
            write!(formatter, "\n{row:<WIDTH$}")?;
            for &column in &self.cpus {
                match self.between(row, column) {
                    Some(way) => write!(formatter, "{:>WIDTH$.1}", way.p50)?,
                    None => write!(formatter, "{:>WIDTH$}", "-")?,
                }
            }
        }
        writeln!(formatter)?;
        let mut shares: Vec<&str> = self.pairs.iter().map(|pair| pair.share.as_str()).collect();
        shares.sort_unstable();
        shares.dedup();
        for share in shares {
            let ways = self.pairs.iter().filter(|pair| pair.share == share).map(|pair| pair.one_way_ns.p50);
            let (least, most) =
                ways.fold((f64::INFINITY, 0.0), |(least, most), way| (way.min(least), way.max(most)));
            writeln!(formatter, "{share}: {least:.1} to {most:.1} ns")?;
        }
        let [one, other] = self.best_measured;
        write!(formatter, "best pair: {one} and {other} by what was measured")?;
        match self.best_by_topology {
            Some([one, other]) => writeln!(formatter, ", {one} and {other} by isolation and topology"),
            None => writeln!(formatter),
        }
    }
}
