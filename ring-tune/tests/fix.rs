//! `ring-tune fix` over the files of this machine, killed on the way, and over states that somebody else wrote.
//!
//! # Safety
//!
//! Between fork and exec the child calls `ptrace` and nothing else.
#![cfg(feature = "cli")]
#![allow(unsafe_code)]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;
#[path = "common/skip.rs"]
mod skip;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};

use laid_out::LaidOut;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::{Value, json};
use skip::skip;

/// Settings that harm nobody for a moment, each with a value that a row finds bad.
const BAD: &[(&str, &str)] = &[
    ("sys/kernel/mm/ksm/run", "1"),
    ("proc/sys/kernel/numa_balancing", "1"),
    ("proc/sys/vm/swappiness", "61"),
    ("proc/sys/vm/stat_interval", "1"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always"),
];

static MACHINE: Mutex<()> = Mutex::new(());

/// The settings of this machine, for one test at a time; they come back with its end.
struct Settings {
    before: Vec<(PathBuf, String)>,
    _alone: MutexGuard<'static, ()>,
}

impl Settings {
    /// Sets what is there to what a row finds bad; none where that is not permitted.
    fn spoil() -> Option<Self> {
        let alone = MACHINE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut this = Self { before: vec![], _alone: alone };
        for (path, bad) in BAD {
            let path = Path::new("/").join(path);
            let Ok(text) = fs::read_to_string(&path) else { continue };
            if fs::write(&path, bad).is_ok() {
                this.before.push((path, setting(&text)));
            }
        }
        if this.before.is_empty() {
            skip("no setting of the kernel may be written here");
            return None;
        }
        Some(this)
    }

    fn texts(&self) -> Vec<String> {
        self.before.iter().map(|(path, _)| fs::read_to_string(path).unwrap()).collect()
    }

    /// The rows that would change these files, and no others.
    fn rows(&self) -> Vec<String> {
        let is_ours = |path: &Value| {
            let path = Path::new("/").join(path["path"].as_str().unwrap());
            self.before.iter().any(|(known, _)| *known == path)
        };
        let report = json_of(&run(&["check", "--json"]));
        let rows = report["findings"].as_array().unwrap().iter().filter(|row| {
            let changes = row["changes"].as_array().unwrap();
            matches!(row["verdict"].as_str(), Some("FAIL" | "WARN"))
                && !changes.is_empty()
                && changes.iter().all(is_ours)
        });
        let rows: Vec<String> = rows.map(|row| row["id"].as_str().unwrap().into()).collect();
        assert!(!rows.is_empty(), "no row finds fault with {:?}", self.before);
        rows
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, before) in &self.before {
            let _ = fs::write(path, before);
        }
    }
}

fn setting(text: &str) -> String {
    let chosen = text.split('[').nth(1).and_then(|rest| rest.split(']').next());
    chosen.unwrap_or(text).trim().into()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// `fix` with an action, with the state in a folder, for some rows.
fn fix(action: &str, state: &Path, rows: &[String]) -> Command {
    let mut command = command(&["fix", action, "--json", "--state"]);
    command.arg(state);
    for row in rows {
        command.args(["--row", row]);
    }
    command
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into()
}

fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip("this takes root");
    }
    is_root
}

fn verdicts(rows: &[String]) -> Vec<String> {
    let report = json_of(&run(&["check", "--json"]));
    let all = report["findings"].as_array().unwrap().iter();
    let ours = all.filter(|row| rows.iter().any(|id| row["id"] == id.as_str()));
    ours.map(|row| row["verdict"].as_str().unwrap().into()).collect()
}

#[test]
fn what_is_applied_is_ok_until_it_is_undone() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let folder = LaidOut::new();
    let state = folder.path().join("state");
    let rows = settings.rows();
    let before = settings.texts();

    let output = fix("--apply", &state, &rows).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(json_of(&output)["files"].as_array().unwrap().len(), rows.len());
    assert!(verdicts(&rows).iter().all(|verdict| verdict == "OK"), "{:?}", verdicts(&rows));
    let applied = settings.texts();
    assert_ne!(applied, before);

    // A second time, after somebody spoilt one file again: the first values are kept all the same.
    let (path, _) = &settings.before[0];
    fs::write(path, BAD[0].1).unwrap();
    let output = fix("--apply", &state, &rows).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(settings.texts(), applied);

    let output = fix("--undo", &state, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(settings.texts(), before);
    let again = fix("--undo", &state, &[]).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    assert!(json_of(&again)["files"].as_array().unwrap().is_empty());
    assert_eq!(settings.texts(), before);
}

