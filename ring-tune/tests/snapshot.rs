//! `ring-tune snapshot`: a check over what it saves says what a check over the machine says.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;
#[path = "common/skip.rs"]
mod skip;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use laid_out::LaidOut;
use serde_json::Value;
use skip::skip;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(arguments);
    command
}

fn ring_tune(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
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
    parsed(&ring_tune(&[&["check", "--json"], arguments].concat()))
}

fn parsed(output: &Output) -> Vec<[String; 4]> {
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
    let ids = |rows: &[[String; 4]]| rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&copied), ids(&live));
    assert_eq!(steady(copied), steady(live));
    let seconds: f64 = fs::read_to_string(root.join("earlier/seconds")).unwrap().trim().parse().unwrap();
    assert!(seconds > 0.0);
    assert!(root.join("earlier/proc/stat").is_file() && root.join("proc/stat").is_file());
}

/// What was counted in the meantime, or is measured, differs from one moment to the next.
fn steady(rows: Vec<[String; 4]>) -> Vec<(String, String)> {
    let rows = rows.into_iter().filter(|[_, _, group, _]| !matches!(&**group, "disturbance" | "network"));
    rows.map(|[id, verdict, ..]| (id, verdict)).collect()
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
    folder.link("link.tar", "nowhere");
    let path = |name: &str| folder.path().join(name);
    for name in ["host.tar", "link.tar", ""] {
        let output = ring_tune(&["snapshot", text(&path(name))]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("exists: name another"), "{output:?}");
    }
    assert_eq!(fs::read_to_string(path("host.tar")).unwrap(), "precious");
    assert!(!path("nowhere").exists());
    let output = ring_tune(&["snapshot", "--list", text(&path("new.tar"))]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().lines().any(|line| line == "proc/stat"));
    assert!(fs::metadata(path("new.tar")).unwrap().permissions().mode() & 0o111 == 0);
    let output = ring_tune(&["snapshot", "-"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout.get(257..262), Some(&b"ustar"[..]));
}

#[test]
fn of_several_at_once_one_writes_the_file_and_the_others_leave_it() {
    let folder = LaidOut::new();
    let files = LaidOut::of("=== sys/devices/system/cpu/online\n0\n=== proc/stat\ncpu0 1 2 3\n");
    let archive = folder.path().join("host.tar");
    let start = |_| {
        let mut command = command(&["snapshot", text(&archive), "--root", text(files.path())]);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs: Vec<_> = (0..8).map(start).collect();
    let outputs: Vec<_> = runs.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
    assert_eq!(outputs.iter().filter(|output| output.status.success()).count(), 1, "{outputs:?}");
    let alone = ring_tune(&["snapshot", "-", "--root", text(files.path())]);
    assert_eq!(fs::read(&archive).unwrap(), alone.stdout);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_disk_that_is_full_is_an_error_that_leaves_no_file() {
    let may = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        return skip("there is no unshare(1), or no mount namespace for this user");
    }
    let folder = LaidOut::new();
    let script = "mount -t tmpfs -o size=64k none $2; status=0; $1 snapshot $2/a.tar || status=$?
        ls -A $2; exit $status";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-ec", script, "sh", env!("CARGO_BIN_EXE_ring-tune"), text(folder.path())]);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(output.stdout, b"", "nothing is left");
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");

    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command(&["snapshot", "-"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
}

#[test]
fn a_reader_that_goes_ends_it_in_silence() {
    let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).unwrap();
    drop(reader);
    let output = command(&["snapshot", "-"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]));
}

