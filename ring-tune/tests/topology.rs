//! `ring-tune topology`: each pair, beside what sysfs says.
#![cfg(feature = "cli")]

#[path = "common/skip.rs"]
mod skip;

use std::fs;
use std::process::{Command, Output};

use ring_tune::{allowed_cpus, pin_to};
use serde_json::Value;
use skip::skip;

fn topology(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ring-tune")).arg("topology").args(arguments).output().unwrap()
}

/// None on a machine with one CPU.
fn pair() -> Option<[usize; 2]> {
    let cpus: Vec<usize> = allowed_cpus().unwrap().iter().take(2).collect();
    cpus.try_into().ok()
}

#[test]
fn one_cpu_is_no_pair() {
    let first = allowed_cpus().unwrap().iter().next().unwrap();
    let pinned = std::thread::spawn(move || {
        pin_to(first).unwrap();
        topology(&[])
    });
    let output = pinned.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&format!(
        "takes two CPUs to hand something over: name them with --cpus; may be used: {first}"
    )));
}

#[test]
fn a_cpu_that_is_named_twice_is_measured_once() {
    let Some([one, other]) = pair() else { return skip("there is one CPU") };
    let output = topology(&["--cpus", &format!("{other},{one},{other}"), "--rounds", "1", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["cpus"], serde_json::json!([one, other]));
    assert_eq!(report["pairs"].as_array().unwrap().len(), 1);
}

#[test]
fn each_pair_has_a_time_and_what_it_shares() {
    let cpus: Vec<usize> = allowed_cpus().unwrap().iter().take(4).collect();
    if cpus.len() < 2 {
        return skip("there is one CPU");
    }
    let list = cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let picture = std::env::temp_dir().join(format!("ring-tune-heat-map-{}.svg", std::process::id()));
    fs::write(&picture, "x".repeat(1 << 20)).unwrap();
    let output =
        topology(&["--cpus", &list, "--rounds", "3", "--json", "--heat-map", picture.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), cpus.len() * (cpus.len() - 1) / 2);
    for pair in pairs {
        let way = &pair["one_way_ns"];
        let [least, median, most] = ["min", "p50", "max"].map(|name| way[name].as_f64().unwrap());
        assert!(0.0 < least && least <= median && median <= most, "{pair}");
        let siblings = format!("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", pair["from"]);
        if let Ok(siblings) = fs::read_to_string(siblings) {
            let siblings: ring_tune::CpuSet = siblings.parse().unwrap();
            let other = usize::try_from(pair["to"].as_u64().unwrap()).unwrap();
            assert_eq!(pair["share"] == "two threads of one core", siblings.contains(other), "{pair}");
        }
    }
    let svg = fs::read_to_string(&picture).unwrap();
    fs::remove_file(&picture).unwrap();
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let cells = svg.descendants().filter(|node| node.has_tag_name("rect")).count();
    assert_eq!(cells, 1 + 2 * pairs.len(), "the ground, and each pair both ways round");
}

#[test]
fn what_cannot_be_measured_or_written_is_told_at_once() {
    let Some(cpus) = pair() else { return skip("there is one CPU") };
    let [first, twice] = [format!("{}", cpus[0]), format!("{0},{0}", cpus[0])];
    for (arguments, text) in [
        (&["--cpus", ""] as &[_], "takes two CPUs"),
        (&["--cpus", &first], "takes two CPUs"),
        (&["--cpus", &twice], "takes two CPUs"),
        (&["--cpus", "0,8191"], "may only use"),
        (&["--rounds", "0"], "rounds"),
        (&["--heat-map", "/no/such/folder/map.svg", "--rounds", "65535"], "cannot write /no/such/folder"),
        (&["--heat-map", "/dev/full", "--rounds", "1"], "cannot write /dev/full"),
    ] {
        let output = topology(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(text), "{arguments:?}: {error}");
    }
}
