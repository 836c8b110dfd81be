//! The table of checks.

use core::fmt;

use ring_tune::Unread;
use serde::Serialize;

use super::finding::{Finding, Judged, Verdict};
use super::host::Host;
use super::profile::Profile;
use super::rows;

/// A check. All but the function is text for people, without a full stop at its end.
#[derive(Debug)]
pub(crate) struct Row {
    /// A short name for it, stable: reports are compared by it.
    pub(crate) id: &'static str,
    pub(crate) group: Group,
    /// What is looked at, in a few words.
    pub(crate) what: &'static str,
    /// The files that it is read from.
    pub(crate) source: &'static str,
    /// Those that it matters to; for the others a failure is only to be known.
    pub(crate) profiles: &'static [Profile],
    /// What it costs if it is not as wanted.
    pub(crate) why: &'static str,
    /// What mending it costs.
    pub(crate) price: &'static str,
    /// How to mend it at run time; empty if nothing does.
    pub(crate) now: &'static str,
    /// How to mend it at boot, or in the firmware; empty if nothing does.
    pub(crate) boot: &'static str,
    pub(crate) judge: fn(&Host) -> Result<Judged, Unread>,
}

/// What a check is about; the order is that of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    Isolation,
    Interrupts,
    Frequency,
    Placement,
    Network,
    Memory,
    Kernel,
    Clock,
    Disturbance,
}

impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Isolation => "Isolation",
            Self::Interrupts => "Interrupts",
            Self::Frequency => "Frequency and sleep states",
            Self::Placement => "Placement",
            Self::Network => "Network and RDMA",
            Self::Memory => "Memory",
            Self::Kernel => "Kernel",
            Self::Clock => "Clock",
            Self::Disturbance => "Disturbance",
        })
    }
}

impl Row {
    /// All of them, those that compare two samples last.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        rows::ALL.iter().flat_map(|rows| rows.iter())
    }

    pub(crate) fn find(&'static self, host: &Host) -> Finding {
        let mut finding = Finding::of(self, (self.judge)(host));
        let matters = self.profiles.contains(&host.profile);
        if !matters && matches!(finding.judged.verdict, Verdict::Warn | Verdict::Fail) {
            finding.judged.verdict = Verdict::Info;
        }
        finding
    }
}