#[test]
fn the_copy_is_of_the_cpus_that_were_allowed() {
    let folder = LaidOut::new();
    for cpu in ring_tune::allowed_cpus().unwrap().iter() {
        // What this thread may use its children may.
        let cpus = |root: Option<&str>| {
            let mut arguments = vec!["check", "--json"];
            arguments.extend(root.iter().flat_map(|root| ["--root", root]));
            let report: Value = serde_json::from_slice(&ring_tune(&arguments).stdout).unwrap();
            report["cpus"].as_str().unwrap().to_owned()
        };
        let pinned = || {
            ring_tune::pin_to(cpu).unwrap();
            (cpus(None), saved(None))
        };
        let (live, copy) = std::thread::scope(|scope| scope.spawn(pinned).join().unwrap());
        assert_eq!(cpus(Some(text(&copy.path().join("unpacked")))), live);
    }
    // Trees that say nothing of it, or something else, have all of their CPUs.
    for (number, status) in ["", "Cpus_allowed_list:\t7\n", "Cpus_allowed_list:\tx\n"].iter().enumerate() {
        folder.write(&format!("{number}/sys/devices/system/cpu/online"), "0\n");
        folder.write(&format!("{number}/proc/self/status"), status);
        let root = folder.path().join(number.to_string());
        let output = ring_tune(&["check", "--json", "--root", text(&root)]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["cpus"], "0");
    }
}

#[test]
fn what_another_user_was_denied_is_denied_to_all_who_look_at_the_copy() {
    const NOBODY: u32 = 65_534;
    let files = LaidOut::of(
        "=== sys/devices/system/cpu/online\n0-1\n=== proc/sys/vm/stat_interval\n10\n\
         === sys/devices/system/cpu/nohz_full\n1\n=== proc/sys/kernel/timer_migration\n0\n",
    );
    let denied = files.path().join("proc/sys/vm/stat_interval");
    fs::set_permissions(&denied, fs::Permissions::from_mode(0o000)).unwrap();
    let folder = saved(Some(text(files.path())));
    let verdict = |root: &Path| {
        let found = findings(&["--cpus", "1", "--root", text(root)]);
        let row = found.into_iter().find(|row| row[0] == "stat-interval").unwrap();
        (row[1].clone(), row[3].contains("may not be read"))
    };
    assert_eq!(verdict(files.path()), ("UNKNOWN".into(), true));
    assert_eq!(verdict(&folder.path().join("unpacked")), ("UNKNOWN".into(), true));

    // A live machine, saved by nobody where this user is root.
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip("this takes root, to be somebody else");
    }
    let folder = LaidOut::new();
    let program = folder.program(env!("CARGO_BIN_EXE_ring-tune"));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (archive, root) = (folder.path().join("a.tar"), folder.path().join("unpacked"));
    fs::create_dir(&root).unwrap();
    let as_nobody = |arguments: &[&str]| {
        Command::new(&program).args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap()
    };
    let output = as_nobody(&["snapshot", text(&archive)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let tar = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&root).status();
    assert!(tar.unwrap().success());
    let cpu = ring_tune_cpu();
    let live = parsed(&as_nobody(&["check", "--json", "--cpus", &cpu]));
    assert_eq!(steady(findings(&["--cpus", &cpu, "--root", text(&root)])), steady(live));
}

#[test]
fn a_tree_that_is_larger_than_any_machine_is_no_tree() {
    let files = LaidOut::of("=== sys/devices/system/cpu/online\n0\n=== proc/stat\ncpu0 1 2 3\n");
    // One file of 16 MiB through many links.
    let large = vec![b'a'; 16 << 20];
    files.write("large/statistics/bytes", &large);
    for number in 0..64 {
        files.write(&format!("sys/devices/system/cpu/cpufreq/{number}"), "");
        let path = files.path().join(format!("sys/devices/system/cpu/cpufreq/{number}"));
        fs::File::options().write(true).open(path).unwrap().set_len(16 << 20).unwrap();
        files.link(&format!("earlier/sys/class/net/eth{number}"), "../../../../large");
    }
    let folder = LaidOut::new();
    let archive = folder.path().join("a.tar");
    // In KiB.
    let script = "ulimit -v 1572864; exec \"$@\"";
    let within = |arguments: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_ring-tune")]).args(arguments);
        shell.output().unwrap()
    };
    let output = within(&["snapshot", text(&archive), "--root", text(files.path())]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("MiB are to be saved"), "{output:?}");
    assert!(!archive.exists());
    let output = within(&["check", "--json", "--root", text(files.path())]);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
}
