//! `ring-tune diff` over reports: those of this machine, and those that were written down.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use std::process::{Command, Output, Stdio};

use laid_out::LaidOut;
use serde_json::{Value, json};

fn ring_tune(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ring-tune")).args(arguments).output().unwrap()
}

/// The output of `diff` for two files of these contents, with more arguments.
fn diff(before: impl AsRef<[u8]>, after: impl AsRef<[u8]>, arguments: &[&str]) -> Output {
    let files = LaidOut::new();
    files.write("a.json", before);
    files.write("b.json", after);
    let [before, after] = ["a.json", "b.json"].map(|name| files.path().join(name));
    let both = [before.to_str().unwrap(), after.to_str().unwrap()];
    ring_tune(&[&["diff"], &both[..], arguments].concat())
}

/// What it says of two reports, and that its status is the right one.
fn compared(before: &Value, after: &Value) -> Value {
    let output = diff(before.to_string(), after.to_string(), &["--json"]);
    let comparison: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(comparison["report"], "ring-tune diff");
    let is_worse = !comparison["worse"].as_array().unwrap().is_empty();
    assert_eq!(output.status.code(), Some(if is_worse { 2 } else { 0 }));
    comparison
}

fn names(comparison: &Value, list: &str) -> Vec<String> {
    let list = comparison[list].as_array().unwrap().iter();
    list.map(|entry| entry["what"].as_str().unwrap().into()).collect()
}

fn finding(id: &str, verdict: &str, actual: &str) -> Value {
    json!({"id": id, "verdict": verdict, "actual": actual, "why": "it is slow"})
}

fn check(kernel: &str, findings: &[Value]) -> Value {
    json!({"report": "ring-tune check", "profile": "spin", "cpus": "2-3", "kernel": kernel, "findings": findings})
}

#[test]
fn verdicts_of_check_are_compared_by_row() {
    let before = check(
        "6.1",
        &[
            finding("ksm", "OK", "0"),
            finding("swappiness", "FAIL", "60"),
            finding("thp", "FAIL", "always"),
            finding("stat-interval", "WARN", "1"),
            finding("turbo", "INFO", "on"),
            finding("isolated", "FAIL", "none"),
            finding("old", "OK", "1"),
        ],
    );
    let after = check(
        "6.18",
        &[
            finding("swappiness", "OK", "10"),
            finding("ksm", "FAIL", "1"),
            finding("thp", "WARN", "madvise"),
            finding("stat-interval", "UNKNOWN", "may not be read"),
            finding("turbo", "INFO", "off"),
            finding("isolated", "FAIL", "none"),
            finding("new", "FAIL", "1"),
        ],
    );
    let comparison = compared(&before, &after);
    assert_eq!(names(&comparison, "worse"), ["ksm"]);
    assert_eq!(names(&comparison, "better"), ["swappiness", "thp"]);
    assert_eq!(names(&comparison, "changed"), ["stat-interval", "turbo"]);
    assert_eq!(names(&comparison, "appeared"), ["new"]);
    assert_eq!(names(&comparison, "went"), ["old"]);
    assert_eq!(names(&comparison, "conditions"), ["kernel"]);
    assert_eq!(comparison["unchanged"], 1);
    let ksm = &comparison["worse"][0];
    assert_eq!(ksm["before"], json!({"verdict": "OK", "actual": "0"}));
    assert_eq!(ksm["after"], json!({"verdict": "FAIL", "actual": "1"}));

    let back = compared(&after, &before);
    assert_eq!(names(&back, "worse"), ["swappiness", "thp"]);
    assert_eq!(names(&back, "better"), ["ksm"]);
}

