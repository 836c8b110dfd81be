//! `ring-tune check` about processors, where the hosts that were written down do not tell: notes, changes, profiles.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use laid_out::LaidOut;
use serde_json::{Value, json};

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");

/// A host with what a test changes about it.
fn host(name: &str, more: &str) -> LaidOut {
    let files = LaidOut::new();
    for part in ["base", "isolation", "interrupts", "frequency"] {
        let path = Path::new(HOSTS).join(name).join(format!("{part}.tree"));
        // A virtual machine has none about frequencies.
        if path.exists() {
            files.add(&fs::read_to_string(path).unwrap());
        }
    }
    files.add(more);
    files
}

fn check(files: &LaidOut, id: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    let output =
        command.args(["check", "--json", "--root"]).arg(files.path()).args(arguments).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut findings = report["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["id"] == id).unwrap().clone()
}

fn changes(finding: &Value) -> Vec<(&str, &str)> {
    let changes = finding["changes"].as_array().unwrap().iter();
    changes.map(|change| (change["path"].as_str().unwrap(), change["value"].as_str().unwrap())).collect()
}

const EARLIER: &str = "\
=== earlier/seconds
2
=== earlier/proc/interrupts
           CPU0       CPU1       CPU2       CPU3
 27:          0          0      33000          0  PCI-MSI 49153-edge      virtio5-input.1
 28:          0          0          0       1201  PCI-MSI 49154-edge      virtio5-output.1
 29:      10000          0          0          0  PCI-MSI 49155-edge      virtio5-input.0
LOC:          0          0          0          0   Local timer interrupts
";

#[test]
fn the_devices_that_interrupted_are_named() {
    let files = host("cloud-vm", EARLIER);
    let found = check(&files, "irq-affinity", &["--cpus", "2-3"]);
    assert_eq!(found["note"], "in 2000 ms came 120 of virtio5-input.1");
    let expected = [("proc/irq/27/smp_affinity_list", "0-1"), ("proc/irq/28/smp_affinity_list", "0-1")];
    assert_eq!(changes(&found), expected);
    let found = check(&files, "irq-affinity", &["--cpus", "1"]);
    assert_eq!((&found["verdict"], &found["note"]), (&json!("OK"), &json!("none came in 2000 ms")));
}

#[test]
fn interrupts_that_the_kernel_places_are_not_to_be_moved() {
    let files = host("cloud-vm", "");
    let path = files.path().join("proc/irq/27/smp_affinity_list");
    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
    let found = check(&files, "irq-affinity", &["--cpus", "2-3"]);
    assert_eq!(found["note"], "the kernel places 1 of them and lets nobody move them");
    assert_eq!(changes(&found), [("proc/irq/28/smp_affinity_list", "0-1")]);
}

#[test]
fn nothing_is_moved_to_isolated_cpus_or_nowhere() {
    let files = host("xeon-tuned", "=== proc/irq/default_smp_affinity\nff\n");
    let found = check(&files, "irq-default", &["--cpus", "2-3"]);
    assert_eq!(changes(&found), [("proc/irq/default_smp_affinity", "3")]);
    assert_eq!(found["parameters"], json!(["irqaffinity=0-1"]));
    let found = check(&files, "irq-default", &["--cpus", "0-7"]);
    assert_eq!((found["verdict"].as_str(), changes(&found)), (Some("WARN"), vec![]));
    let found = check(&files, "isolated", &["--cpus", "0-7"]);
    assert_eq!((found["verdict"].as_str(), &found["parameters"]), (Some("FAIL"), &json!([])));
}

#[test]
fn parameters_keep_the_cpus_that_are_there() {
    let files = host(
        "xeon-tuned",
        "=== sys/devices/system/cpu/isolated\n4-5\n=== sys/devices/system/cpu/nohz_full\n5\n",
    );
    let found = check(&files, "isolated", &["--cpus", "2-3"]);
    assert_eq!(found["parameters"], json!(["isolcpus=managed_irq,domain,2-5"]));
    let found = check(&files, "nohz-full", &["--cpus", "2-3"]);
    assert_eq!(found["parameters"], json!(["nohz_full=2-3,5"]));
    assert_eq!(check(&files, "nohz-full", &["--cpus", "2-3", "--profile", "hybrid"])["verdict"], "INFO");
}

/// Linux, admin-guide/cgroup-v2.rst, cpuset.cpus.partition.
#[test]
fn cpus_are_isolated_at_run_time_where_cgroups_can() {
    let files = host("xeon-untuned", "=== sys/fs/cgroup/cgroup.controllers\ncpu cpuset io\n");
    let found = check(&files, "isolated", &["--cpus", "2-3"]);
    let commands: Vec<_> =
        found["commands"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(
        commands[..4],
        [
            "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control",
            "mkdir /sys/fs/cgroup/ring",
            "echo 2-3 > /sys/fs/cgroup/ring/cpuset.cpus",
            "echo isolated > /sys/fs/cgroup/ring/cpuset.cpus.partition",
        ]
    );
    assert!(commands[4].starts_with("echo $$ > /sys/fs/cgroup/ring/cgroup.procs"), "{commands:?}");
    files.add("=== sys/fs/cgroup/cgroup.controllers\ncpu io\n");
    let found = check(&files, "isolated", &["--cpus", "2-3"]);
    assert_eq!(found["commands"], json!([]));
    assert!(found["note"].as_str().unwrap().contains("controller cpuset"), "{found}");
}

#[test]
fn a_measurement_wants_one_frequency() {
    let files = host("epyc-two-sockets", "");
    let found = check(&files, "frequency-bounds", &["--cpus", "4-5", "--profile", "bench"]);
    assert_eq!(found["verdict"], "WARN");
    let path = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_min_freq");
    assert_eq!(changes(&found), [(path(4).as_str(), "2100000"), (path(5).as_str(), "2100000")]);
    files.add("=== sys/devices/system/cpu/cpu{4-5}/cpufreq/scaling_min_freq\n2100000\n");
    let found = check(&files, "frequency-bounds", &["--cpus", "4-5", "--profile", "bench"]);
    assert_eq!((&found["verdict"], &found["actual"]), (&json!("OK"), &json!("2100 of 3100 MHz on 4-5")));
}

#[test]
fn deep_sleep_fails_where_threads_sleep() {
    let files = host("xeon-untuned", "=== sys/devices/system/cpu/cpu3/cpuidle/state{2-3}/disable\n1\n");
    let found = check(&files, "cstate-cpu", &["--cpus", "2-3", "--profile", "hybrid"]);
    assert_eq!(found["verdict"], "FAIL");
    assert_eq!(found["actual"], "C1E (10 µs), C6 (133 µs) on 2");
    assert_eq!(changes(&found), [("sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "5")]);
    // A limit lets the states through that keep it.
    files.add("=== sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us\n20\n");
    assert_eq!(check(&files, "cstate-cpu", &["--cpus", "2"])["actual"], "C1E (10 µs) on 2");
    files.add("=== dev/cpu_dma_latency (hexadecimal)\n00: 05 00 00 00\n");
    assert_eq!(check(&files, "cstate-cpu", &["--cpus", "2"])["verdict"], "OK");
    assert_eq!(check(&files, "cstate-limit", &["--cpus", "2"])["actual"], "5 µs");
}

#[test]
fn an_invalid_partition_of_other_cpus_is_a_warning() {
    let files = host("partition-invalid", "=== sys/fs/cgroup/trading.slice/cpuset.cpus\n6-7\n");
    assert_eq!(check(&files, "partition", &["--cpus", "2-3"])["verdict"], "WARN");
    files.add("=== sys/fs/cgroup/trading.slice/feed.service/cpuset.cpus.partition\nroot\n");
    files.add("=== sys/fs/cgroup/trading.slice/cpuset.cpus.partition\nisolated\n");
    let found = check(&files, "partition", &["--cpus", "2-3"]);
    assert_eq!(found["verdict"], "OK");
    assert_eq!(found["actual"], "trading.slice: isolated; trading.slice/feed.service: root");
}

#[test]
fn callbacks_follow_the_command_line() {
    let given = |parameter: &str| {
        let files = host("xeon-untuned", &format!("=== proc/cmdline\nro quiet {parameter}\n"));
        let found = check(&files, "rcu-offload", &["--cpus", "14-15"]);
        format!("{} {}", found["verdict"].as_str().unwrap(), found["actual"].as_str().unwrap())
    };
    assert_eq!(given("rcu_nocbs=all"), "OK 0-15");
    assert_eq!(given("rcu_nocbs=8-N"), "OK 8-15");
    assert_eq!(given("rcu_nocbs=8-9"), "WARN 8-9");
    assert_eq!(given("rcu_nocbs"), "WARN none");
    assert!(given("rcu_nocbs=many").starts_with("UNKNOWN proc/cmdline"));
}
