//! Which CPUs share what, as the kernel tells it.

mod share;
#[cfg(test)]
mod tests;

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use crate::{CpuSet, Tree, Unread};
pub use share::Share;

/// Where the kernel describes CPUs.
const CPUS: &str = "sys/devices/system/cpu";

/// The CPUs of a machine that are online: cores, caches, NUMA nodes, packages, and who is kept free of other tasks.
///
/// What the kernel does not tell is absent, and no error: a virtual machine may show no caches.
///
/// ```
/// use ring_tune::{Topology, Tree, allowed_cpus};
///
/// let topology = Topology::read(&Tree::live())?;
/// let allowed = allowed_cpus().expect("a thread may ask where it may run");
/// if let Some([producer, consumer]) = topology.best_pair(&allowed, None) {
///     println!("{producer} and {consumer}: {}", topology.share(producer, consumer));
/// }
/// assert_eq!(topology.housekeeping().union(topology.isolated()), *topology.online());
/// for cpu in topology.online().iter() {
///     assert!(topology.siblings(cpu).contains(cpu));
///     let (last, node, package) = (topology.last_level(cpu), topology.node(cpu), topology.package(cpu));
///     println!("{cpu}: cache shared by {last}, node {node:?} of {}, package {package:?}", topology.nodes().len());
/// }
/// # Ok::<(), ring_tune::Unread>(())
/// ```
#[derive(Debug, Clone)]
pub struct Topology {
    cpus: Vec<Cpu>,
    online: CpuSet,
    isolated: CpuSet,
    nodes: Vec<(usize, CpuSet)>,
}

/// Two cores below one cache, and none of them CPU 0's.
const MOST_MERIT: [u8; 4] = [1, Share::Cache { level: 0 }.closeness(), 1, 1];

/// One CPU that is online.
#[derive(Debug, Clone)]
struct Cpu {
    number: usize,
    /// Itself and whoever shares its core.
    siblings: CpuSet,
    /// Data and unified caches, the nearest first.
    caches: Vec<Cache>,
    package: Option<String>,
}

#[derive(Debug, Clone)]
struct Cache {
    level: u32,
    cpus: CpuSet,
}

impl Topology {
    /// Reads the topology of this machine, or of a saved tree.
    ///
    /// # Errors
    ///
    /// [`Unread`] where not even the list of CPUs is to be had, or where a file says something strange.
    pub fn read(tree: &Tree) -> Result<Self, Unread> {
        let (topology, strange) = Self::read_in_part(tree)?;
        strange.into_iter().next().map_or(Ok(topology), Err)
    }

    /// Reads as much of the topology as can be read: what is strange is taken as if it were absent, and told.
    ///
    /// # Errors
    ///
    /// [`Unread`] where not even the list of CPUs is to be had.
    ///
    /// ```
    /// use ring_tune::{Topology, Tree};
    ///
    /// let (topology, strange) = Topology::read_in_part(&Tree::live())?;
    /// assert!(!topology.online().is_empty());
    /// assert!(strange.iter().all(|unread| !unread.is_absent()));
    /// # Ok::<(), ring_tune::Unread>(())
    /// ```
    pub fn read_in_part(tree: &Tree) -> Result<(Self, Vec<Unread>), Unread> {
        let online = tree.cpus(&format!("{CPUS}/online"))?;
        let mut reader = Reader { tree, strange: vec![] };
        let cpus = online.iter().map(|number| Cpu::read(&mut reader, number)).collect();
        let mut isolated = reader.told(|tree| tree.cpus(&format!("{CPUS}/isolated"))).unwrap_or_default();
        if let Some(group) = reader.told(cgroup_root).flatten() {
            let partitions = reader.told(|tree| tree.cpus(&format!("{group}/cpuset.cpus.isolated")));
            isolated = isolated.union(&partitions.unwrap_or_default());
        }
        let mut nodes = vec![];
        let paths = reader.told(|tree| tree.find("sys/devices/system/node/node*/cpulist"));
        for path in paths.unwrap_or_default() {
            let number = path.split('/').rev().nth(1).and_then(|name| name.strip_prefix("node"));
            let Some(number) = number.and_then(|number| number.parse().ok()) else { continue };
            if let Some(cpus) = reader.told(|tree| tree.cpus(&path)) {
                nodes.push((number, cpus));
            }
        }
        let isolated = isolated.intersection(&online);
        Ok((Self { cpus, isolated, online, nodes }, reader.strange))
    }