#[test]
fn people_read_conditions_first_and_then_what_got_worse() {
    let before = check("6.1", &[finding("ksm", "OK", "0"), finding("swappiness", "FAIL", "60")]);
    let after = check("6.18", &[finding("ksm", "FAIL", "1\u{1b}[2J"), finding("swappiness", "OK", "10")]);
    let output = diff(before.to_string(), after.to_string(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    let places: Vec<_> =
        ["WARNING", "kernel: 6.1, then 6.18", "\nworse\n", "  ksm: OK (0), then FAIL (1", "\nbetter\n"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part:?} is missing in {text}")))
            .into();
    assert!(places.is_sorted(), "{text}");
    assert!(!text.contains('\u{1b}'), "a report moves the terminal's cursor: {text:?}");
}

fn bench(rows: &[(&str, f64, Option<[f64; 3]>)]) -> Value {
    let rows = rows.iter().map(|(case, p50, ratio)| {
        let [ratio, min, max] = ratio.map_or([None; 3], |ratio| ratio.map(Some));
        json!({"suite": "pingpong", "case": case, "p50": p50, "ratio_to_floor": ratio, "ratio_min": min,
            "ratio_max": max, "rounds": 7})
    });
    json!({"host": {"cpu": "A 9000", "cpus": [0, 1], "tsc_hz": 2.1e9}, "rows": rows.collect::<Vec<_>>()})
}

#[test]
fn cases_of_a_bench_are_compared_by_their_ratio_to_the_floor() {
    let before = bench(&[
        ("floor", 90.0, Some([1.0, 1.0, 1.0])),
        ("spsc", 100.0, Some([1.1, 1.08, 1.12])),
        ("bytes", 150.0, Some([1.6, 1.5, 1.7])),
        ("mpmc", 200.0, Some([2.2, 2.1, 2.3])),
        ("pipe", 5_000.0, None),
        ("unix", 9_000.0, None),
        ("eventfd", 1.0, None),
    ]);
    let after = bench(&[
        ("floor", 180.0, Some([1.0, 1.0, 1.0])),
        ("spsc", 280.0, Some([1.5, 1.4, 1.6])),
        ("bytes", 310.0, Some([1.68, 1.55, 1.75])),
        ("mpmc", 290.0, Some([1.6, 1.55, 1.65])),
        ("pipe", 5_100.0, None),
        ("unix", 13_000.0, None),
        ("broadcast", 1.0, None),
    ]);
    let comparison = compared(&before, &after);
    assert_eq!(names(&comparison, "worse"), ["pingpong/spsc", "pingpong/unix, p50"]);
    assert_eq!(names(&comparison, "better"), ["pingpong/mpmc"]);
    assert_eq!(names(&comparison, "went"), ["pingpong/eventfd, p50"]);
    assert_eq!(names(&comparison, "appeared"), ["pingpong/broadcast, p50"]);
    assert!(names(&comparison, "conditions").is_empty(), "a calibrated rate is no condition: {comparison}");
    assert!(names(&comparison, "not_judged").contains(&"pingpong/spsc, p50".into()));
    let spsc = &comparison["worse"][0];
    assert_eq!([&spsc["before"]["value"], &spsc["after"]["high"]], [1.1, 1.6]);
    assert!((spsc["change_percent"].as_f64().unwrap() - 36.36).abs() < 0.01);
}

#[test]
fn ways_between_cpus_are_compared_by_their_spread() {
    let topology = |ways: [[f64; 3]; 3]| {
        let pairs = [(0, 1), (0, 2), (1, 2)].into_iter().zip(ways);
        let pairs = pairs.map(|((from, to), [min, p50, max])| {
            json!({"from": from, "to": to, "share": "L3", "one_way_ns": {"p50": p50, "min": min, "max": max}})
        });
        json!({"report": "ring-tune topology", "rounds": 9, "cpus": [0, 1, 2], "pairs": pairs.collect::<Vec<_>>()})
    };
    let before = topology([[50.0, 52.0, 55.0], [90.0, 100.0, 110.0], [60.0, 61.0, 62.0]]);
    let after = topology([[70.0, 72.0, 75.0], [95.0, 108.0, 120.0], [40.0, 41.0, 42.0]]);
    let comparison = compared(&before, &after);
    assert_eq!(names(&comparison, "worse"), ["CPU 0 to CPU 1"]);
    assert_eq!(names(&comparison, "better"), ["CPU 1 to CPU 2"]);
    assert_eq!(comparison["unchanged"], 1);
}

#[test]
fn one_negative_sample_of_a_clock_is_worse() {
    let clock = |cost: f64, negative: u32, usable: bool| {
        json!({"report": "ring-tune clock", "source": "Tsc", "cost_ns": cost,
            "ways": [{"negative": negative, "p50_ns": 70.0}], "usable": usable})
    };
    let comparison = compared(&clock(20.0, 0, true), &clock(20.5, 1, false));
    assert_eq!(names(&comparison, "worse"), ["ways.0.negative"]);
    assert_eq!(names(&comparison, "changed"), ["usable"]);
    let comparison = compared(&clock(20.0, 1, true), &clock(10.0, 1, true));
    assert_eq!(names(&comparison, "better"), ["cost_ns"]);
}

#[test]
fn runs_of_both_sides_are_named_in_turn() {
    let files = LaidOut::new();
    let paths: Vec<String> = [20.0, 22.0, 20.2, 22.4, 20.4, 22.2]
        .iter()
        .enumerate()
        .map(|(run, cost)| {
            files.write(
                &format!("{run}.json"),
                json!({"report": "ring-tune clock", "cost_ns": cost}).to_string(),
            );
            files.path().join(format!("{run}.json")).to_str().unwrap().to_owned()
        })
        .collect();
    let diff = |runs: &[String]| {
        let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
        ring_tune(&[&["diff", "--json"], &runs[..]].concat())
    };
    assert_eq!(diff(&paths[..2]).status.code(), Some(0));
    let all = diff(&paths);
    assert_eq!(all.status.code(), Some(2), "{all:?}");
    let comparison: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!(comparison["worse"][0]["before"]["value"], 20.2);
    let odd = diff(&paths[..3]);
    assert_eq!(odd.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&odd.stderr).contains("there are 3 reports"), "{odd:?}");
}

#[test]
fn reports_of_this_machine_are_compared() {
    let check = ring_tune(&["check", "--json"]).stdout;
    let jitter = ring_tune(&["jitter", "--json", "--seconds", "0.2"]).stdout;
    for report in [&check, &jitter] {
        let output = diff(report, report, &["--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
        for list in ["worse", "better", "changed", "not_judged", "appeared", "went", "conditions"] {
            assert!(names(&comparison, list).is_empty(), "a report differs from itself: {comparison}");
        }
        assert!(comparison["unchanged"].as_u64().unwrap() > 0);
    }

    // As it is after something was planted that takes half of the CPU.
    let mut worse: Value = serde_json::from_slice(&jitter).unwrap();
    let cpu = &mut worse["cpus"][0];
    let seconds = cpu["seconds"].as_f64().unwrap();
    cpu["gaps"] = json!(cpu["gaps"].as_u64().unwrap() + 1_000_000);
    cpu["lost_share"] = json!(cpu["lost_share"].as_f64().unwrap() + 5.0);
    for (figure, value) in [("lost_share", 5.0), ("gaps_per_second", 1e6 / seconds)] {
        cpu[format!("{figure}_min")] = json!(value * 0.9);
        cpu[format!("{figure}_max")] = json!(value * 1.1);
    }
    let comparison = compared(&serde_json::from_slice(&jitter).unwrap(), &worse);
    assert_eq!(names(&comparison, "worse").len(), 2, "{comparison}");

    let output = diff(&check, &jitter, &[]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        complaint.contains("check") && complaint.contains("jitter") && complaint.contains("one kind"),
        "{complaint}"
    );
}

#[test]
fn what_is_no_report_is_an_error_that_says_so() {
    let good = check("6.1", &[]).to_string();
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let lines = format!("{good}\n{good}\n");
    for (bad, reason) in [
        ("", "empty"),
        ("nonsense", "no JSON of one report"),
        ("\u{1b}[2J", "no JSON of one report"),
        (&deep, "recursion limit"),
        (&good[..good.len() / 2], "no JSON of one report"),
        (&lines, "trailing characters"),
        ("[]", "no report"),
        ("null", "no report"),
        ("{\"report\": 1}", "no report"),
        ("{\"report\": \"ring-tune watch\"}", "reports of ring-tune watch are not compared"),
        ("{\"report\": \"ring-tune check\"}", "no list of findings"),
        ("{\"report\": \"ring-tune check\", \"findings\": {}}", "no list of findings"),
        ("{\"report\": \"ring-tune check\", \"findings\": [1]}", "a finding lacks"),
        ("{\"report\": \"ring-tune jitter\", \"cpus\": [{\"cpu\": -1}]}", "a CPU lacks"),
        ("{\"report\": \"ring-tune topology\", \"pairs\": [{\"from\": 0}]}", "a pair lacks"),
        ("{\"host\": {}, \"rows\": [null]}", "a row lacks"),
        ("{\"host\": {}, \"rows\": [{\"suite\": \"s\", \"case\": \"c\", \"p50\": 1e999}]}", "out of range"),
    ] {
        for (before, after) in [(bad, good.as_str()), (good.as_str(), bad)] {
            let output = diff(before, after, &[]);
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            let bad = &bad[..bad.len().min(80)];
            assert_eq!(output.status.code(), Some(1), "{bad}: {complaint}");
            assert!(complaint.contains(reason), "{bad}: {complaint}");
            assert!(!complaint.contains('\u{1b}'), "{complaint:?}");
        }
    }
}

#[test]
fn figures_at_the_edge_of_numbers_do_no_harm() {
    let bench = |ratio: &str| {
        let row = format!("\"suite\": \"s\", \"case\": \"c\", \"rounds\": 7, \"ratio_to_floor\": {ratio}");
        format!("{{\"host\": {{}}, \"rows\": [{{{row}}}]}}")
    };
    for (before, after, status) in
        [("-1e308", "1e308", 2), ("1e308", "-1e308", 0), ("0", "1e-320", 2), ("1e-320", "1e308", 2)]
    {
        for arguments in [&["--json"][..], &[]] {
            let output = diff(bench(before), bench(after), arguments);
            assert_eq!(output.status.code(), Some(status), "{before} and {after}: {output:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_read_are_errors_with_their_name() {
    let files = LaidOut::new();
    files.write("good.json", check("6.1", &[]).to_string());
    files.write("huge.json", "");
    let huge = files.path().join("huge.json");
    std::fs::File::options().write(true).open(&huge).unwrap().set_len(1 << 40).unwrap();
    let good = files.path().join("good.json");
    let folder = files.path().to_str().unwrap();
    for (bad, reason) in [
        (huge.to_str().unwrap(), "longer than 16 MiB"),
        ("/dev/zero", "longer than 16 MiB"),
        ("/no/such/file", "No such file"),
        (folder, "directory"),
    ] {
        let output = ring_tune(&["diff", good.to_str().unwrap(), bad]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{bad}: {complaint}");
        assert!(complaint.contains(bad) && complaint.contains(reason), "{bad}: {complaint}");
    }
}

#[test]
fn a_report_may_come_through_a_pipe() {
    let files = LaidOut::new();
    let report = check("6.1", &[finding("ksm", "OK", "0")]).to_string();
    files.write("a.json", &report);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ring-tune"))
        .arg("diff")
        .arg(files.path().join("a.json"))
        .arg("/dev/stdin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), report.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
