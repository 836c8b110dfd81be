use clap::Parser;
use ring_tune::{CpuSet, MemoryPolicy, Share, Topology, Tree};

use super::Args;
use super::plan::Plan;
use crate::laid_out::LaidOut;

/// Two packages of two cores with two threads each; the names are those of the kernel's
/// `Documentation/ABI/stable/sysfs-devices-system-cpu` and `sysfs-devices-node`.
const TWO_NODES: &str = "\
=== sys/devices/system/cpu/online
0-7
=== sys/devices/system/cpu/isolated

=== sys/devices/system/cpu/cpu{0-7}/topology/physical_package_id
0
=== sys/devices/system/cpu/cpu0/topology/thread_siblings_list
0,4
=== sys/devices/system/cpu/cpu4/topology/thread_siblings_list
0,4
=== sys/devices/system/cpu/cpu1/topology/thread_siblings_list
1,5
=== sys/devices/system/cpu/cpu5/topology/thread_siblings_list
1,5
=== sys/devices/system/cpu/cpu2/topology/thread_siblings_list
2,6
=== sys/devices/system/cpu/cpu6/topology/thread_siblings_list
2,6
=== sys/devices/system/cpu/cpu3/topology/thread_siblings_list
3,7
=== sys/devices/system/cpu/cpu7/topology/thread_siblings_list
3,7
=== sys/devices/system/node/node0/cpulist
0-1,4-5
=== sys/devices/system/node/node1/cpulist
2-3,6-7
=== sys/class/infiniband/mlx5_0/device/numa_node
1
=== sys/class/net/eth0/device/numa_node
-1
=== sys/class/net/lo/mtu
65536
=== sys/bus/pci/devices/0000:81:00.0/numa_node
1
=== proc/sys/kernel/sched_rt_runtime_us
950000
=== proc/sys/kernel/sched_rt_period_us
1000000
=== proc/sys/kernel/osrelease
6.8.0
";

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn plan_on(host: &LaidOut, line: &str) -> anyhow::Result<Plan> {
    let words = ["run"].into_iter().chain(line.split_whitespace()).chain(["--", "true"]);
    let args = Line::try_parse_from(words)?.args;
    let tree = Tree::below(host.path())?;
    let topology = Topology::read(&tree)?;
    Plan::of(&args, &tree, &topology, topology.online())
}

fn plan(line: &str) -> anyhow::Result<Plan> {
    plan_on(&LaidOut::of(TWO_NODES), line)
}

fn cpus(line: &str) -> String {
    plan(line).unwrap().cpus.to_string()
}

fn policy(line: &str) -> Option<MemoryPolicy> {
    plan(line).unwrap().policy
}

#[test]
fn cpus_are_those_named_or_the_best_pair_of_the_node() {
    assert_eq!(cpus("--cpus 1,3"), "1,3");
    let best = plan("").unwrap();
    assert_eq!(best.share, Some(Share::Node), "not two threads of one core, and not two nodes");
    assert!(!best.cpus.contains(0));
    assert_eq!(cpus("--node 1"), "2-3");
    for near in ["mlx5_0", "0000:81:00.0"] {
        assert_eq!(cpus(&format!("--near {near}")), "2-3");
    }
    let host = LaidOut::of(TWO_NODES);
    host.write("sys/devices/system/cpu/isolated", "1,5,7\n");
    // Isolated ones first, though they are threads of one core.
    assert_eq!(plan_on(&host, "--node 0").unwrap().cpus.to_string(), "1,5");
    assert_eq!(plan_on(&host, "").unwrap().cpus.to_string(), "1,7", "better on two nodes than on one core");
}

