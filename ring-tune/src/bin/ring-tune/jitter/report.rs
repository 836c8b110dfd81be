//! What was measured.

use ring_tune::Tree;
use serde::{Serialize, Serializer};

use super::advice;
use super::gaps::{Cause, Gap, Gaps, Tally};
use super::spin::Spun;
use super::usage::Usage;
use super::window::{Pressure, Seen};
use crate::counters::field;

/// The gaps of all CPUs. Names of fields are read by `diff`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// What a reader of JSON knows it by.
    report: &'static str,
    pub(super) cpu: String,
    pub(super) kernel: String,
    #[serde(rename = "virtual")]
    pub(super) is_virtual: bool,
    pub(super) threshold_ns: f64,
    /// What the kernel does to threads of the policy that these have.
    pub(super) about_policy: Option<String>,
    /// By a signal.
    pub(super) ended_early: bool,
    pub(super) cpus: Vec<OfCpu>,
    /// Of the whole machine.
    pub(super) pressure_us: Pressure,
}

/// The gaps of one CPU.
#[derive(Debug, Serialize)]
pub(super) struct OfCpu {
    pub(super) cpu: usize,
    pub(super) seconds: f64,
    /// From one stamp to the next without a gap, the median.
    pub(super) step_ns: f64,
    /// What it takes to ask the kernel after a gap, the median; it is in no gap.
    pub(super) look_ns: f64,
    /// Whether the thread was on its CPU until the end.
    pub(super) has_stayed: bool,
    pub(super) gaps: u64,
    pub(super) p50_ns: Option<f64>,
    /// This and the next one only where at least one gap lies beyond.
    pub(super) p99_ns: Option<f64>,
    pub(super) p999_ns: Option<f64>,
    pub(super) max_ns: Option<f64>,
    pub(super) lost_ns: f64,
    pub(super) lost_share: f64,
    /// This and the next three: of the tenths of the time, which tell how much the figures wander.
    pub(super) lost_share_min: Option<f64>,
    pub(super) lost_share_max: Option<f64>,
    pub(super) gaps_per_second_min: Option<f64>,
    pub(super) gaps_per_second_max: Option<f64>,
    pub(super) causes: Causes,
    pub(super) histogram: Vec<Bucket>,
    pub(super) longest: Vec<Gap>,
    pub(super) switches: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    #[serde(flatten)]
    pub(super) seen: Seen,
}

/// The gaps by their cause.
#[derive(Debug, Clone, Copy)]
pub(super) struct Causes(pub(super) [Tally; Cause::ALL.len()]);

/// The gaps of about one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Bucket {
    pub(super) from_ns: f64,
    pub(super) below_ns: f64,
    pub(super) count: u64,
    pub(super) context_switch: u64,
    pub(super) page_fault: u64,
    pub(super) other: u64,
}

impl Report {
    pub(super) fn new(
        tree: &Tree,
        threshold_ns: f64,
        ended_early: bool,
        cpus: Vec<OfCpu>,
        pressure: Pressure,
    ) -> Self {
        let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let flags = field(&cpuinfo, "flags").unwrap_or_default();
        Self {
            report: "ring-tune jitter",
            cpu: field(&cpuinfo, "model name").map_or_else(unknown, Into::into),
            kernel: tree.text("proc/sys/kernel/osrelease").unwrap_or_else(|_| unknown()),
            is_virtual: flags.split(' ').any(|flag| flag == "hypervisor"),
            threshold_ns,
            about_policy: advice::about_policy(tree),
            ended_early,
            cpus,
            pressure_us: pressure,
        }
    }
}

impl OfCpu {
    pub(super) fn new(cpu: usize, cost_ns: [f64; 2], spun: &Spun, has_stayed: bool, seen: Seen) -> Self {
        let Spun { gaps, ns, usage } = spun;
        let count = gaps.recorder.count();
        let quantile = |quantile, least| gaps.recorder.quantile_ns(quantile).filter(|_| count >= least);
        let (shares, rates) = (gaps.slices.share(*ns), gaps.slices.rate(*ns));
        let Usage { involuntary, voluntary, minor_faults, major_faults } = *usage;
        Self {
            cpu,
            seconds: ns / 1e9,
            step_ns: cost_ns[0],
            look_ns: cost_ns[1],
            has_stayed,
            gaps: count,
            p50_ns: quantile(0.5, 1),
            p99_ns: quantile(0.99, 100),
            p999_ns: quantile(0.999, 1_000),
            max_ns: gaps.recorder.summary().map(|summary| summary.max_ns),
            lost_ns: gaps.lost_ns(),
            lost_share: if *ns > 0.0 { gaps.lost_ns() / ns } else { 0.0 },
            lost_share_min: shares.map(|spread| spread.least),
            lost_share_max: shares.map(|spread| spread.most),
            gaps_per_second_min: rates.map(|spread| spread.least),
            gaps_per_second_max: rates.map(|spread| spread.most),
            causes: Causes(Cause::ALL.map(|cause| gaps.tally(cause))),
            histogram: histogram(gaps),
            longest: gaps.longest().copied().collect(),
            switches: involuntary.saturating_add(voluntary),
            minor_faults,
            major_faults,
            seen,
        }
    }

    pub(super) fn tally(&self, cause: Cause) -> Tally {
        self.causes.0[cause as usize]
    }
}

fn histogram(gaps: &Gaps) -> Vec<Bucket> {
    let buckets = gaps.histogram().map(|(from_ns, below_ns, [context_switch, page_fault, other])| {
        let count = context_switch + page_fault + other;
        Bucket { from_ns, below_ns, count, context_switch, page_fault, other }
    });
    buckets.collect()
}

impl Serialize for Causes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named {
            cause: Cause,
            #[serde(flatten)]
            tally: Tally,
        }
        serializer
            .collect_seq(Cause::ALL.into_iter().zip(self.0).map(|(cause, tally)| Named { cause, tally }))
    }
}
