//! `ring-tune fix` over the files of this machine, and over states that somebody else wrote.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;
#[path = "common/settings.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod settings;
#[path = "common/skip.rs"]
mod skip;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use laid_out::LaidOut;
use nix::fcntl::{Flock, FlockArg};
use serde_json::json;
use settings::{BAD, Settings, fix, is_root, json_of, run, saved, stderr};
use skip::skip;

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
    let mut command = Command::new(folder.program(env!("CARGO_BIN_EXE_ring-tune")));
    command.args(["fix", "--apply", "--state"]).arg(folder.path().join("state")).uid(65_534).gid(65_534);
    for row in &rows {
        command.args(["--row", row]);
    }
    let output = command.current_dir("/").output().unwrap();
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
    // As a snapshot has it: a machine that gets that does not start.
    folder.write("proc/cmdline", "redacted quiet");
    assert_eq!(printed("cmdline"), "");
    assert!(!printed("all").contains("redacted"));
    for (format, words) in
        [("cmdline", "not told whole"), ("udev", "nothing that is to be mended goes there")]
    {
        let output = run(&["fix", "--root", root, "--row", "ksm", "--format", format]);
        assert!(stderr(&output).contains(words), "{output:?}");
    }
    let all = printed("all");
    let commands = all.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(commands.collect::<Vec<_>>(), ["echo 0 > /sys/kernel/mm/ksm/run"]);
    let unknown = run(&["fix", "--root", root, "--row", "no-such"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("ksm"), "{unknown:?}");
}
