//! `ring-tune check` over files that no kernel writes: each row ends with a verdict, and the report is whole.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laid_out::LaidOut;
use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");

/// Without this file there are no CPUs to speak of.
const NEEDED: &str = "sys/devices/system/cpu/online";

const GARBAGE: &[&[u8]] = &[
    b"",
    b"\n\n",
    b"no number",
    b"\xff\xfe\x00\x01",
    b"-1",
    b"99999999999999999999",
    b"-9223372036854775808",
    b"9223372036854775807",
    b"0-4294967295",
    b"18446744073709551616",
    b"0-7:2/4",
    b"1\r\n",
    b"0\x001",
    b"0-8191,0-8191,0-8191",
    b"8191",
    b"3-1,,-",
    b"all",
    b"(null)",
    b"=",
    b": :",
    "\u{b5}, \u{20ac} \u{1b}[2J".as_bytes(),
    b"CPU0 CPU2\n 1: 18446744073709551615 2 x\n:",
    b"isolated invalid",
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap();
        if kind.is_dir() {
            files(&path, found);
        } else if kind.is_file() {
            found.push(path);
        }
    }
}

fn lay_out(host: &Path) -> LaidOut {
    let laid_out = LaidOut::new();
    for entry in fs::read_dir(host).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tree") {
            laid_out.add(&fs::read_to_string(path).unwrap());
        }
    }
    laid_out
}

/// Xorshift: the same garbage at the same places each time.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Fills about one file in eight with garbage; some become folders, or too long to be read. Gives what they held.
fn spoil(root: &Path, state: &mut u64) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = vec![];
    files(root, &mut all);
    all.sort();
    let (needed, places) = (root.join(NEEDED), u64::try_from(GARBAGE.len()).unwrap() + 2);
    let chosen = all.into_iter().filter(|path| *path != needed && next(state) % 8 == 0);
    let spoilt: BTreeMap<_, _> = chosen.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    for path in spoilt.keys() {
        let place = usize::try_from(next(state) % places).unwrap();
        match GARBAGE.get(place) {
            Some(garbage) => fs::write(path, garbage).unwrap(),
            None if place == GARBAGE.len() => {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            }
            None => fs::File::create(path).unwrap().set_len(1 << 30).unwrap(),
        }
    }
    spoilt
}

fn restore(files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, content) in files {
        if path.is_dir() {
            fs::remove_dir(path).unwrap();
        }
        fs::write(path, content).unwrap();
    }
}

fn report(root: &Path, arguments: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(["check", "--json", "--root"]).arg(root).args(arguments.split_whitespace());
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_row_ends_with_a_verdict() {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut unknown = 0;
    for name in ["xeon-tuned", "partition-invalid", "cloud-vm"] {
        let host = Path::new(HOSTS).join(name);
        let arguments = fs::read_to_string(host.join("command")).unwrap();
        let laid_out = lay_out(&host);
        for _ in 0..20 {
            let spoilt = spoil(laid_out.path(), &mut state);
            let report = report(laid_out.path(), &arguments);
            let findings = report["findings"].as_array().unwrap();
            unknown += findings.iter().filter(|finding| finding["verdict"] == "UNKNOWN").count();
            restore(&spoilt);
        }
    }
    assert!(unknown > 0, "what is garbage was taken for something else");
}

/// Rows that no garbage makes UNKNOWN, and why.
const ALWAYS_KNOWN: [(&str, &str); 1] =
    [("irqbalance", "a process may be called anything, and one that is not called irqbalance is not")];

/// So that no row's reader is left out: with the same garbage in all files each row says once that it cannot tell.
#[test]
fn each_row_meets_what_it_cannot_read() {
    let mut unknown = BTreeSet::new();
    let mut all = BTreeSet::new();
    for name in ["xeon-tuned", "xeon-untuned", "partition-invalid", "cloud-vm"] {
        let host = Path::new(HOSTS).join(name);
        let laid_out = lay_out(&host);
        let arguments = fs::read_to_string(host.join("command")).unwrap();
        let mut paths = vec![];
        files(laid_out.path(), &mut paths);
        // Without a time between the samples there is one, which is not looked at.
        paths.retain(|path| {
            [NEEDED, "earlier/seconds"].iter().all(|kept| *path != laid_out.path().join(kept))
        });
        for garbage in [&b"no number"[..], b"\xff\xfe\x00\x01", b"0-4294967295"] {
            for path in &paths {
                fs::write(path, garbage).unwrap();
            }
            let report = report(laid_out.path(), &arguments);
            for finding in report["findings"].as_array().unwrap() {
                let id = finding["id"].as_str().unwrap().to_owned();
                if finding["verdict"] == "UNKNOWN" {
                    unknown.insert(id.clone());
                }
                all.insert(id);
            }
        }
    }
    let known: BTreeSet<String> = ALWAYS_KNOWN.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(all.difference(&unknown).cloned().collect::<BTreeSet<_>>(), known);
}

#[test]
fn a_report_is_short_whatever_the_files_hold() {
    let laid_out = lay_out(&Path::new(HOSTS).join("xeon-untuned"));
    let mut paths = vec![];
    files(laid_out.path(), &mut paths);
    paths.retain(|path| *path != laid_out.path().join(NEEDED));
    let long = "µ".repeat(20_000);
    for path in &paths {
        fs::write(path, &long).unwrap();
    }
    let name = "sys/devices/system/cpu/cpu2/cpufreq";
    for file in ["scaling_governor", "energy_performance_preference"] {
        laid_out.write(&format!("{name}/{file}"), &long);
    }
    laid_out.write("proc/cpuinfo", format!("model name : {long}\nflags : hypervisor {long}\n"));
    let report = report(laid_out.path(), "--cpus 2-3");
    let governor = report["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == "governor");
    assert!(governor.unwrap()["actual"].as_str().unwrap().ends_with("µ…"), "{governor:?}");
    assert!(report["cpu"].as_str().unwrap().ends_with("µ…"));
    let length = report.to_string().len();
    assert!(length < 100_000, "{length} bytes");
}
