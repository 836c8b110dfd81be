//! What `ring-tune check` finds of network, placement, clock and disturbance on this machine, against the files, read
//! here by other means.
#![cfg(feature = "cli")]

#[path = "common/skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use skip::skip;

struct Report(Value);

impl Report {
    fn new() -> Self {
        let output =
            Command::new(env!("CARGO_BIN_EXE_ring-tune")).args(["check", "--json"]).output().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        Self(serde_json::from_slice(&output.stdout).unwrap())
    }

    /// Verdict and actual value.
    fn row(&self, id: &str) -> (&str, &str) {
        let rows = self.0["findings"].as_array().unwrap();
        let row = rows.iter().find(|row| row["id"] == id).unwrap();
        (row["verdict"].as_str().unwrap(), row["actual"].as_str().unwrap())
    }

    fn cpus(&self) -> Vec<usize> {
        list(self.0["cpus"].as_str().unwrap())
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn list(text: &str) -> Vec<usize> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    let ranges = parts.map(|part| part.split_once('-').unwrap_or((part, part)));
    ranges.flat_map(|(first, last)| first.parse::<usize>().unwrap()..=last.parse().unwrap()).collect()
}

fn is_virtual() -> bool {
    read("/proc/cpuinfo")
        .unwrap()
        .lines()
        .any(|line| line.starts_with("flags") && line.contains(" hypervisor"))
}

/// The network devices that have hardware and are up, where there is no RDMA device.
fn netdevs() -> Vec<String> {
    let names = fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| {
            let folder = format!("/sys/class/net/{name}");
            Path::new(&format!("{folder}/device")).exists()
                && read(&format!("{folder}/operstate"))
                    .is_some_and(|state| state == "up" || state == "unknown")
        })
        .collect();
    names.sort();
    names
}

fn has_rdma() -> bool {
    fs::read_dir("/sys/class/infiniband").is_ok_and(|mut folder| folder.next().is_some())
}

#[test]
fn placement() {
    let report = Report::new();
    let cpus = report.cpus();
    let siblings = |cpu: usize| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        read(&path).map_or_else(|| vec![cpu], |text| list(&text))
    };
    let shares = cpus.iter().any(|&cpu| siblings(cpu).len() > 1);
    let (verdict, actual) = report.row("smt");
    match (shares, is_virtual(), read("/sys/devices/system/cpu/smt/active").as_deref()) {
        (true, ..) => {
            assert!(matches!(verdict, "FAIL" | "OK") && actual.starts_with("CPUs "), "{verdict} {actual}")
        }
        (false, true, _) | (false, false, None) => assert_eq!(verdict, "SKIP", "{actual}"),
        (false, false, Some("0")) => assert_eq!((verdict, actual), ("OK", "none, SMT is off")),
        (false, false, _) => assert_eq!((verdict, actual), ("OK", "none")),
    }

    let (verdict, actual) = report.row("shared-cache");
    let mut last: Option<(u32, Vec<usize>)> = None;
    for index in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu{}/cache/index{index}", cpus[0]);
        let Some(level) = read(&format!("{folder}/level")).and_then(|level| level.parse().ok()) else {
            continue;
        };
        if let Some(cpus) = read(&format!("{folder}/shared_cpu_list"))
            .filter(|_| last.as_ref().is_none_or(|last| last.0 < level))
        {
            last = Some((level, list(&cpus)));
        }
    }
    let one_core =
        cpus.iter().any(|&cpu| siblings(cpu).iter().filter(|other| cpus.contains(other)).count() > 1);
    match last {
        _ if cpus.len() < 2 => assert_eq!(verdict, "SKIP", "{actual}"),
        _ if one_core => assert_eq!(verdict, "FAIL", "{actual}"),
        None => assert_eq!(verdict, "SKIP", "{actual}"),
        Some((level, below)) if cpus.iter().all(|cpu| below.contains(cpu)) => {
            assert_eq!(verdict, "OK", "{actual}");
            assert!(actual.ends_with(&format!("share the L{level} cache")), "{actual}");
        }
        Some(_) => assert!(matches!(verdict, "WARN" | "FAIL"), "{verdict} {actual}"),
    }
}