    /// The CPUs that are online.
    #[must_use]
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The CPUs that the scheduler leaves alone, by `isolcpus=` or by a cpuset partition.
    #[must_use]
    pub fn isolated(&self) -> &CpuSet {
        &self.isolated
    }

    /// The CPUs that do what the isolated ones are kept free of.
    #[must_use]
    pub fn housekeeping(&self) -> CpuSet {
        self.online.difference(&self.isolated)
    }

    /// The NUMA nodes and their CPUs, by number; none where the kernel knows of no nodes.
    #[must_use]
    pub fn nodes(&self) -> &[(usize, CpuSet)] {
        &self.nodes
    }

    /// The NUMA node of a CPU.
    #[must_use]
    pub fn node(&self, cpu: usize) -> Option<usize> {
        self.nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(number, _)| *number)
    }

    /// The CPUs that share a core with this one, itself included; none where it is not online.
    #[must_use]
    pub fn siblings(&self, cpu: usize) -> CpuSet {
        self.cpu(cpu).map(|cpu| cpu.siblings.clone()).unwrap_or_default()
    }

    /// The CPUs below the last-level cache of this one, itself included; none where the kernel does not tell.
    #[must_use]
    pub fn last_level(&self, cpu: usize) -> CpuSet {
        let last = self.cpu(cpu).and_then(|cpu| cpu.caches.last());
        last.map(|cache| cache.cpus.clone()).unwrap_or_default()
    }

    /// The physical package of a CPU, as the firmware numbers it.
    #[must_use]
    pub fn package(&self, cpu: usize) -> Option<&str> {
        self.cpu(cpu)?.package.as_deref()
    }

    /// What two CPUs have in common.
    #[must_use]
    pub fn share(&self, one: usize, other: usize) -> Share {
        if one == other {
            return Share::Cpu;
        }
        let (Some(first), Some(second)) = (self.cpu(one), self.cpu(other)) else { return Share::Unknown };
        if first.siblings.contains(other) {
            return Share::Core;
        }
        if let Some(cache) = first.caches.iter().find(|cache| cache.cpus.contains(other)) {
            return Share::Cache { level: cache.level };
        }
        match (self.node(one), self.node(other)) {
            (Some(near), Some(far)) if near == far => return Share::Node,
            _ => {}
        }
        match (&first.package, &second.package) {
            (Some(near), Some(far)) if near == far => Share::Package,
            (Some(_), Some(_)) => Share::Machine,
            _ => Share::Unknown,
        }
    }

    /// The best of the allowed CPUs for a producer and a consumer: isolated ones first, then on the node if one is
    /// named, such as that of a NIC, then two cores below one last-level cache, and neither CPU 0, to which most interrupts
    /// go, nor another thread of its core if there is a choice.
    ///
    /// None where fewer than two of them are online.
    #[must_use]
    pub fn best_pair(&self, allowed: &CpuSet, node: Option<usize>) -> Option<[usize; 2]> {
        let mut allowed: Vec<&Cpu> = self.cpus.iter().filter(|cpu| allowed.contains(cpu.number)).collect();
        let is_isolated = |cpu: &&Cpu| self.isolated.contains(cpu.number);
        allowed = preferred(allowed, is_isolated);
        allowed = preferred(allowed, |cpu| node.is_none_or(|node| self.node(cpu.number) == Some(node)));
        // Of equals the first is taken, so that it is the same each time.
        let mut best: Option<([u8; 4], [usize; 2])> = None;
        for (place, one) in allowed.iter().enumerate() {
            for other in &allowed[place + 1..] {
                let pair = [one.number, other.number];
                let merit = self.merit(pair);
                if best.is_none_or(|(most, _)| merit > most) {
                    best = Some((merit, pair));
                }
                // On a large machine the pairs are many, and one of the first is mostly as good as any.
                if merit == MOST_MERIT {
                    return Some(pair);
                }
            }
        }
        best.map(|(_, pair)| pair)
    }

    /// The larger, the better; the first part counts most.
    fn merit(&self, pair: [usize; 2]) -> [u8; 4] {
        let both = |good: &dyn Fn(usize) -> bool| u8::from(pair.iter().all(|&cpu| good(cpu)));
        let share = self.share(pair[0], pair[1]);
        let first_core = self.cpu(0).map(|cpu| &cpu.siblings);
        [
            // The siblings of a core take each other's execution units.
            u8::from(share != Share::Core),
            share.closeness(),
            both(&|cpu| first_core.is_none_or(|core| !core.contains(cpu))),
            both(&|cpu| cpu != 0),
        ]
    }

    fn cpu(&self, number: usize) -> Option<&Cpu> {
        let place = self.cpus.binary_search_by_key(&number, |cpu| cpu.number).ok()?;
        self.cpus.get(place)
    }
}

