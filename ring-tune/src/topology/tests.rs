use super::*;
use crate::laid_out::LaidOut;

fn add_cpu(files: &LaidOut, cpu: usize, siblings: &str, last_level: &str, package: &str) {
    let folder = format!("{CPUS}/cpu{cpu}");
    files.write(&format!("{folder}/topology/thread_siblings_list"), siblings);
    files.write(&format!("{folder}/topology/physical_package_id"), package);
    for (index, level, kind, cpus) in
        [(0, "1", "Data", siblings), (1, "1", "Instruction", siblings), (2, "3", "Unified", last_level)]
    {
        files.write(&format!("{folder}/cache/index{index}/level"), level);
        files.write(&format!("{folder}/cache/index{index}/type"), kind);
        files.write(&format!("{folder}/cache/index{index}/shared_cpu_list"), cpus);
    }
}

/// Two packages and nodes of two cores of two threads.
fn two_packages() -> LaidOut {
    let files = LaidOut::new();
    files.write(&format!("{CPUS}/online"), "0-7");
    for cpu in 0..8 {
        let (core, package) = (cpu / 2 * 2, cpu / 4);
        let last_level = format!("{}-{}", package * 4, package * 4 + 3);
        add_cpu(&files, cpu, &format!("{core},{}", core + 1), &last_level, &package.to_string());
        files.write(&format!("sys/devices/system/node/node{package}/cpulist"), last_level);
    }
    files
}

fn read(files: &LaidOut) -> Topology {
    Topology::read(&Tree::below(files.path()).unwrap()).unwrap()
}

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn two_cores_below_one_cache_are_the_best() {
    let files = two_packages();
    let topology = read(&files);
    assert_eq!(topology.best_pair(&set("0-7"), None), Some([4, 6]), "not CPU 0's core: interrupts go there");
    assert_eq!(topology.best_pair(&set("0-3"), None), Some([1, 2]), "not CPU 0 itself at the least");
    assert_eq!(topology.best_pair(&set("0-7"), Some(1)), Some([4, 6]), "on the node of the NIC");
    assert_eq!(topology.best_pair(&set("0,4,6"), Some(0)), Some([4, 6]), "that node has but one");
    assert_eq!(topology.best_pair(&set("1,2,5"), None), Some([1, 2]));
    assert_eq!(topology.best_pair(&set("0,1"), None), Some([0, 1]), "threads of one core, if nothing else");
    assert_eq!(topology.best_pair(&set("5,9"), None), None, "9 is not online");
    files.write(&format!("{CPUS}/isolated"), "0,2-3");
    let topology = read(&files);
    assert_eq!(topology.best_pair(&set("0-2,4-6"), None), Some([0, 2]));
    assert_eq!(topology.housekeeping(), set("1,4-7"));
}

/// As most Intel machines number them: first one thread of each core, then the others.
#[test]
fn the_sibling_of_cpu_0_is_avoided_whatever_its_number() {
    let files = LaidOut::new();
    files.write(&format!("{CPUS}/online"), "0-7");
    for cpu in 0..8 {
        add_cpu(&files, cpu, &format!("{},{}", cpu % 4, cpu % 4 + 4), "0-7", "0");
    }
    let topology = read(&files);
    assert_eq!(topology.best_pair(&set("0-7"), None), Some([1, 2]));
    assert_eq!(topology.best_pair(&set("0-1,4-6"), None), Some([1, 6]));
    assert_eq!(
        topology.best_pair(&set("0-1,4-5"), None),
        Some([1, 4]),
        "one thread of its core, if there is no other"
    );
}

#[test]
fn what_cpus_share_is_told() {
    let files = two_packages();
    let topology = read(&files);
    assert_eq!(topology.share(0, 1), Share::Core);
    assert_eq!(topology.share(0, 2), Share::Cache { level: 3 });
    assert_eq!(topology.share(0, 4), Share::Machine);
    assert_eq!(topology.share(3, 3), Share::Cpu);
    assert_eq!(topology.share(0, 9), Share::Unknown);
    assert_eq!(topology.siblings(5), set("4-5"));
    assert_eq!(topology.last_level(5), set("4-7"));
    assert_eq!((topology.node(5), topology.node(9)), (Some(1), None));
    assert_eq!(topology.package(5), Some("1"));
    files.remove(&format!("{CPUS}/cpu0/cache"));
    assert_eq!(read(&files).share(0, 2), Share::Node);
    files.remove("sys/devices/system/node");
    assert_eq!(read(&files).share(0, 2), Share::Package);
}

