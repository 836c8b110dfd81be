//! `ring-tune check` says of this machine what its files say, read here in another way: isolation, interrupts, frequency.
#![cfg(feature = "cli")]

#[path = "common/skip.rs"]
mod skip;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use skip::skip;

type Cpus = BTreeSet<usize>;

const CPU: &str = "/sys/devices/system/cpu";

/// What the command found, by row; interrupts come and go meanwhile, so that it is asked anew for each try.
fn findings(cpus: &str, profile: &str) -> BTreeMap<String, Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(["check", "--json", "--cpus", cpus, "--profile", profile]);
    let output = command.output().unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| (finding["id"].as_str().unwrap().into(), finding.clone())).collect()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The CPUs of a list such as `0-3,8`.
fn listed(list: &str) -> Cpus {
    let parts = list.split(',').filter(|part| !part.is_empty() && *part != "(null)");
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => first.parse::<usize>().unwrap()..=last.parse().unwrap(),
        None => part.parse().unwrap()..=part.parse().unwrap(),
    };
    parts.flat_map(range).collect()
}

/// The CPUs of a mask such as `ff,00000003`.
fn masked(mask: &str) -> Cpus {
    let digits: Vec<u32> = mask.chars().rev().filter_map(|digit| digit.to_digit(16)).collect();
    let bits = digits
        .iter()
        .enumerate()
        .flat_map(|(place, digit)| (0..4).map(move |bit| (place * 4 + bit, digit >> bit & 1)));
    bits.filter(|(_, is_set)| *is_set == 1).map(|(cpu, _)| cpu).collect()
}

fn cpus_in(path: &str) -> Option<Cpus> {
    read(path).map(|text| listed(&text))
}

fn online() -> Cpus {
    cpus_in(&format!("{CPU}/online")).unwrap()
}

/// The last of the CPUs, and all of them: with and without others for everything else.
fn choices() -> Vec<Cpus> {
    let online = online();
    let last = *online.iter().next_back().unwrap();
    vec![Cpus::from([last]), online]
}

fn list(cpus: &Cpus) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[track_caller]
fn assert_verdict(findings: &BTreeMap<String, Value>, id: &str, verdict: &str) {
    assert_eq!(findings[id]["verdict"], verdict, "{}", findings[id]);
}

#[track_caller]
fn assert_actual(findings: &BTreeMap<String, Value>, id: &str, cpus: &Cpus) {
    let actual = findings[id]["actual"].as_str().unwrap();
    let said = if actual == "none" { Cpus::new() } else { listed(actual) };
    assert_eq!(&said, cpus, "{}", findings[id]);
}

/// Where the unified tree is mounted, as `findmnt` shows it.
fn unified() -> Option<String> {
    let mounts = read("/proc/self/mounts")?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    mount.split(' ').nth(1).map(Into::into)
}

/// The states of all partitions with their cgroup's folder, as `find -name cpuset.cpus.partition` would find them.
fn partitions() -> Vec<(String, String)> {
    let Some(root) = unified() else { return vec![] };
    let script = "find \"$1\" -name cpuset.cpus.partition -printf '%h\\n' 2>/dev/null";
    let output = Command::new("sh").args(["-c", script, "sh", &root]).output().unwrap();
    let folders = String::from_utf8(output.stdout).unwrap();
    let states = folders
        .lines()
        .filter_map(|folder| Some((folder.to_owned(), read(&format!("{folder}/cpuset.cpus.partition"))?)));
    states.filter(|(_, state)| state != "member").collect()
}

#[test]
fn isolation() {
    let mut isolated = cpus_in(&format!("{CPU}/isolated"));
    if let Some(more) = unified().and_then(|root| cpus_in(&format!("{root}/cpuset.cpus.isolated"))) {
        isolated.get_or_insert_default().extend(more);
    }
    let partitions = partitions();
    for (folder, _) in partitions.iter().filter(|(_, state)| state == "isolated") {
        let cpus = cpus_in(&format!("{folder}/cpuset.cpus.effective")).unwrap_or_default();
        isolated.get_or_insert_default().extend(cpus);
    }
    let tickless = cpus_in(&format!("{CPU}/nohz_full"));
    for cpus in choices() {
        let findings = findings(&list(&cpus), "spin");
        match &isolated {
            None => assert_verdict(&findings, "isolated", "SKIP"),
            Some(isolated) => {
                let is_good = cpus.is_subset(isolated) && !online().is_subset(isolated);
                assert_verdict(&findings, "isolated", if is_good { "OK" } else { "FAIL" });
                assert_actual(&findings, "isolated", isolated);
            }
        }
        match &tickless {
            None => assert_verdict(&findings, "nohz-full", "SKIP"),
            Some(tickless) => {
                assert_verdict(&findings, "nohz-full", if cpus.is_subset(tickless) { "OK" } else { "FAIL" });
                assert_actual(&findings, "nohz-full", tickless);
            }
        }
        let is_invalid = partitions.iter().any(|(_, state)| state.contains("invalid"));
        match &findings["partition"]["verdict"] {
            verdict if partitions.is_empty() => assert_eq!(verdict, "SKIP"),
            verdict if is_invalid => assert!(verdict == "FAIL" || verdict == "WARN", "{verdict}"),
            verdict => assert_eq!(verdict, "OK"),
        }
    }
}

