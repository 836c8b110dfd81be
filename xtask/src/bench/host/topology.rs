//! Which CPUs share what, as the kernel tells it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel describes CPUs.
pub(super) const ROOT: &str = "/sys/devices/system/cpu";

/// Two of the allowed CPUs: two cores that share the last-level cache if there are any, isolated ones first, and
/// not CPU 0 if there is a choice, since most interrupts go there. One CPU twice where there is only one.
pub(crate) fn choose(allowed: &[usize]) -> [usize; 2] {
    choose_below(Path::new(ROOT), allowed)
}

pub(super) fn choose_below(root: &Path, allowed: &[usize]) -> [usize; 2] {
    let isolated = isolated(root);
    let places: Vec<Place> = allowed.iter().map(|&cpu| Place::of(root, cpu)).collect();
    let pairs = places
        .iter()
        .enumerate()
        .flat_map(|(index, one)| places[index + 1..].iter().map(move |other| (one, other)));
    let best = pairs.max_by_key(|(one, other)| {
        let both_isolated = isolated.contains(&one.cpu) && isolated.contains(&other.cpu);
        let cores = one.siblings != other.siblings || one.siblings.is_empty();
        let cache = one.last_level == other.last_level && !one.last_level.is_empty();
        // Of equals the last is taken.
        (both_isolated, cores, cache, one.cpu != 0)
    });
    let only = allowed.first().copied().unwrap_or(0);
    best.map_or([only; 2], |(one, other)| [one.cpu, other.cpu])
}

/// What two CPUs have in common, in words.
pub(super) fn share(root: &Path, cpus: [usize; 2]) -> String {
    if cpus[0] == cpus[1] {
        return "one CPU".into();
    }
    let [one, other] = cpus.map(|cpu| Place::of(root, cpu));
    if one.siblings.contains(&other.cpu) {
        return "two threads of one core".into();
    }
    let common =
        one.caches.iter().filter(|cache| cache.cpus.contains(&other.cpu)).map(|cache| cache.level).min();
    match common {
        Some(level) => format!("two cores that share the L{level} cache"),
        None if one.caches.is_empty() => "no cache topology in sysfs".into(),
        None if one.package == other.package => "two cores of one package that share no cache".into(),
        None => "two packages".into(),
    }
}

/// CPUs that the scheduler leaves alone.
pub(super) fn isolated(root: &Path) -> BTreeSet<usize> {
    list(root.join("isolated"))
}

/// Where a CPU stands.
#[derive(Debug)]
struct Place {
    cpu: usize,
    /// Itself and whoever shares its core.
    siblings: BTreeSet<usize>,
    caches: Vec<Cache>,
    /// The CPUs below its last-level cache.
    last_level: BTreeSet<usize>,
    package: Option<String>,
}

#[derive(Debug)]
struct Cache {
    level: u32,
    cpus: BTreeSet<usize>,
}

impl Place {
    fn of(root: &Path, cpu: usize) -> Self {
        let folder = root.join(format!("cpu{cpu}"));
        let entries = fs::read_dir(folder.join("cache")).into_iter().flatten().flatten();
        let caches: Vec<Cache> = entries.filter_map(|entry| Cache::read(&entry.path())).collect();
        let last = caches.iter().max_by_key(|cache| cache.level);
        Self {
            cpu,
            siblings: list(folder.join("topology/thread_siblings_list")),
            last_level: last.map(|cache| cache.cpus.clone()).unwrap_or_default(),
            caches,
            package: super::read(folder.join("topology/physical_package_id")),
        }
    }
}

impl Cache {
    /// Nothing for what is no data cache.
    fn read(folder: &Path) -> Option<Self> {
        let level = super::read(folder.join("level"))?.parse().ok()?;
        let kind = super::read(folder.join("type"))?;
        (kind != "Instruction").then(|| Self { level, cpus: list(folder.join("shared_cpu_list")) })
    }
}

/// A list like `0-3,8`.
fn list(path: PathBuf) -> BTreeSet<usize> {
    let text = super::read(path).unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}
