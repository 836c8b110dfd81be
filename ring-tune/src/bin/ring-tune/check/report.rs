//! What all rows found.

use ring_tune::CpuSet;
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::finding::{Finding, Verdict, shorten};
use super::host::Host;
use super::profile::Profile;
use super::row::Row;
use crate::counters::field;

/// The findings of all rows, in their order.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// What a reader of JSON knows it by.
    report: &'static str,
    pub(crate) profile: Profile,
    #[serde(serialize_with = "as_list")]
    pub(crate) cpus: CpuSet,
    pub(crate) cpu: String,
    pub(crate) kernel: String,
    #[serde(rename = "virtual")]
    pub(crate) is_virtual: bool,
    is_ready: bool,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn of(host: &Host) -> Self {
        let findings: Vec<Finding> = Row::all().map(|row| row.find(host)).collect();
        let cpuinfo = host.tree.text("proc/cpuinfo").unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let mut cpu = field(&cpuinfo, "model name").map_or_else(unknown, Into::into);
        let mut kernel = host.tree.text("proc/sys/kernel/osrelease").unwrap_or_else(|_| unknown());
        for text in [&mut cpu, &mut kernel] {
            shorten(text);
        }
        Self {
            report: "ring-tune check",
            profile: host.profile,
            cpus: host.cpus.clone(),
            cpu,
            kernel,
            is_virtual: host.is_virtual(),
            is_ready: findings.iter().all(|finding| finding.judged.verdict != Verdict::Fail),
            findings,
        }
    }

    /// Whether nothing fails.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.judged.verdict == verdict).count()
    }
}

fn as_list<S: Serializer>(cpus: &CpuSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(cpus)
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { row, judged } = self;
        let mut object = serializer.serialize_struct("Finding", 15)?;
        object.serialize_field("id", row.id)?;
        object.serialize_field("group", &row.group)?;
        object.serialize_field("what", row.what)?;
        object.serialize_field("verdict", &judged.verdict)?;
        object.serialize_field("actual", &judged.actual)?;
        object.serialize_field("wanted", &judged.wanted)?;
        object.serialize_field("note", &judged.note)?;
        object.serialize_field("source", row.source)?;
        object.serialize_field("why", row.why)?;
        object.serialize_field("price", row.price)?;
        object.serialize_field("now", row.now)?;
        object.serialize_field("boot", row.boot)?;
        object.serialize_field("changes", &judged.changes)?;
        object.serialize_field("commands", &judged.commands)?;
        object.serialize_field("parameters", &judged.boot)?;
        object.end()
    }
}