#[test]
fn callbacks_run_elsewhere_where_the_command_line_says_so() {
    let line = read("/proc/cmdline").unwrap();
    let tickless = cpus_in(&format!("{CPU}/nohz_full"));
    // The grammar of this parameter has more than lists; what it means is seen in the fixtures.
    if line.contains("rcu_nocbs") {
        return skip("rcu_nocbs= is given on this machine");
    }
    for cpus in choices() {
        let findings = findings(&list(&cpus), "spin");
        let verdict = match &tickless {
            None => "SKIP",
            Some(tickless) if cpus.is_subset(tickless) => "OK",
            Some(_) => "WARN",
        };
        assert_verdict(&findings, "rcu-offload", verdict);
    }
}

/// The interrupts that came at least once and go to one of the CPUs.
fn interrupts_on(cpus: &Cpus) -> BTreeSet<String> {
    let counted = read("/proc/interrupts").unwrap();
    let width = counted.lines().next().unwrap().split_whitespace().count();
    let has_come = |number: &str| {
        let line = counted.lines().find(|line| line.trim_start().starts_with(&format!("{number}:")));
        line.is_none_or(|line| line.split_whitespace().skip(1).take(width).any(|count| count != "0"))
    };
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc/irq").unwrap() {
        let number = entry.unwrap().file_name().into_string().unwrap();
        let file = |name: &str| cpus_in(&format!("/proc/irq/{number}/{name}"));
        let Some(asked) = file("smp_affinity_list") else { continue };
        let effective = file("effective_affinity_list").unwrap_or_else(|| asked.clone());
        let is_here = cpus.iter().any(|cpu| asked.contains(cpu) && effective.contains(cpu));
        if is_here && has_come(&number) {
            found.insert(number);
        }
    }
    found
}

#[test]
fn interrupts_of_devices() {
    if !Path::new("/proc/irq").exists() {
        for cpus in choices() {
            assert_verdict(&findings(&list(&cpus), "spin"), "irq-affinity", "SKIP");
        }
        return;
    }
    for cpus in choices() {
        // An interrupt may come for the first time, or move, between two looks: only the same answer before and after
        // is compared.
        for attempt in 0.. {
            let before = interrupts_on(&cpus);
            let findings = findings(&list(&cpus), "spin");
            if before != interrupts_on(&cpus) {
                assert!(attempt < 100, "the interrupts of this machine never come to rest");
                continue;
            }
            assert_verdict(&findings, "irq-affinity", if before.is_empty() { "OK" } else { "FAIL" });
            let actual = findings["irq-affinity"]["actual"].as_str().unwrap();
            let (shown, more) = actual.split_once(" and ").unwrap_or((actual, "0 more"));
            let is_number = |word: &&str| word.parse::<u32>().is_ok();
            let numbers: Vec<&str> =
                shown.split(", ").filter_map(|part| part.split(' ').next()).filter(is_number).collect();
            let more: usize = more.trim_end_matches(" more").parse().unwrap();
            assert_eq!(numbers.len() + more, before.len(), "{actual}: {before:?}");
            assert!(numbers.iter().all(|number| before.contains(*number)), "{actual}: {before:?}");
            break;
        }
    }
}

#[test]
fn masks_without_the_cpus() {
    let rows = [
        ("irq-default", "/proc/irq/default_smp_affinity", "WARN"),
        ("workqueues", "/sys/devices/virtual/workqueue/cpumask", "FAIL"),
    ];
    for cpus in choices() {
        let findings = findings(&list(&cpus), "hybrid");
        for (id, path, otherwise) in rows {
            let Some(mask) = read(path) else {
                assert_verdict(&findings, id, "SKIP");
                continue;
            };
            let mask: Cpus = masked(&mask).intersection(&online()).copied().collect();
            assert_verdict(&findings, id, if mask.is_disjoint(&cpus) { "OK" } else { otherwise });
            assert_actual(&findings, id, &mask);
            let others: Cpus = online().difference(&cpus).copied().collect();
            let isolated = cpus_in(&format!("{CPU}/isolated")).unwrap_or_default();
            let shared: Cpus = others.difference(&isolated).copied().collect();
            let others = if shared.is_empty() { others } else { shared };
            let changes = findings[id]["changes"].as_array().unwrap();
            assert_eq!(changes.is_empty(), mask.is_disjoint(&cpus) || others.is_empty());
            for change in changes {
                assert_eq!(masked(change["value"].as_str().unwrap()), others);
            }
        }
    }
}

/// A shell that is called irqbalance; it ends with its standard input.
struct Balancer(Child);

impl Balancer {
    fn start(banned: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "printf irqbalance > /proc/$$/comm; echo; read line"]);
        command.env("IRQBALANCE_BANNED_CPULIST", banned).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The line that it prints once it is called so.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn is_irqbalance_running() -> bool {
    let names = Command::new("sh").args(["-c", "cat /proc/[0-9]*/comm 2>/dev/null"]).output().unwrap();
    String::from_utf8_lossy(&names.stdout).lines().any(|name| name == "irqbalance")
}

