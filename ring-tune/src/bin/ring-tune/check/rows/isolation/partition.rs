//! Partitions of CPUs among cgroups.

use ring_tune::{CpuSet, Unread, cgroup_root};

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::rows::present;
use crate::say::word;

/// More cgroups with CPUs of their own than any machine has.
const MOST_CGROUPS: usize = 10_000;

/// A cgroup that is to have CPUs of its own.
struct Partition {
    /// Below the root of cgroups.
    name: String,
    /// `root` or `isolated`, with `invalid (REASON)` behind it where it is not in force.
    state: String,
    /// None where the kernel does not tell.
    cpus: Option<CpuSet>,
}

impl Partition {
    fn is_invalid(&self) -> bool {
        self.state.contains("invalid")
    }
}

/// The kernel's admin-guide/cgroup-v2.rst, cpuset.cpus.partition.
pub(super) fn partition(host: &Host) -> Result<Judged, Unread> {
    let Some(root) = cgroup_root(&host.tree)? else {
        return Ok(Judged::skip("no unified tree of cgroups is mounted"));
    };
    let partitions = partitions(host, &root)?;
    if partitions.is_empty() {
        return Ok(Judged::skip("no cgroup is a partition"));
    }
    let told = |partitions: &[&Partition]| {
        let told = partitions.iter().map(|partition| format!("{}: {}", partition.name, partition.state));
        told.collect::<Vec<_>>().join("; ")
    };
    let wanted = "no partition is invalid";
    let invalid: Vec<&Partition> = partitions.iter().filter(|partition| partition.is_invalid()).collect();
    if invalid.is_empty() {
        return Ok(Judged::ok(told(&partitions.iter().collect::<Vec<_>>()), wanted));
    }
    let concerns = |partition: &&Partition| {
        let cpus = partition.cpus.as_ref();
        cpus.is_none_or(|cpus| cpus.is_empty() || !cpus.intersection(&host.cpus).is_empty())
    };
    let actual = told(&invalid);
    Ok(match invalid.iter().any(concerns) {
        true => Judged::fail(actual, wanted),
        false => Judged::warn(actual, wanted).note("it is not about the CPUs that are looked at"),
    })
}

/// The CPUs of partitions that are isolated in fact: Linux 6.1 to 6.7 list them nowhere in one file.
pub(super) fn isolated(host: &Host) -> Result<CpuSet, Unread> {
    let Some(root) = cgroup_root(&host.tree)? else { return Ok(CpuSet::new()) };
    let listed = present(host.tree.cpus(&format!("{root}/cpuset.cpus.isolated")))?;
    let partitions = partitions(host, &root)?;
    let isolated = partitions.iter().filter(|partition| partition.state == "isolated");
    Ok(isolated.fold(listed.unwrap_or_default(), |cpus, partition| {
        let path = format!("{root}/{}/cpuset.cpus.effective", partition.name);
        cpus.union(&host.tree.cpus(&path).unwrap_or_default())
    }))
}

/// The commands that make a partition of these CPUs, for this shell and what it starts; or why there are none.
pub(super) fn commands(host: &Host) -> Result<Result<Vec<String>, &'static str>, Unread> {
    const NONE: &str = "no unified tree of cgroups with the controller cpuset is mounted here, as it takes to isolate CPUs \
                        without a restart";
    let Some(root) = cgroup_root(&host.tree)? else { return Ok(Err(NONE)) };
    let controllers = present(host.tree.text(&format!("{root}/cgroup.controllers")))?;
    if !controllers.is_some_and(|controllers| controllers.split(' ').any(|name| name == "cpuset")) {
        return Ok(Err(NONE));
    }
    let root = format!("/{root}");
    let write = |what: &str, file: &str| format!("echo {what} > {}", word(&format!("{root}/{file}")));
    Ok(Ok(vec![
        write("+cpuset", "cgroup.subtree_control"),
        format!("mkdir {}", word(&format!("{root}/ring"))),
        write(&host.cpus.to_string(), "ring/cpuset.cpus"),
        write("isolated", "ring/cpuset.cpus.partition"),
        write("$$", "ring/cgroup.procs") + "  # this shell, and what it starts: nothing else runs there",
    ]))
}

/// All of them, parents first. A cgroup without the controller has no children with it.
fn partitions(host: &Host, root: &str) -> Result<Vec<Partition>, Unread> {
    let mut found = vec![];
    let mut open = vec![root.to_owned()];
    for _ in 0..MOST_CGROUPS {
        let Some(folder) = open.pop() else { break };
        let state = match host.tree.text(&format!("{folder}/cpuset.cpus.partition")) {
            Ok(state) => Some(state),
            Err(Unread::Absent { .. }) if folder == root => None,
            Err(Unread::Absent { .. }) => continue,
            Err(error) => return Err(error),
        };
        if let Some(state) = state.filter(|state| state != "member") {
            let name = folder.strip_prefix(root).unwrap_or(&folder).trim_start_matches('/').to_owned();
            found.push(Partition { name, state, cpus: requested(host, &folder) });
        }
        match host.tree.folders(&folder) {
            Ok(names) => open.extend(names.iter().rev().map(|name| format!("{folder}/{name}"))),
            // It has gone meanwhile.
            Err(Unread::Absent { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The CPUs that it asks for.
fn requested(host: &Host, folder: &str) -> Option<CpuSet> {
    let exclusive = host.tree.cpus(&format!("{folder}/cpuset.cpus.exclusive")).unwrap_or_default();
    let cpus = host.tree.cpus(&format!("{folder}/cpuset.cpus")).ok()?;
    Some(cpus.union(&exclusive))
}
