//! `ring-tune check` over hosts that were written down, each row with its exact verdict.
//!
//! A host is a folder: `command` holds the arguments, `GROUP.tree` files with their sources, `GROUP.verdicts` a line
//! `ID VERDICT ACTUAL` for each row of that group. Where a group needs other arguments, `GROUP.command` holds them. Where
//! `profiles` is there, it holds a line `ID SPIN HYBRID RDMA BENCH` with the verdicts for each.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use laid_out::LaidOut;
use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");

fn hosts() -> Vec<PathBuf> {
    let mut hosts: Vec<_> = fs::read_dir(HOSTS).unwrap().map(|entry| entry.unwrap().path()).collect();
    hosts.sort();
    hosts
}

/// The files of a host with an ending, by their group.
fn parts(host: &Path, ending: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(host).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == ending));
    files
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().into(), fs::read_to_string(path).unwrap()))
        .collect()
}

fn lay_out(host: &Path) -> LaidOut {
    let files = LaidOut::new();
    for text in parts(host, "tree").values() {
        files.add(text);
    }
    files
}

fn check(host: &Path, files: &LaidOut) -> (Output, Value) {
    check_as(host, files, &fs::read_to_string(host.join("command")).unwrap())
}

fn check_as(host: &Path, files: &LaidOut, arguments: &str) -> (Output, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(["check", "--json", "--root"]).arg(files.path()).args(arguments.split_whitespace());
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{host:?}: {error}: {output:?}"));
    (output, report)
}

fn findings(report: &Value) -> &Vec<Value> {
    report["findings"].as_array().unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// What the rows of each group found, asked as the group is to be asked.
fn findings_by_group(host: &Path) -> BTreeMap<String, Vec<Value>> {
    let files = lay_out(host);
    let commands = parts(host, "command");
    let own: BTreeMap<_, _> =
        commands.iter().map(|(group, command)| (group, check_as(host, &files, command).1)).collect();
    let (_, common) = check(host, &files);
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for finding in findings(&common) {
        groups.entry(text(finding, "group").into()).or_default();
    }
    for (group, rows) in &mut groups {
        let report = own.get(group).unwrap_or(&common);
        rows.extend(findings(report).iter().filter(|finding| text(finding, "group") == group).cloned());
    }
    groups
}

#[test]
fn each_host_gets_the_verdicts_that_were_written_down() {
    let mut wrong = vec![];
    for host in hosts() {
        let verdicts = parts(&host, "verdicts");
        for (group, rows) in findings_by_group(&host) {
            let line =
                |row: &Value| format!("{} {} {}", text(row, "id"), text(row, "verdict"), text(row, "actual"));
            let actual: Vec<String> = rows.iter().map(line).collect();
            let expected: Vec<&str> =
                verdicts.get(&group).map(|text| text.lines().collect()).unwrap_or_default();
            if actual != expected {
                wrong.push(format!("{}/{group}.verdicts would be:\n{}\n", host.display(), actual.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const PROFILES: [&str; 4] = ["spin", "hybrid", "rdma", "bench"];

#[test]
fn each_profile_gets_the_verdicts_that_were_written_down() {
    let mut hosts = hosts();
    hosts.retain(|host| host.join("profiles").exists());
    assert!(!hosts.is_empty(), "no host has verdicts by profile");
    for host in hosts {
        let files = lay_out(&host);
        let reports =
            PROFILES.map(|profile| check_as(&host, &files, &format!("--cpus 2-3 --profile {profile}")).1);
        let rows = findings(&reports[0]).iter().enumerate().map(|(place, row)| {
            let verdicts = reports.iter().map(|report| text(&findings(report)[place], "verdict"));
            format!("{} {}", text(row, "id"), verdicts.collect::<Vec<_>>().join(" "))
        });
        let actual: Vec<String> = rows.collect();
        let expected = fs::read_to_string(host.join("profiles")).unwrap();
        assert_eq!(actual, expected.lines().collect::<Vec<_>>(), "{}", host.display());
    }
}

#[test]
fn what_is_to_be_mended_says_what_it_costs_and_how_it_is_mended() {
    let mut seen = BTreeSet::new();
    for host in hosts() {
        let files = lay_out(&host);
        let cpus = fs::read_to_string(host.join("command")).unwrap();
        let (_, cpus) = cpus.split_once("--cpus").unwrap();
        for profile in PROFILES {
            let (_, report) = check_as(&host, &files, &format!("--cpus {cpus} --profile {profile}"));
            for finding in findings(&report) {
                if !matches!(text(finding, "verdict"), "FAIL" | "WARN") {
                    continue;
                }
                for key in ["actual", "wanted", "why", "price", "source"] {
                    assert!(!text(finding, key).is_empty(), "no {key}: {finding}");
                }
                let is_there = |key: &str| !finding[key].as_array().unwrap().is_empty();
                let now = !text(finding, "now").is_empty();
                let boot = !text(finding, "boot").is_empty() || is_there("parameters");
                assert!(now || boot, "nothing mends it: {finding}");
                // A file that is written is as it was after a restart, so that both are to be told.
                assert!(!is_there("changes") || (now && boot), "now or at boot is missing: {finding}");
                seen.insert(text(finding, "id").to_owned());
            }
        }
    }
    assert!(seen.len() > 30, "only of {seen:?}");
}

/// Rows that neither pass nor fail: turbo is good for latency and bad for repeatability, what guards cost is the price
/// of safety, and a virtual machine is what it is.
const NEITHER: [&str; 4] = ["turbo", "mitigations", "audit", "hypervisor"];

#[test]
fn each_row_passes_fails_and_is_absent_somewhere() {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for host in hosts() {
        for finding in findings_by_group(&host).values().flatten() {
            seen.entry(text(finding, "id").into()).or_default().insert(text(finding, "verdict").into());
        }
    }
    let mut missing = vec![];
    for id in NEITHER {
        assert!(
            seen.get(id).is_some_and(|verdicts| !verdicts.contains("FAIL")),
            "{id} is no row that only informs"
        );
    }
    for (id, verdicts) in seen {
        let has = |verdict: &str| verdicts.contains(verdict);
        let informs = has("INFO") && NEITHER.contains(&id.as_str());
        let judges = has("OK") && (has("FAIL") || has("WARN"));
        if !has("SKIP") || !(judges || informs) {
            missing.push(format!("{id}: {verdicts:?}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_status_says_whether_something_fails() {
    for host in hosts() {
        let (output, report) = check(&host, &lay_out(&host));
        let fails = findings(&report).iter().any(|finding| text(finding, "verdict") == "FAIL");
        assert_eq!(report["is_ready"], !fails);
        assert_eq!(output.status.code(), Some(if fails { 2 } else { 0 }), "{host:?}");
    }
}