#[test]
fn a_machine_that_tells_little_is_no_error() {
    let files = LaidOut::new();
    files.write(&format!("{CPUS}/online"), "0-1");
    let topology = read(&files);
    assert_eq!(topology.best_pair(&set("0-1"), None), Some([0, 1]));
    assert_eq!(topology.siblings(1), set("1"));
    assert!(topology.last_level(1).is_empty() && topology.nodes().is_empty());
    files.remove(&format!("{CPUS}/online"));
    assert!(Topology::read(&Tree::below(files.path()).unwrap()).unwrap_err().is_absent());
}

#[test]
fn partitions_isolate_too() {
    let files = two_packages();
    files.write(
        "proc/self/mountinfo",
        "24 1 0:22 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n\
         31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
    );
    files.write("sys/fs/cgroup/unified/cpuset.cpus.isolated", "6-7\n");
    assert_eq!(read(&files).isolated(), &set("6-7"));
}

#[test]
fn this_machine_has_a_topology() {
    let topology = Topology::read(&Tree::live()).unwrap();
    let allowed = crate::allowed_cpus().unwrap();
    assert!(allowed.is_subset(topology.online()));
    assert!(allowed.iter().all(|cpu| topology.siblings(cpu).contains(cpu)));
}

#[test]
fn what_is_strange_is_told_and_the_rest_is_read() {
    let files = two_packages();
    files.write(&format!("{CPUS}/isolated"), "everything");
    files.write(&format!("{CPUS}/cpu3/topology/thread_siblings_list"), "4-2");
    let tree = Tree::below(files.path()).unwrap();
    let (topology, strange) = Topology::read_in_part(&tree).unwrap();
    assert_eq!(strange.len(), 2, "{strange:?}");
    assert!(topology.isolated().is_empty());
    assert_eq!(topology.siblings(3), set("3"));
    assert_eq!(topology.siblings(2), set("2-3"));
    assert_eq!(Topology::read(&tree).unwrap_err(), strange[0]);
}

/// All pairs, judged one by one.
fn best_of_all(topology: &Topology, allowed: &CpuSet, node: Option<usize>) -> Option<[usize; 2]> {
    let online: Vec<usize> = allowed.intersection(topology.online()).iter().collect();
    let pairs = online
        .iter()
        .flat_map(|one| online.iter().filter(move |other| one < other).map(move |other| [*one, *other]));
    let merit = |pair: &[usize; 2]| {
        let both = |is_good: &dyn Fn(usize) -> bool| pair.iter().all(|cpu| is_good(*cpu));
        let share = topology.share(pair[0], pair[1]);
        (
            both(&|cpu| topology.isolated().contains(cpu)),
            both(&|cpu| node.is_none_or(|node| topology.node(cpu) == Some(node))),
            share != Share::Core,
            share.closeness(),
            both(&|cpu| !topology.siblings(0).contains(cpu)),
            both(&|cpu| cpu != 0),
        )
    };
    // `max_by_key` takes the last of equals, and the first is meant.
    let pairs: Vec<[usize; 2]> = pairs.collect();
    pairs.into_iter().rev().max_by_key(merit)
}

#[test]
fn the_best_pair_is_the_best_of_all_pairs() {
    let files = two_packages();
    for isolated in ["", "2-3", "5", "3,4", "0-1,7"] {
        files.write(&format!("{CPUS}/isolated"), isolated);
        let topology = read(&files);
        for bits in 0_u32..256 {
            let allowed: CpuSet = (0..8).filter(|cpu| bits >> cpu & 1 == 1).collect();
            for node in [None, Some(0), Some(1), Some(7)] {
                let best = topology.best_pair(&allowed, node);
                assert_eq!(best, best_of_all(&topology, &allowed, node), "{isolated}; {allowed}; {node:?}");
            }
        }
    }
}
