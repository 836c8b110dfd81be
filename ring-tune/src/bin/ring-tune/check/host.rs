//! The machine that is looked at, and what its CPUs are for.

use anyhow::ensure;
use core::time::Duration;
use ring_tune::{CpuSet, Topology, Tree, Unread, allowed_cpus};

use super::earlier::Earlier;
use super::profile::Profile;
use super::{Target, asked};
use crate::counters::field;
use crate::topology;

/// What the rows are asked about.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) tree: Tree,
    pub(crate) topology: Topology,
    pub(crate) profile: Profile,
    /// The CPUs that are to be quick.
    pub(crate) cpus: CpuSet,
    earlier: Earlier,
    /// What the topology could not be told from.
    strange: Vec<Unread>,
}

impl Host {
    /// Takes the first sample; the second is there when rows ask for it.
    pub(crate) fn look(target: &Target) -> anyhow::Result<Self> {
        let tree = match &target.root {
            Some(root) => Tree::below(root)?,
            None => Tree::live(),
        };
        let earlier = Earlier::read(&tree);
        let (topology, strange) = topology::of(&tree)?;
        ensure!(!topology.online().is_empty(), "no CPU is online, says /sys/devices/system/cpu/online");
        let cpus = match &target.cpus {
            Some(cpus) => cpus.clone(),
            None => chosen(&tree, &topology)?,
        };
        ensure!(!cpus.is_empty(), "no CPUs to look at: name some, as in --cpus 2,3");
        ensure!(
            cpus.is_subset(topology.online()),
            "--cpus {cpus}: not all of them are online, only {} are",
            topology.online()
        );
        Ok(Self { tree, topology, profile: target.profile, cpus, earlier, strange })
    }

    /// Fails for a row that needs of the topology what could not be read: with `part` in its path.
    pub(crate) fn must_know(&self, part: &str) -> Result<(), Unread> {
        // Each says its path first.
        let unread = self.strange.iter().find(|unread| unread.to_string().contains(part));
        unread.map_or(Ok(()), |unread| Err(unread.clone()))
    }

    /// The CPUs that may be busy with something else.
    pub(crate) fn housekeeping(&self) -> CpuSet {
        self.topology.online().difference(&self.cpus)
    }

    /// A parameter of the kernel's command line: its value, or nothing between the quotes for one without; the last
    /// counts where it stands there twice.
    pub(crate) fn parameter(&self, name: &str) -> Result<Option<String>, Unread> {
        let line = self.tree.text("proc/cmdline")?;
        let parameters = line.split_whitespace().map(|word| word.split_once('=').unwrap_or((word, "")));
        Ok(parameters.rev().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()))
    }

    /// Whether a hypervisor stands between the kernel and the machine.
    pub(crate) fn is_virtual(&self) -> bool {
        let cpuinfo = self.tree.text("proc/cpuinfo").unwrap_or_default();
        field(&cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
    }

    /// How long the two samples of the counters are apart; none for a tree that holds one.
    pub(crate) fn sampled(&self) -> Option<Duration> {
        self.earlier.wait()
    }

    /// What a file of counters said in the first sample, and in the second; none for a tree that holds one sample.
    pub(crate) fn samples(&self, path: &str) -> Result<Option<(&str, String)>, Unread> {
        if self.sampled().is_none() {
            return Ok(None);
        }
        let now =
            if asked::is_asked(path) { asked::text(&self.tree, path)? } else { self.tree.text(path)? };
        Ok(Some((self.earlier.text(path)?, now)))
    }
}

/// The isolated CPUs are kept out of a shell's affinity, and are the ones that are meant all the same. Who has saved a
/// tree had an affinity too.
fn chosen(tree: &Tree, topology: &Topology) -> anyhow::Result<CpuSet> {
    let online = topology.online();
    let allowed = if tree.is_live() {
        allowed_cpus()?
    } else {
        let status = tree.text("proc/self/status").unwrap_or_default();
        let allowed = field(&status, "Cpus_allowed_list").and_then(|list| list.parse::<CpuSet>().ok());
        let allowed = allowed.map(|allowed| allowed.intersection(online));
        allowed.filter(|allowed| !allowed.is_empty()).unwrap_or_else(|| online.clone())
    };
    let allowed = allowed.union(topology.isolated());
    Ok(match topology.best_pair(&allowed, None) {
        Some(pair) => pair.into_iter().collect(),
        None => allowed,
    })
}