#[test]
fn what_somebody_else_changed_is_left_alone() {
    const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
    let Some(_settings) = is_root().then(Settings::spoil).flatten() else { return };
    let folder = LaidOut::new();
    let saved = saved(&[("proc/sys/vm/swappiness", "60", Some("9")), ("sys/kernel/no-such", "1", Some("0"))]);
    folder.write("state/changed.json", saved);
    let state = folder.path().join("state");
    if fs::write(SWAPPINESS, "7").is_err() {
        return skip(format!("{SWAPPINESS} may not be written here"));
    }
    let output = fix("--undo", &state, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let files = json_of(&output)["files"].clone();
    assert!(files[0]["what"].as_str().unwrap().contains("is gone"), "{files}");
    assert!(files[1]["what"].as_str().unwrap().contains("somebody else"), "{files}");
    assert_eq!(fs::read_to_string(SWAPPINESS).unwrap(), "7\n");

    let output = fix("--undo", &state, &[]).arg("--force").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::read_to_string(SWAPPINESS).unwrap(), "60\n");
    assert!(fs::read_dir(&state).unwrap().next().is_none(), "nothing is left to undo");
}

#[test]
fn a_kill_at_any_system_call_can_be_undone() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let folder = LaidOut::new();
    let rows = settings.rows();
    let before = settings.texts();
    let kill = |action: &str, state: &Path, after: usize| {
        let mut victim = fix(action, state, &rows);
        victim.stdout(Stdio::null());
        let is_through = killed_after(victim, after);
        let output = fix("--undo", state, &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{action}, call {after}: {output:?}");
        assert_eq!(settings.texts(), before, "{action}, call {after}");
        is_through
    };
    // The calls that change something are tried in the order in which they come, until there are no more.
    for action in ["--apply", "--undo"] {
        for after in 0.. {
            let state = folder.path().join(format!("{action}{after}"));
            if action == "--undo" {
                let output = fix("--apply", &state, &rows).output().unwrap();
                assert_eq!(output.status.code(), Some(0), "{output:?}");
            }
            if kill(action, &state, after) {
                assert!(after > 5, "{action} made only {after} calls");
                break;
            }
        }
    }
}