#[test]
fn irqbalance_runs_or_not() {
    let last = &choices()[0];
    let finding = |cpus: &Cpus| findings(&list(cpus), "spin")["irqbalance"].clone();
    if is_irqbalance_running() {
        skip("more than that irqbalance is seen to run, since it does");
        let actual = finding(last);
        assert!(actual["actual"].as_str().unwrap().starts_with("running"), "{actual}");
        return;
    }
    assert_eq!(finding(last)["verdict"], "OK");
    assert_eq!(finding(last)["actual"], "not running");

    let balancer = Balancer::start(&list(last));
    let found = finding(last);
    assert_eq!(found["verdict"], "OK", "{found}");
    assert_eq!(found["actual"], format!("running, {} banned by its environment", list(last)));
    if online().len() > 1 {
        assert_eq!(finding(&online())["verdict"], "FAIL");
    }
    drop(balancer);

    // No list at all bans no CPU.
    let _balancer = Balancer::start("-");
    let found = finding(last);
    assert_eq!(found["verdict"], "FAIL", "{found}");
    assert_eq!(found["actual"], "running, no CPU banned by its environment");
}

/// What a file says on those of the CPUs that have it.
fn of_each(cpus: &Cpus, file: &str) -> Vec<String> {
    cpus.iter().filter_map(|cpu| read(&format!("{CPU}/cpu{cpu}/{file}"))).collect()
}

#[test]
fn frequency() {
    for cpus in choices() {
        let findings = findings(&list(&cpus), "spin");
        let governors = of_each(&cpus, "cpufreq/scaling_governor");
        let preferences = of_each(&cpus, "cpufreq/energy_performance_preference");
        match &findings["governor"]["verdict"] {
            verdict if governors.is_empty() => assert_eq!(verdict, "SKIP"),
            verdict if governors.iter().all(|governor| governor == "performance") => {
                assert_eq!(verdict, "OK")
            }
            verdict => assert!(verdict == "FAIL" || verdict == "WARN", "{verdict}"),
        }
        for governor in &governors {
            assert!(findings["governor"]["actual"].as_str().unwrap().contains(governor));
        }
        let floor = read(&format!("{CPU}/intel_pstate/min_perf_pct"));
        let biases = of_each(&cpus, "power/energy_perf_bias");
        let has_none = preferences.is_empty() && biases.is_empty() && floor.is_none();
        assert_eq!(findings["energy-bias"]["verdict"] == "SKIP", has_none, "{}", findings["energy-bias"]);
        let is_slow = biases.iter().any(|bias| bias != "0")
            || preferences.iter().any(|preference| preference != "performance" && preference != "0");
        assert!(!is_slow || findings["energy-bias"]["verdict"] == "WARN", "{}", findings["energy-bias"]);
        let turbo = read(&format!("{CPU}/intel_pstate/no_turbo")).map(|off| off == "0");
        let turbo = turbo.or_else(|| read(&format!("{CPU}/cpufreq/boost")).map(|on| on != "0"));
        match turbo {
            None => assert_verdict(&findings, "turbo", "SKIP"),
            Some(is_on) => assert_eq!(findings["turbo"]["actual"], if is_on { "on" } else { "off" }),
        }
        let highest = of_each(&cpus, "cpufreq/scaling_max_freq");
        let most = of_each(&cpus, "cpufreq/cpuinfo_max_freq");
        let khz = |text: &String| text.parse::<u64>().unwrap();
        let is_capped = highest.iter().zip(&most).any(|(highest, most)| khz(highest) < khz(most));
        match &findings["frequency-bounds"]["verdict"] {
            verdict if highest.is_empty() => assert_eq!(verdict, "SKIP"),
            verdict if is_capped => assert_eq!(verdict, "WARN"),
            verdict => assert!(verdict == "OK" || verdict == "INFO", "{verdict}"),
        }
    }
}

#[test]
fn sleep_states() {
    for cpus in choices() {
        let findings = findings(&list(&cpus), "spin");
        let script =
            "for cpu in $1; do cat /sys/devices/system/cpu/cpu$cpu/cpuidle/state*/latency; done 2>/dev/null";
        let each = list(&cpus).replace(',', " ");
        let output = Command::new("sh").args(["-c", script, "sh", &each]).output().unwrap();
        let latencies = String::from_utf8(output.stdout).unwrap();
        let slowest = latencies.lines().filter_map(|latency| latency.parse::<u64>().ok()).max();
        for id in ["cstate-limit", "cstate-cpu"] {
            let verdict = &findings[id]["verdict"];
            match slowest {
                None => assert_eq!(verdict, "SKIP"),
                Some(0..=5) => assert_eq!(verdict, "OK"),
                // The limits decide; who may not read them learns nothing.
                Some(_) => {
                    assert!(["OK", "WARN", "UNKNOWN"].contains(&verdict.as_str().unwrap()), "{verdict}")
                }
            }
        }
    }
}
