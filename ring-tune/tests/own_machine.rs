//! What only a machine of its own stands: CPUs that go and come, partitions of them, all settings mended at once.
//!
//! `cargo xtask test` runs these in a virtual machine with Debian's kernel, which has what the others may lack: the
//! unified tree of cgroups, CPUs that can be plugged, RDMA devices. `RING_TUNE_OWN_MACHINE=1` says that it is one.

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod laid_out;
#[path = "common/skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};

use laid_out::LaidOut;
use libtest_mimic::{Arguments, Trial};
use ring_tune::{Error, Topology, Tree, allowed_cpus, pin_to};
use serde_json::Value;
use skip::skip;

const CGROUPS: &str = "/sys/fs/cgroup";
const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if std::env::var_os("RING_TUNE_OWN_MACHINE").is_none() {
        eprintln!(
            "these tests unplug CPUs and change settings, on a machine that RING_TUNE_OWN_MACHINE=1 gives them; `cargo \
             xtask test` has a virtual one"
        );
        return ExitCode::SUCCESS;
    }
    let tests: &[(&str, fn())] = &[
        ("a_cpu_that_is_unplugged_is_none", a_cpu_that_is_unplugged_is_none),
        ("all_that_files_mend_is_mended_and_comes_back", all_that_files_mend_is_mended_and_comes_back),
        ("counters_of_rdma_devices_are_the_drivers", counters_of_rdma_devices_are_the_drivers),
        // The last one: processes keep away from a CPU that they could not have meanwhile.
        ("the_commands_of_a_finding_isolate_cpus", the_commands_of_a_finding_isolate_cpus),
    ];
    let trials = tests.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn ring_tune(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    ring_tune(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn finding(id: &str) -> Value {
    finding_for("1", id)
}

fn finding_for(cpus: &str, id: &str) -> Value {
    let report = json(&output(&["check", "--json", "--cpus", cpus]));
    let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id);
    found.unwrap().clone()
}

fn sh(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

/// The second CPU, unplugged until this is dropped.
struct Unplugged;

impl Unplugged {
    fn new() -> Self {
        fs::write(ONLINE, "0").unwrap();
        Self
    }
}

impl Drop for Unplugged {
    fn drop(&mut self) {
        fs::write(ONLINE, "1").unwrap();
    }
}

/// A partition that goes with its test.
struct Partition;

impl Drop for Partition {
    fn drop(&mut self) {
        sh(&format!("! [ -d {CGROUPS}/ring ] || rmdir {CGROUPS}/ring"));
    }
}

fn the_commands_of_a_finding_isolate_cpus() {
    sh(&format!("mountpoint -q {CGROUPS} || mount -t cgroup2 none {CGROUPS}"));
    let before = finding("isolated");
    assert_eq!(before["verdict"], "FAIL", "{before}");
    let commands: Vec<_> =
        before["commands"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(commands.len(), 5, "{before}");
    let _partition = Partition;
    // The last one moves the shell, which ends.
    sh(&commands.join("\n"));
    let after = finding("isolated");
    assert_eq!((&after["verdict"], &after["actual"]), (&Value::from("OK"), &Value::from("1")), "{after}");
    assert_eq!(finding("partition")["verdict"], "OK");
    assert!(Topology::read(&Tree::live()).unwrap().online().contains(1));
    // A shell elsewhere cannot have the CPU, and is told so; one in the partition spins there by itself.
    let refused = output(&["jitter", "--cpus", "1", "--seconds", "0.1"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let spin = format!("{} jitter --json --seconds 0.1", env!("CARGO_BIN_EXE_ring-tune"));
    let inside =
        Command::new("sh").args(["-c", &format!("echo $$ > {CGROUPS}/ring/cgroup.procs; {spin}")]).output();
    assert_eq!(json(&inside.unwrap())["cpus"][0]["cpu"], 1);

    // Whoever runs in the partition has to run elsewhere without its only CPU, so that it is none any more.
    let mut member = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(format!("{CGROUPS}/ring/cgroup.procs"), member.id().to_string()).unwrap();
    let unplugged = Unplugged::new();
    let gone = finding_for("0", "partition");
    assert_eq!(gone["verdict"], "WARN", "{gone}");
    assert!(gone["actual"].as_str().unwrap().contains("ring: isolated invalid"), "{gone}");
    drop(unplugged);
    member.kill().unwrap();
    member.wait().unwrap();
}

fn a_cpu_that_is_unplugged_is_none() {
    let two = allowed_cpus().unwrap();
    assert!(two.len() >= 2, "{two}");
    let mut watch = ring_tune(&["watch", "--json", "--every", "0.2"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut ticks = BufReader::new(watch.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let mut tick = || serde_json::from_str::<Value>(&ticks.next().unwrap()).unwrap();
    tick();
    {
        let _unplugged = Unplugged::new();
        let topology = Topology::read(&Tree::live()).unwrap();
        assert_eq!(topology.online().to_string(), "0");
        assert_eq!(topology.best_pair(&two, None), None);
        assert!(matches!(pin_to(1), Err(Error::Pin { .. })), "{:?}", pin_to(1));
        for arguments in [
            &["check", "--cpus", "1"][..],
            &["jitter", "--cpus", "1"],
            &["topology"],
            &["run", "--cpus", "1", "--", "true"],
        ] {
            let refused = output(arguments);
            assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {refused:?}");
            assert!(!refused.stderr.is_empty() && refused.stdout.is_empty(), "{refused:?}");
        }
        let alone = json(&output(&["clock", "--json", "--samples", "1000"]));
        assert_eq!(alone["one_way"], Value::Null, "{alone}");
        for _ in 0..3 {
            tick();
        }
    }
    assert_eq!(Topology::read(&Tree::live()).unwrap().online(), &two);
    // What it had counted before it went is nothing that happened since.
    for _ in 0..5 {
        let tick = tick();
        let switches = tick["watched"].as_array().unwrap().iter().filter(|group| group["whose"] == "cpu");
        for group in switches {
            for (name, count) in group["counts"].as_object().unwrap() {
                assert!(count.as_u64().unwrap() < 1_000_000, "{name}: {tick}");
            }
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
}

fn all_that_files_mend_is_mended_and_comes_back() {
    let folder = LaidOut::new();
    let state = folder.path().join("state");
    let fix = |action: &str| {
        json(&output(&["fix", action, "--json", "--cpus", "1", "--state", state.to_str().unwrap()]))
    };
    let plan = json(&output(&["fix", "--print", "--json", "--cpus", "1"]));
    let files = plan["files"].as_array().unwrap();
    assert!(files.len() > 3, "{plan}");
    let texts = || -> BTreeMap<String, Option<String>> {
        let path = |file: &Value| format!("/{}", file["path"].as_str().unwrap());
        files.iter().map(|file| (path(file), fs::read_to_string(path(file)).ok())).collect()
    };
    let before = texts();
    let applied = fix("--apply");
    let left: Vec<_> =
        applied["files"].as_array().unwrap().iter().filter(|file| file["is_done"] != true).collect();
    for file in &left {
        // The kernel places some interrupts, and lets nobody move them.
        assert_eq!(file["row"], "irq-affinity", "{file}");
    }
    let report = json(&output(&["check", "--json", "--cpus", "1"]));
    for file in files.iter().filter(|file| left.iter().all(|left| left["path"] != file["path"])) {
        let found =
            report["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == file["row"]);
        let verdict = found.unwrap()["verdict"].as_str().unwrap();
        assert!(!matches!(verdict, "FAIL" | "WARN") || file["row"] == "irq-affinity", "{found:?}");
    }
    let undone = fix("--undo");
    assert!(undone["files"].as_array().unwrap().iter().all(|file| file["is_done"] == true), "{undone}");
    assert_eq!(texts(), before);
}

/// The counters of a port, and of what passes through it.
fn counters(device: &str) -> BTreeMap<String, u64> {
    let folder = format!("/sys/class/infiniband/{device}/ports/1/hw_counters");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse().ok();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.filter_map(|path| Some((name(&path), number(&path)?))).collect()
}

fn ping_pong(device: &str, peer: Option<&str>) -> Child {
    let mut command = Command::new("ibv_rc_pingpong");
    command.args(["-d", device, "-g", "1", "-n", "500"]).args(peer).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn counters_of_rdma_devices_are_the_drivers() {
    let devices = ["rxea", "rxeb"];
    if devices.iter().any(|device| !Path::new(&format!("/sys/class/infiniband/{device}")).exists()) {
        return skip("there are no RDMA devices rxea and rxeb");
    }
    let arguments = ["watch", "--json", "--every", "0.2", "--device", devices[0], "--device", devices[1]];
    let mut watch = ring_tune(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let mut tick = || serde_json::from_str::<Value>(&lines.next().unwrap()).unwrap();
    // From here on it counts.
    tick();
    let before = devices.map(counters);
    let mut server = ping_pong(devices[0], None);
    // The client tries until the server listens.
    while !ping_pong(devices[1], Some("localhost")).wait().unwrap().success() {}
    assert!(server.wait().unwrap().success());
    let after = devices.map(counters);
    let mut sums: [BTreeMap<String, u64>; 2] = Default::default();
    let expected = |place: usize, name: &str| after[place][name] - before[place][name];
    let enough = |sums: &[BTreeMap<String, u64>; 2]| {
        let is_told =
            |place: usize| sums[place].get("port 1 sent_pkts") >= Some(&expected(place, "sent_pkts"));
        is_told(0) && is_told(1)
    };
    while !enough(&sums) {
        let tick = tick();
        for group in tick["watched"].as_array().unwrap() {
            let place = devices.iter().position(|device| group["name"] == *device).unwrap();
            for (name, count) in group["counts"].as_object().unwrap() {
                *sums[place].entry(name.clone()).or_default() += count.as_u64().unwrap();
            }
        }
    }
    for (place, sums) in sums.iter().enumerate() {
        for name in ["sent_pkts", "rcvd_pkts", "rdma_sends", "rdma_recvs"] {
            assert_eq!(sums.get(&format!("port 1 {name}")), Some(&expected(place, name)), "{name}: {sums:?}");
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    let found = finding("rdma-counters");
    assert_ne!(found["verdict"], "SKIP", "{found}");
}
