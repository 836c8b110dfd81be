//! `ring-tune check` of a machine as large as they are sold: its time must not grow with pairs of CPUs or interrupts.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use core::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use laid_out::LaidOut;
use serde_json::{Value, json};

/// Two threads for each of 384 cores, on eight nodes of two packages.
const CPUS: usize = 768;
const CORES: usize = CPUS / 2;
const NODES: usize = 8;
const CORES_OF_NODE: usize = CORES / NODES;
const CORES_OF_CACHE: usize = 8;

/// Their file has some 17 MiB.
const INTERRUPTS: usize = 2_000;

/// Those that have a folder: each takes its time to write.
const PLACED: usize = 1_000;

/// First one thread of each core, then the others, as firmware numbers them.
fn threads(cores: core::ops::Range<usize>) -> String {
    let (first, last) = (cores.start, cores.end - 1);
    match first == last {
        true => format!("{first},{}", first + CORES),
        false => format!("{first}-{last},{}-{}", first + CORES, last + CORES),
    }
}

fn lay_out() -> LaidOut {
    let files = LaidOut::new();
    let folder = "sys/devices/system/cpu";
    files.write(&format!("{folder}/online"), format!("0-{}\n", CPUS - 1));
    files.write(&format!("{folder}/isolated"), "\n");
    files.write(&format!("{folder}/nohz_full"), " (null)\n");
    files.write(&format!("{folder}/smt/active"), "1\n");
    for cpu in 0..CPUS {
        let core = cpu % CORES;
        let cache = core / CORES_OF_CACHE * CORES_OF_CACHE;
        let write = |file: &str, text: &str| files.write(&format!("{folder}/cpu{cpu}/{file}"), text);
        write("topology/thread_siblings_list", &threads(core..core + 1));
        write("topology/physical_package_id", if core < CORES / 2 { "0" } else { "1" });
        write("cache/index3/level", "3");
        write("cache/index3/type", "Unified");
        write("cache/index3/shared_cpu_list", &threads(cache..cache + CORES_OF_CACHE));
        write("cpuidle/state1/name", "C6");
        write("cpuidle/state1/latency", "290");
        write("cpuidle/state1/disable", "0");
        write("power/pm_qos_resume_latency_us", "0");
    }
    for node in 0..NODES {
        let cores = node * CORES_OF_NODE..(node + 1) * CORES_OF_NODE;
        files.write(&format!("sys/devices/system/node/node{node}/cpulist"), threads(cores));
    }
    files.write("earlier/seconds", "1\n");
    for (place, count) in [("earlier/", 5), ("", 7)] {
        files.write(&format!("{place}proc/interrupts"), interrupts(count));
        files.write(&format!("{place}proc/stat"), stat());
    }
    for number in 0..PLACED {
        files.write(&format!("proc/irq/{number}/smp_affinity_list"), format!("{}\n", number % CPUS));
    }
    files
}

/// Each interrupt comes to one CPU.
fn interrupts(count: usize) -> String {
    let mut text = String::new();
    for cpu in 0..CPUS {
        write!(text, "{:>11}", format!("CPU{cpu}")).unwrap();
    }
    for number in 0..INTERRUPTS {
        write!(text, "\n{number:>4}:").unwrap();
        let here = number % CPUS;
        let [before, behind] = [here, CPUS - 1 - here].map(|cpus| format!(" {:>10}", 0).repeat(cpus));
        write!(text, "{before} {count:>10}{behind}").unwrap();
        write!(text, " PCI-MSIX-0000:41:00.0 {number}-edge nvme{number}").unwrap();
    }
    text + "\n"
}

fn stat() -> String {
    (0..CPUS).map(|cpu| format!("cpu{cpu} 1 2 3 4 5 6 7 8 0 0\n")).collect()
}

fn check(root: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    let output = command.args(["check", "--json", "--root"]).arg(root).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn found<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id).unwrap()
}

#[test]
fn the_largest_machines_are_checked_as_small_ones_are() {
    let files = lay_out();
    let report = check(files.path(), &[]);
    assert_eq!(report["cpus"], "1-2", "two cores below one cache, without CPU 0's core");
    let interrupts = found(&report, "irq-affinity");
    assert_eq!(interrupts["verdict"], "FAIL");
    assert_eq!(interrupts["changes"].as_array().unwrap().len(), 4, "two a CPU: {interrupts}");
    assert_eq!(found(&report, "shared-cache")["actual"], "CPUs 1-2: cores that share the L3 cache");

    // All but CPU 0's core.
    let most = format!("1-{},{}-{}", CORES - 1, CORES + 1, CPUS - 1);
    let report = check(files.path(), &["--cpus", &most]);
    let interrupts = found(&report, "irq-affinity");
    let silent = (0..PLACED).filter(|number| [0, CORES].contains(&(number % CPUS))).count();
    assert_eq!(interrupts["changes"].as_array().unwrap().len(), PLACED - silent);
    assert_eq!(interrupts["changes"][0]["value"], format!("0,{CORES}"));
    assert_eq!(found(&report, "shared-cache")["note"], "--cpus 1,2: two cores that share the L3 cache.");
    assert_eq!(found(&report, "steal")["verdict"], json!("OK"));
    let sleep = found(&report, "cstate-cpu");
    assert_eq!(sleep["actual"], format!("C6 (290 µs) on {most}"));
    assert_eq!(sleep["changes"].as_array().unwrap().len(), CPUS - 2);
}