/// Kills a process before the call with that number, of those that change files; returns whether it ended first.
#[allow(
    clippy::zombie_processes,
    reason = "a process that ended was waited for as the traced one that it is"
)]
fn killed_after(mut command: Command, number: usize) -> bool {
    let trace = || ptrace::traceme().map_err(Into::into);
    // SAFETY: as the module's documentation says.
    let command = unsafe { command.pre_exec(trace) };
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    assert!(matches!(waitpid(pid, None).unwrap(), WaitStatus::Stopped(_, Signal::SIGTRAP)));
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_TRACESYSGOOD).unwrap();
    let mut seen = 0;
    let mut is_locked = false;
    loop {
        ptrace::syscall(pid, None).unwrap();
        match waitpid(pid, None).unwrap() {
            WaitStatus::PtraceSyscall(_) => {}
            WaitStatus::Exited(..) => return true,
            other => panic!("the child stopped with {other:?}"),
        }
        let info = ptrace::syscall_info(pid).unwrap();
        if info.op != nix::libc::PTRACE_SYSCALL_INFO_ENTRY {
            continue;
        }
        // SAFETY: the stop is that of an entry, which is what the union holds.
        let call = i64::try_from(unsafe { info.u.entry }.nr).unwrap();
        is_locked |= call == nix::libc::SYS_flock;
        if is_locked && CHANGING.contains(&call) {
            if seen == number {
                break;
            }
            seen += 1;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

const CHANGING: &[i64] = &[
    nix::libc::SYS_write,
    nix::libc::SYS_fsync,
    nix::libc::SYS_openat,
    nix::libc::SYS_openat2,
    nix::libc::SYS_renameat,
    nix::libc::SYS_renameat2,
    nix::libc::SYS_unlinkat,
    nix::libc::SYS_exit_group,
];

/// A state as `--apply` leaves it.
fn saved(changed: &[(&str, &str, Option<&str>)]) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let changed: Vec<Value> = changed
        .iter()
        .map(|(path, before, after)| json!({"row": "a", "path": path, "before": before, "after": after}))
        .collect();
    json!({"version": 1, "boot": boot.trim(), "changed": changed}).to_string()
}

#[test]
fn a_hostile_state_makes_root_write_nowhere() {
    if !is_root() {
        return;
    }
    let folder = LaidOut::new();
    folder.write("precious", "precious");
    let precious = folder.path().join("precious");
    let below = precious.strip_prefix("/").unwrap().to_str().unwrap().to_owned();
    let hostile = [
        below.clone(),
        format!("/{below}"),
        format!("proc/sys/../../{below}"),
        format!("sys/../{below}"),
        format!("proc/self/root/{below}"),
        format!("proc/sys/./../../{below}"),
    ];
    for (number, path) in hostile.iter().enumerate() {
        folder.write(&format!("{number}/changed.json"), saved(&[(path, "hostile", None)]));
        let output =
            fix("--undo", &folder.path().join(number.to_string()), &[]).arg("--force").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{path}: {output:?}");
        assert!(stderr(&output).contains("no setting of the kernel"), "{output:?}");
    }
    // Through a link of sysfs, even one that stays within.
    folder.write("link/changed.json", saved(&[("sys/class/net/lo/mtu", "1", None)]));
    let output = fix("--undo", &folder.path().join("link"), &[]).arg("--force").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");

    for (number, text) in
        ["", "{}", "[]", "\0", "{\"version\": 9, \"boot\": \"\", \"changed\": []}"].iter().enumerate()
    {
        folder.write(&format!("text-{number}/changed.json"), text);
        let output = fix("--undo", &folder.path().join(format!("text-{number}")), &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{text:?}: {output:?}");
    }
}

#[test]
fn a_folder_that_others_may_write_is_not_believed() {
    if !is_root() {
        return;
    }
    let folder = LaidOut::new();
    let state = folder.path().join("state");
    folder.write("state/changed.json", saved(&[("proc/sys/vm/swappiness", "1", None)]));
    let refused = |state: &Path, why: &str| {
        let output = fix("--undo", state, &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains(why), "{output:?}");
    };
    fs::set_permissions(&state, Permissions::from_mode(0o777)).unwrap();
    refused(&state, "must belong to root");
    fs::set_permissions(&state, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(state.join("changed.json"), Permissions::from_mode(0o666)).unwrap();
    refused(&state, "must belong to root");
    folder.link("linked", state.to_str().unwrap());
    refused(&folder.path().join("linked"), "cannot open");
    folder.remove("state/changed.json");
    folder.link("state/changed.json", "/etc/passwd");
    refused(&state, "cannot read");
    folder.remove("state/changed.json");

    // Somebody else is at work.
    let _lock = Flock::lock(File::open(&state).unwrap(), FlockArg::LockExclusive).unwrap();
    refused(&state, "another `ring-tune fix`");
}

#[test]
fn a_restart_has_undone_everything() {
    let Some(_settings) = is_root().then(Settings::spoil).flatten() else { return };
    let folder = LaidOut::new();
    let boot = json!({"version": 1, "boot": "another", "changed":
        [{"row": "a", "path": "proc/sys/vm/swappiness", "before": "1", "after": null}]});
    folder.write("state/changed.json", boot.to_string());
    let before = fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    let output = fix("--undo", &folder.path().join("state"), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(json_of(&output)["files"].as_array().unwrap().is_empty());
    assert_eq!(fs::read_to_string("/proc/sys/vm/swappiness").unwrap(), before);
}

#[test]
fn without_privilege_it_says_what_it_would_need() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let rows = settings.rows();
    let before = settings.texts();
    let folder = LaidOut::new();
    // The command lies where another user may not look.
    let binary = std::env::temp_dir().join(format!("ring-tune-nobody-{}", std::process::id()));
    fs::copy(env!("CARGO_BIN_EXE_ring-tune"), &binary).unwrap();
    let mut command = Command::new(&binary);
    command.args(["fix", "--apply", "--state"]).arg(folder.path().join("state")).uid(65_534).gid(65_534);
    for row in &rows {
        command.args(["--row", row]);
    }
    let output = command.current_dir("/").output().unwrap();
    fs::remove_file(&binary).unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = stderr(&output);
    assert!(text.contains("as root") && rows.iter().all(|row| text.contains(row)), "{text}");
    assert!(text.contains("/sys/") || text.contains("/proc/sys/"), "{text}");
    assert_eq!(settings.texts(), before);
}

#[test]
fn a_copy_is_only_printed_for() {
    let folder = LaidOut::of(
        "=== sys/devices/system/cpu/online\n0-1\n=== sys/kernel/mm/ksm/run\n1\n=== proc/cmdline\nquiet",
    );
    let root = folder.path().to_str().unwrap();
    for action in ["--apply", "--undo"] {
        let output = run(&["fix", action, "--root", root]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains("copy of a machine"), "{output:?}");
    }
    let printed = |format: &str| {
        let output = run(&["fix", "--root", root, "--row", "ksm", "--format", format]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(printed("shell").ends_with("\necho 0 > /sys/kernel/mm/ksm/run\n"));
    assert_eq!(printed("tmpfiles"), "w /sys/kernel/mm/ksm/run - - - - 0\n");
    assert_eq!(printed("sysctl"), "");
    assert_eq!(printed("cmdline"), "quiet\n");
    let all = printed("all");
    let commands = all.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(commands.collect::<Vec<_>>(), ["echo 0 > /sys/kernel/mm/ksm/run"]);
    let unknown = run(&["fix", "--root", root, "--row", "no-such"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("ksm"), "{unknown:?}");
}
