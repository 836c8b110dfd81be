//! `ring-tune snapshot`: a check over what it saves says what a check over the machine says.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use laid_out::LaidOut;
use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");

fn ring_tune(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ring-tune")).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Saves this machine, or the tree in a folder, and unpacks it with the program that people use.
fn saved(root: Option<&str>) -> LaidOut {
    let folder = LaidOut::new();
    let archive = folder.path().join("host.tar");
    let mut arguments = vec!["snapshot", text(&archive)];
    arguments.extend(root.iter().flat_map(|root| ["--root", root]));
    let output = ring_tune(&arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let unpacked = folder.path().join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let tar = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&unpacked).output().unwrap();
    assert!(tar.status.success(), "{tar:?}");
    folder
}

/// Of each row its name, verdict, group, and what it found.
fn findings(arguments: &[&str]) -> Vec<[String; 4]> {
    let output = ring_tune(&[&["check", "--json"], arguments].concat());
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let field = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let rows = report["findings"].as_array().unwrap().iter();
    rows.map(|row| ["id", "verdict", "group", "actual"].map(|name| field(row, name))).collect()
}

#[test]
fn the_copy_of_this_machine_gets_its_verdicts() {
    let cpu = ring_tune_cpu();
    let folder = saved(None);
    let live = findings(&["--cpus", &cpu]);
    let root = folder.path().join("unpacked");
    let copied = findings(&["--cpus", &cpu, "--root", text(&root)]);
    // What was counted in the meantime, or is measured, differs from one moment to the next.
    let steady = |rows: Vec<[String; 4]>| -> Vec<_> {
        let rows = rows.into_iter().filter(|[_, _, group, _]| !matches!(&**group, "disturbance" | "network"));
        rows.map(|[id, verdict, ..]| (id, verdict)).collect()
    };
    let ids = |rows: &[[String; 4]]| rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&copied), ids(&live));
    assert_eq!(steady(copied), steady(live));
    let seconds: f64 = fs::read_to_string(root.join("earlier/seconds")).unwrap().trim().parse().unwrap();
    assert!(seconds > 0.0);
    assert!(root.join("earlier/proc/stat").is_file() && root.join("proc/stat").is_file());
}

fn ring_tune_cpu() -> String {
    ring_tune::allowed_cpus().unwrap().iter().next().unwrap().to_string()
}

#[test]
fn the_copy_of_a_copy_gets_the_same_verdicts() {
    let hosts = fs::read_dir(HOSTS).into_iter().flatten().map(|entry| entry.unwrap().path());
    for host in hosts {
        let files = LaidOut::new();
        for part in fs::read_dir(&host).unwrap().map(|entry| entry.unwrap().path()) {
            if part.extension().is_some_and(|extension| extension == "tree") {
                files.add(&fs::read_to_string(part).unwrap());
            }
        }
        let command = fs::read_to_string(host.join("command")).unwrap();
        let command: Vec<&str> = command.split_whitespace().collect();
        let folder = saved(Some(text(files.path())));
        let verdicts = |root: &Path| findings(&[&command[..], &["--root", text(root)]].concat());
        assert_eq!(verdicts(&folder.path().join("unpacked")), verdicts(files.path()), "{host:?}");
    }
}

#[test]
fn links_stay_links_and_lead_nowhere_else() {
    let files = LaidOut::of(
        "=== sys/devices/system/cpu/online\n0\n=== sys/devices/pci/eth0/operstate\nup\n\
         === sys/devices/pci/eth0/address\n00:11:22:33:44:55\n\
         === sys/class/net/eth0 -> ../../devices/pci/eth0\n\
         === sys/class/net/out -> ../../../../../../../../etc\n\
         === proc/swaps -> /etc/passwd\n=== proc/cpuinfo -> cpuinfo\n",
    );
    let folder = saved(Some(text(files.path())));
    let root = folder.path().join("unpacked");
    assert_eq!(text(&fs::read_link(root.join("sys/class/net/eth0")).unwrap()), "../../devices/pci/eth0");
    assert_eq!(fs::read_to_string(root.join("sys/class/net/eth0/operstate")).unwrap(), "up\n");
    assert!(!root.join("sys/devices/pci/eth0/address").exists());
    assert!(!root.join("etc").exists());
}

#[test]
fn no_file_is_replaced() {
    let folder = LaidOut::new();
    folder.write("host.tar", "precious");
    folder.write("new.tar.ring-tune-next", "left by a run that was killed");
    let path = |name: &str| folder.path().join(name);
    let output = ring_tune(&["snapshot", text(&path("host.tar"))]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(fs::read_to_string(path("host.tar")).unwrap(), "precious");
    let output = ring_tune(&["snapshot", "--list", text(&path("new.tar"))]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().lines().any(|line| line == "proc/stat"));
    assert!(fs::metadata(path("new.tar")).unwrap().permissions().mode() & 0o111 == 0);
    assert!(!path("new.tar.ring-tune-next").exists());
    let output = ring_tune(&["snapshot", "-"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout.get(257..262), Some(&b"ustar"[..]));
}