#[test]
fn memory_comes_from_the_node_of_the_cpus_as_the_profile_wants_it() {
    for profile in ["spin", "rdma", "bench"] {
        assert_eq!(policy(&format!("--node 1 --profile {profile}")), Some(MemoryPolicy::Bind { node: 1 }));
    }
    assert_eq!(policy("--node 1 --profile hybrid"), Some(MemoryPolicy::Preferred { node: 1 }));
    assert_eq!(policy("--memory local"), Some(MemoryPolicy::Local));
    assert_eq!(policy("--memory preferred --cpus 0"), Some(MemoryPolicy::Preferred { node: 0 }));
    assert_eq!(policy("--node 0 --cpus 3"), Some(MemoryPolicy::Bind { node: 0 }));
    assert_eq!(policy("--cpus 1-2"), None, "they are on two nodes");
}

#[test]
fn a_machine_without_nodes_has_no_memory_to_choose_from() {
    let host = LaidOut::of(TWO_NODES);
    host.remove("sys/devices/system/node");
    for line in ["", "--memory local", "--memory bind"] {
        assert_eq!(plan_on(&host, line).unwrap().policy, None);
    }
    assert!(plan_on(&host, "--node 0").unwrap_err().to_string().contains("no such NUMA node"));
}

#[test]
fn what_is_beside_the_cpus_is_noted() {
    let host = LaidOut::of(TWO_NODES);
    let notes = |line: &str| plan_on(&host, line).unwrap().notes.join("\n");
    assert_eq!(notes("--cpus 1,5"), "among CPUs 1,5 are threads of one core: they slow each other down");
    let beside = "CPUs 6-7 share cores with CPUs 2-3, and take execution units from them: keep them idle";
    assert_eq!(notes("--cpus 2-3"), beside);
    assert!(notes("--cpus 0").contains("interrupts go to CPU 0"));
    assert!(notes("--cpus 0-7").contains("all that do the housekeeping"));
    assert!(notes("--cpus 1-2").contains("on several nodes"));
    assert!(notes("--cpus 1 --node 1").contains("CPUs 1 are not all on node 1"));
    assert!(notes("--fifo 1").contains("beyond 950000 of each"));
    for unknown in ["eth0", "lo"] {
        let near = plan_on(&host, &format!("--near {unknown}")).unwrap();
        assert!(near.unknown_node.unwrap().contains(&format!("NUMA node of {unknown}")));
    }
    host.write("sys/devices/system/cpu/isolated", "2-3\n");
    assert!(notes("--cpus 2-3").contains("all of them share one of 2-3"));
    host.write("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    assert!(notes("--fifo 1").contains("starves"));
    host.write("proc/sys/kernel/osrelease", "6.12.1\n");
    assert!(notes("--fifo 1").contains("fair_server"));
    host.write("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000\n");
    host.write("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    assert!(
        notes("--fifo 1").contains("beyond 950000 of each 1000000"),
        "groups have a budget on any kernel"
    );
    assert!(!notes("").contains("no sleep states"));
    host.write("sys/devices/system/cpu/cpuidle/current_driver", "none\n");
    assert!(notes("").contains("no sleep states"));
}

#[test]
fn what_does_not_exist_is_an_error_that_names_what_does() {
    for (line, words) in [
        ("--cpus 7-8", "only 0-7 are"),
        ("--cpus 8191", "only 0-7 are"),
        ("--node 2", "only 0,1"),
        ("--near mlx5_9", "no such device"),
        ("--near ../net/eth0", "no name of a device"),
        ("--near mlx5_0/device", "no name of a device"),
        ("--near *", "no name of a device"),
        ("--cpus 1-2 --memory bind", "on several nodes"),
        ("--cpus 1-2 --memory preferred", "on several nodes"),
    ] {
        let error = plan(line).unwrap_err().to_string();
        assert!(error.contains(words), "{line}: {error}");
    }
    for line in ["--fifo 0", "--fifo 100", "--near mlx5_0 --node 1", "--latency-us -1", "--cpus 3-1"] {
        assert!(plan(line).is_err(), "{line}");
    }
}

#[test]
fn one_cpu_is_enough() {
    let tree = LaidOut::of("=== sys/devices/system/cpu/online\n0\n");
    let plan = plan_on(&tree, "").unwrap();
    assert_eq!((plan.cpus, plan.policy, plan.share), (CpuSet::only(0).unwrap(), None, None));
}