#[test]
fn clock() {
    let report = Report::new();
    let (verdict, actual) = report.row("clock-source");
    match read("/sys/devices/system/clocksource/clocksource0/current_clocksource").as_deref() {
        None => assert_eq!(verdict, "SKIP"),
        Some(source) => {
            assert_eq!(actual, source);
            let expected = match source {
                "tsc" | "arch_sys_counter" => "OK",
                "kvm-clock" | "hyperv_clocksource_tsc_page" => "WARN",
                _ => "FAIL",
            };
            assert_eq!(verdict, expected);
        }
    }
    let cpuinfo = read("/proc/cpuinfo").unwrap();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let has = |flag: &str| flags.is_some_and(|flags| flags.split(' ').any(|word| word == flag));
    let expected = match (flags.is_some(), has("constant_tsc") && has("rdtscp"), has("nonstop_tsc")) {
        (false, ..) => "SKIP",
        (true, true, true) => "OK",
        (true, true, false) => "WARN",
        _ => "FAIL",
    };
    assert_eq!(report.row("tsc-flags").0, expected);
}

#[test]
fn links_of_the_nics() {
    if has_rdma() {
        return skip("written for machines without RDMA devices");
    }
    let report = Report::new();
    let netdevs = netdevs();
    let has_file = |name: &str| {
        netdevs.iter().any(|netdev| Path::new(&format!("/sys/class/net/{netdev}/device/{name}")).exists())
    };
    let with_link = has_file("current_link_speed");
    for id in ["pcie-link", "pcie-payload", "aspm"] {
        let (verdict, actual) = report.row(id);
        if !with_link {
            assert_eq!(verdict, "SKIP", "{id}: {actual}");
        }
        assert!(netdevs.is_empty() || netdevs.iter().any(|netdev| actual.contains(netdev)), "{id}: {actual}");
    }
    let nodes = fs::read_dir("/sys/devices/system/node").map_or(1, |folder| {
        folder
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("node"))
            .count()
    });
    let (verdict, actual) = report.row("nic-node");
    match netdevs.is_empty() {
        true => assert_eq!(verdict, "SKIP", "{actual}"),
        false if nodes <= 1 => assert!(matches!(verdict, "OK" | "SKIP"), "{verdict} {actual}"),
        false => {
            assert!(matches!(verdict, "OK" | "INFO" | "SKIP"), "{verdict} {actual}: not for the profile spin")
        }
    }
    assert_eq!(report.row("rdma-counters").0, "SKIP");
}

#[test]
fn interrupt_moderation() {
    let Some(netdev) = netdevs().into_iter().next().filter(|_| !has_rdma()) else {
        return skip("no network device with hardware, or one with RDMA");
    };
    let Ok(output) = Command::new("ethtool").args(["-c", &netdev]).output() else {
        return skip("ethtool is not installed");
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next().map(str::to_owned)
    };
    let report = Report::new();
    let (verdict, actual) = report.row("nic-moderation");
    let Some(wait) = field("rx-usecs:") else { return assert_eq!(verdict, "SKIP", "{actual}") };
    let is_adaptive = field("Adaptive RX:").is_some_and(|word| word == "on");
    // ethtool says n/a where the driver has no such setting.
    let wait: u64 = wait.parse().unwrap_or(0);
    let adaptive = if is_adaptive { ", adaptive" } else { "" };
    assert!(actual.contains(&format!("{netdev}: {wait} µs{adaptive}")), "{actual}");
    assert_eq!(verdict, if wait == 0 && !is_adaptive { "OK" } else { "INFO" });
}

/// What the network devices counted in `statistics` so far.
fn statistics() -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for netdev in netdevs() {
        for entry in fs::read_dir(format!("/sys/class/net/{netdev}/statistics")).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{netdev} {}", path.file_name().unwrap().to_str().unwrap());
            counts.insert(name, read(path.to_str().unwrap()).unwrap().parse().unwrap());
        }
    }
    counts
}

