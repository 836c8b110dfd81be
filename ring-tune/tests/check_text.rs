//! What `ring-tune check` prints for people, and how it ends.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use laid_out::LaidOut;
use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");
const CPUS: [&str; 2] = ["--cpus", "2-3"];

fn lay_out(host: &str) -> LaidOut {
    let files = LaidOut::new();
    for entry in fs::read_dir(Path::new(HOSTS).join(host)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tree") {
            files.add(&fs::read_to_string(path).unwrap());
        }
    }
    files
}

fn check(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ring-tune")).arg("check").args(arguments).output().unwrap()
}

fn check_host(files: &LaidOut, arguments: &[&str]) -> Output {
    check(&[&["--root", files.path().to_str().unwrap()], &CPUS[..], arguments].concat())
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn report(files: &LaidOut) -> Value {
    serde_json::from_slice(&check_host(files, &["--json"]).stdout).unwrap()
}

#[test]
fn failures_come_first_and_each_finding_stands_below_its_heading() {
    let files = lay_out("xeon-untuned");
    let all = text(&check_host(&files, &["--all"]));
    let report = report(&files);
    let findings = report["findings"].as_array().unwrap();
    let order = ["FAIL", "WARN", "UNKNOWN", "INFO", "OK", "SKIP"];
    let (mut heading, mut ids) = (0, vec![]);
    for line in all.lines() {
        if let Some((verdict, _)) = line.split_once(" · ") {
            let place = order.iter().position(|known| *known == verdict).unwrap();
            assert!(place >= heading, "{line} stands too late");
            heading = place;
        }
        let id = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        if let Some(id) = id.and_then(|line| line.split(':').next()) {
            let finding = findings.iter().find(|finding| finding["id"] == id).unwrap();
            assert_eq!(finding["verdict"], order[heading], "{line}");
            ids.push(id);
        }
    }
    assert_eq!(ids.len(), findings.len(), "{ids:?}");
    let few = text(&check_host(&files, &[]));
    assert!(!few.contains("\nOK ·") && !few.contains("\nSKIP ·"), "{few}");
    assert!(few.contains("(--all shows every row)"), "{few}");
}

#[test]
fn what_mends_it_can_be_copied_into_a_shell() {
    let files = lay_out("xeon-untuned");
    let shown = text(&check_host(&files, &["--profile", "hybrid"]));
    for command in [
        "now:     echo 10 > /proc/sys/vm/swappiness\n",
        "now:     echo fff3 > /sys/devices/virtual/workqueue/cpumask\n",
        "         echo performance > /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor\n",
        "now:     ethtool -C enp65s0f0np0 adaptive-rx off rx-usecs 0\n",
        "at boot: vm.swappiness = 10 in a file of /etc/sysctl.d",
        "\nring-tune fix writes all of it as a script",
    ] {
        assert!(shown.contains(command), "{command:?} is not in:\n{shown}");
    }
    let shown = text(&check_host(&files, &["--profile", "rdma"]));
    assert!(shown.contains("now:     setpci -s 0000:41:00.0 CAP_EXP+8.w=5000:7000\n"), "{shown}");
    let mut check = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    check.args(["check", "--cpus", "0-7", "--root"]).arg(files.path());
    let shown = text(&check.output().unwrap());
    let many = |line: &str| {
        line.starts_with("               # and ") && line.ends_with("--print --row irq-affinity")
    };
    assert!(shown.lines().any(many), "{shown}");
    let mut fix = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    fix.args(["fix", "--profile", "hybrid"]).args(CPUS).arg("--root").arg(files.path());
    let script = text(&fix.output().unwrap());
    assert!(script.contains("#   now: ethtool -C enp65s0f0np0 adaptive-rx off rx-usecs 0\n"), "{script}");
    // Nothing is to be mended, and nothing is offered.
    let shown = text(&check_host(&lay_out("xeon-tuned"), &[]));
    assert!(!shown.contains("now:") && !shown.contains("ring-tune fix"), "{shown}");
}

#[test]
fn names_from_outside_are_words_of_the_shell() {
    let files = lay_out("xeon-untuned");
    let name = "a; reboot $(b)";
    let folder = "sys/devices/pci0000:00/0000:00:09.0";
    files.remove("sys/class/infiniband");
    files.link(&format!("sys/class/net/{name}/device"), &format!("/{folder}"));
    files.write(&format!("{folder}/vendor"), "0x15b3\n");
    files.write(&format!("sys/class/net/{name}/operstate"), "up\n");
    files.write(&format!("ethtool/{name}/coalesce"), "adaptive-rx: 1\nrx-usecs: 8\n");
    let shown = text(&check_host(&files, &["--profile", "hybrid"]));
    assert!(shown.contains("ethtool -C 'a; reboot $(b)' adaptive-rx off rx-usecs 0\n"), "{shown}");
}

#[test]
fn what_cannot_be_checked_is_an_error_that_says_what_to_do() {
    let empty = LaidOut::new();
    let file = LaidOut::new();
    file.write("file", "");
    let file = file.path().join("file");
    for (arguments, complaint) in [
        (&["--cpus", "8191"][..], "error: --cpus 8191: not all of them are online, only"),
        (&["--cpus", "0-4294967295"], "error: invalid value '0-4294967295' for '--cpus <LIST>'"),
        (&["--cpus", "1-0"], "error: invalid value '1-0' for '--cpus <LIST>'"),
        (&["--cpus", ""], "error: no CPUs to look at: name some, as in --cpus 2,3"),
        (&["--profile", "x"], "[possible values: spin, hybrid, rdma, bench]"),
        (&["--root", "/no/such/folder"], "error: /no/such/folder does not exist"),
        (&["--root", file.to_str().unwrap()], "file is no folder"),
        (&["--root", empty.path().to_str().unwrap()], "error: cannot tell which CPUs this machine has"),
        (&["--root"], "error: a value is required for '--root <DIR>'"),
        (&["more"], "error: unexpected argument 'more' found"),
    ] {
        let output = check(arguments);
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert!(said.contains(complaint), "{arguments:?}: {said}");
    }
}

#[test]
fn nobody_may_check_too() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let copied = LaidOut::new();
    let place = copied.path().join("ring-tune");
    fs::copy(env!("CARGO_BIN_EXE_ring-tune"), &place).unwrap();
    for path in [copied.path(), &place] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = Command::new(place).args(["check", "--json"]).uid(65_534).gid(65_534).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for finding in report["findings"].as_array().unwrap() {
        let actual = finding["actual"].as_str().unwrap();
        if finding["verdict"] == "UNKNOWN" {
            assert!(actual.ends_with("may not be read by this user: try as root"), "{finding}");
        }
    }
}

#[test]
fn a_reader_that_goes_is_no_failure_of_the_check() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(["check", "--all"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().code().is_some_and(|code| code <= 2), "{said}");
    assert_eq!(said, "");
}

#[test]
fn colours_are_for_terminals() {
    let files = lay_out("xeon-untuned");
    assert!(!text(&check_host(&files, &["--all"])).contains('\x1b'));
}