/// The CPUs that are wanted, as long as they make a pair; all of them otherwise.
fn preferred(cpus: Vec<&Cpu>, is_wanted: impl Fn(&&Cpu) -> bool) -> Vec<&Cpu> {
    let wanted: Vec<&Cpu> = cpus.iter().copied().filter(|cpu| is_wanted(cpu)).collect();
    if wanted.len() < 2 { cpus } else { wanted }
}

/// Reads on where something is strange, and keeps it in mind.
struct Reader<'a> {
    tree: &'a Tree,
    strange: Vec<Unread>,
}

impl Reader<'_> {
    /// What is absent is no error.
    fn told<T>(&mut self, read: impl FnOnce(&Tree) -> Result<T, Unread>) -> Option<T> {
        match read(self.tree) {
            Ok(value) => Some(value),
            Err(error) => {
                self.strange.extend(Some(error).filter(|error| !error.is_absent()));
                None
            }
        }
    }
}

impl Cpu {
    fn read(reader: &mut Reader<'_>, number: usize) -> Self {
        let folder = format!("{CPUS}/cpu{number}");
        let siblings = reader.told(|tree| tree.cpus(&format!("{folder}/topology/thread_siblings_list")));
        let indices = reader.told(|tree| tree.find(&format!("{folder}/cache/index*"))).unwrap_or_default();
        let mut caches: Vec<Cache> = indices.iter().filter_map(|index| Cache::read(reader, index)).collect();
        caches.sort_by_key(|cache| cache.level);
        Self {
            number,
            siblings: siblings.unwrap_or_else(|| core::iter::once(number).collect()),
            caches,
            package: reader.told(|tree| tree.text(&format!("{folder}/topology/physical_package_id"))),
        }
    }
}

impl Cache {
    /// Nothing for what is no data cache.
    fn read(reader: &mut Reader<'_>, folder: &str) -> Option<Self> {
        let kind = reader.told(|tree| tree.text(&format!("{folder}/type")));
        let level = reader.told(|tree| tree.number(&format!("{folder}/level")));
        let cpus = reader.told(|tree| tree.cpus(&format!("{folder}/shared_cpu_list")));
        let level = u32::try_from(level?).ok()?;
        let cpus = cpus?;
        (kind? != "Instruction").then_some(Self { level, cpus })
    }
}

/// Where the unified cgroup tree is mounted, alone or beside the older ones, as a path of the [`Tree`]; none where it is
/// not.
///
/// # Errors
///
/// [`Unread`] where the mounts cannot be read.
///
/// ```
/// use ring_tune::{Tree, cgroup_root};
///
/// let tree = Tree::live();
/// if let Some(root) = cgroup_root(&tree)? {
///     assert!(tree.exists(&format!("{root}/cgroup.controllers")));
/// }
/// # Ok::<(), ring_tune::Unread>(())
/// ```
pub fn cgroup_root(tree: &Tree) -> Result<Option<String>, Unread> {
    let mounts = match tree.text("proc/self/mountinfo") {
        Err(error) if error.is_absent() => return Ok(None),
        mounts => mounts?,
    };
    // proc_pid_mountinfo(5): the fifth field is the mount point, and the type stands behind a lone dash.
    let point = mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
    });
    Ok(point.map(|point| point.trim_start_matches('/').to_string()))
}