#[test]
fn counters_of_the_nics() {
    let before = statistics();
    let report = Report::new();
    let after = statistics();
    let (verdict, actual) = report.row("nic-counters");
    let (told, _) = actual.rsplit_once(" in ").unwrap_or((actual, ""));
    let mut is_told = 0;
    for (name, count) in told.split(", ").filter_map(|part| part.rsplit_once(" +")) {
        is_told += 1;
        // Those of ethtool are not among them.
        if let Some(after) = after.get(name) {
            assert!(count.parse::<u64>().unwrap() <= after - before[name], "{actual}");
        }
    }
    match netdevs().is_empty() && !has_rdma() {
        true => assert_eq!(verdict, "SKIP", "{actual}"),
        false => assert_eq!(verdict == "WARN", is_told > 0, "{verdict} {actual}"),
    }
}

fn steal_ticks(cpus: &[usize]) -> u64 {
    let stat = read("/proc/stat").unwrap();
    let of = |cpu: &usize| {
        let line = stat.lines().find(|line| line.starts_with(&format!("cpu{cpu} "))).unwrap();
        line.split(' ').nth(8).unwrap().parse::<u64>().unwrap()
    };
    cpus.iter().map(of).sum()
}

fn waited_us() -> Option<f64> {
    read("/proc/pressure/cpu")?.lines().next()?.rsplit_once("total=")?.1.parse().ok()
}

#[test]
fn disturbance() {
    let cpus = Report::new().cpus();
    let (steal_before, waited_before) = (steal_ticks(&cpus), waited_us());
    let report = Report::new();
    let (steal_after, waited_after) = (steal_ticks(&cpus), waited_us());

    let (verdict, actual) = report.row("steal");
    let steal_ms: u64 = actual.strip_suffix(" ms").unwrap().parse().unwrap();
    assert!(steal_ms <= (steal_after - steal_before) * 10, "{actual}");
    assert_eq!(verdict, if steal_ms == 0 { "OK" } else { "WARN" });

    let (verdict, actual) = report.row("cpu-pressure");
    match waited_before.zip(waited_after) {
        None => assert_eq!(verdict, "SKIP", "{actual}"),
        Some((before, after)) => {
            let share: f64 = actual.strip_suffix(" % of the time").unwrap().parse().unwrap();
            // The window is 0.15 s at least, and the share is rounded; at 1 % both verdicts may be printed so.
            assert!((share - 0.1) / 100.0 * 150_000.0 <= after - before, "{actual}: {before} {after}");
            assert!(verdict == if share < 1.0 { "OK" } else { "WARN" } || share == 1.0, "{verdict} {actual}");
        }
    }

    spin_gaps(&report, &cpus);

    let (verdict, actual) = report.row("hypervisor");
    assert_eq!(verdict, if is_virtual() { "INFO" } else { "SKIP" }, "{actual}");
    let (verdict, actual) = report.row("firmware-stalls");
    if is_virtual() {
        assert_eq!(verdict, "SKIP", "{actual}");
    } else if !Path::new("/dev/cpu/0/msr").exists() {
        assert!(verdict == "SKIP" || actual.starts_with("hwlat"), "{verdict} {actual}");
    }
}

/// The measurement cannot be repeated: what it says has to fit its verdict.
fn spin_gaps(report: &Report, cpus: &[usize]) {
    let (verdict, actual) = report.row("spin-gaps");
    if verdict == "INFO" {
        return assert!(actual.contains("is busy"), "{actual}");
    }
    let numbers: Vec<f64> = actual.split([' ', ':']).filter_map(|word| word.parse().ok()).collect();
    let [cpu, _, longest_us, lost] = numbers[..] else { panic!("{actual}") };
    assert!(cpus.iter().any(|number| *number as f64 == cpu), "{actual}");
    let is_quiet = longest_us < 49.95 && lost < 0.995;
    let is_loud = longest_us > 50.05 || lost > 1.005;
    match verdict {
        "OK" => assert!(!is_loud, "{actual}"),
        _ => assert!(verdict == "WARN" && !is_quiet, "{verdict} {actual}"),
    }
}
