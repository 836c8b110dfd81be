//! `ring-tune fix` where something stands in its way: full and read-only disks, another one at work, readers that go,
//! settings that depend on each other.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod laid_out;
#[path = "common/settings.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod settings;
#[path = "common/skip.rs"]
mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use laid_out::LaidOut;
use serde_json::Value;
use settings::{Settings, command, fix, is_root, json_of, run, saved, stderr};
use skip::skip;

/// Runs a script of the shell with mounts of its own; none where that is not permitted.
fn apart(script: &str, arguments: &[&str]) -> Option<Output> {
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-ec", script, "sh", env!("CARGO_BIN_EXE_ring-tune")]).args(arguments);
    let may = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        skip("there is no unshare(1), or no mount namespace for this user");
        return None;
    }
    Some(shell.output().unwrap())
}

fn state_in(folder: &LaidOut) -> (PathBuf, String) {
    let state = folder.path().join("state");
    let text = state.to_str().unwrap().to_owned();
    (state, text)
}

#[test]
fn a_full_disk_stops_it_before_it_writes_the_first_file() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let (folder, before) = (LaidOut::new(), settings.texts());
    let script = "mount -t tmpfs -o size=4k none $2; head -c 4096 /dev/zero > $2/full
        exec $1 fix --apply --state $2/state --row ksm --row stat-interval";
    let Some(output) = apart(script, &[folder.path().to_str().unwrap()]) else { return };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("cannot keep the old values"), "{output:?}");
    assert_eq!(settings.texts(), before);
}

#[test]
fn a_disk_that_is_full_later_hides_nothing_and_can_be_undone() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let (folder, rows, before) = (LaidOut::new(), settings.rows(), settings.texts());
    let asked: Vec<String> = rows.iter().map(|row| format!("--row {row}")).collect();
    // One page: the first state fits, and the second one not beside it.
    let script = "mount -t tmpfs -o size=4k none $2
        status=0; $1 fix --apply --json --state $2/state $3 || status=$?; echo $status >&2
        $1 fix --undo --json --state $2/state > /dev/null";
    let Some(output) = apart(script, &[folder.path().to_str().unwrap(), &asked.join(" ")]) else { return };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(json_of(&output)["files"].as_array().unwrap().len(), rows.len(), "what was done is told");
    let said = stderr(&output);
    assert!(said.contains("can be undone") && said.contains("No space") && said.contains("\n1\n"), "{said}");
    assert_eq!(settings.texts(), before);
}

#[test]
fn settings_that_are_read_only_are_left_and_said() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let (folder, before) = (LaidOut::new(), settings.texts());
    let script = "mount -o bind,ro /proc/sys /proc/sys; mount -o bind,ro /sys/kernel /sys/kernel
        exec $1 fix --apply --state $2 --row stat-interval --row ksm";
    let (state, text) = state_in(&folder);
    let Some(output) = apart(script, &[&text]) else { return };
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("LEFT  stat-interval: /proc/sys/vm/stat_interval may not be written here"),
        "{said}"
    );
    assert!(!said.contains("--undo"), "there is nothing to undo: {said}");
    assert_eq!(settings.texts(), before);
    assert_eq!(fs::read_dir(state).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_mounted_over_a_setting_is_not_written() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let folder = LaidOut::new();
    folder.write("fake", "1\n");
    let fake = folder.path().join("fake");
    let script = "mount -o bind $3 /proc/sys/vm/stat_interval
        exec $1 fix --apply --state $2 --row stat-interval";
    let Some(output) = apart(script, &[&state_in(&folder).1, fake.to_str().unwrap()]) else { return };
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_to_string(fake).unwrap(), "1\n");
    drop(settings);
}

#[test]
fn of_two_at_once_each_does_all_or_nothing() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let (folder, rows, before) = (LaidOut::new(), settings.rows(), settings.texts());
    let (state, _) = state_in(&folder);
    for actions in [["--apply", "--apply"], ["--apply", "--undo"], ["--undo", "--undo"]] {
        for _ in 0..5 {
            let start = |action: &str| {
                let mut command = fix(action, &state, &rows);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let outputs = actions.map(start).map(|child| child.wait_with_output().unwrap());
            for output in &outputs {
                let is_other = stderr(output).contains("another `ring-tune fix` is at work");
                assert!(output.status.success() || is_other, "{actions:?}: {output:?}");
            }
            assert!(outputs.iter().any(|output| output.status.success()), "{actions:?}: {outputs:?}");
            let output = fix("--undo", &state, &[]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert_eq!(settings.texts(), before, "{actions:?}");
        }
    }
}

#[test]
fn a_row_that_does_not_exist_is_an_error_for_each_action() {
    if !is_root() {
        return;
    }
    let folder = LaidOut::new();
    let (state, _) = state_in(&folder);
    let unknown = ["no-such\x1b[2J".to_owned()];
    for action in ["--print", "--apply", "--undo"] {
        let output = fix(action, &state, &unknown).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{action}: {output:?}");
        let said = stderr(&output);
        assert!(said.contains("no such row") && !said.contains('\x1b'), "{action}: {said}");
    }
    folder.write("state/changed.json", saved(&[("sys/kernel/no-such", "1", None)]));
    assert_eq!(fix("--undo", &state, &unknown).output().unwrap().status.code(), Some(1));
    // Rows of another version are known by the state.
    let output = fix("--undo", &state, &["a".into()]).arg("--force").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn only_the_rows_that_are_named_are_undone() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let (folder, rows, before) = (LaidOut::new(), settings.rows(), settings.texts());
    let (state, _) = state_in(&folder);
    assert!(fix("--apply", &state, &rows).output().unwrap().status.success());
    for (number, row) in rows.iter().enumerate() {
        let untouched = settings.texts();
        let output = fix("--undo", &state, core::slice::from_ref(row)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let files = json_of(&output)["files"].clone();
        assert!(files.as_array().unwrap().iter().all(|file| file["row"] == row.as_str()), "{files}");
        let is_last = number + 1 == rows.len();
        assert_eq!(settings.texts() == before, is_last, "{row}");
        assert_ne!(settings.texts(), untouched, "{row}");
    }
}

#[test]
fn files_that_change_each_other_come_back_in_any_order() {
    // The kernel's admin-guide/sysctl/vm.rst: the one that is written sets the other to 0, which cannot be written.
    const RATIO: &str = "proc/sys/vm/dirty_ratio";
    const BYTES: &str = "proc/sys/vm/dirty_bytes";
    const APPLIED: &str = "1073741824";
    if !is_root() {
        return;
    }
    let settings = Settings::keep([RATIO].into_iter());
    let text = |path: &str| fs::read_to_string(Path::new("/").join(path)).unwrap().trim().to_owned();
    if settings.before.is_empty() || text(BYTES) != "0" {
        return skip(format!("{RATIO} may not be written here, or is not what is in use"));
    }
    let ratio = text(RATIO);
    let changed = [(RATIO, ratio.as_str(), Some("0")), (BYTES, "0", Some(APPLIED))];
    let mut reversed = changed;
    reversed.reverse();
    for order in [changed, reversed] {
        fs::write(Path::new("/").join(BYTES), APPLIED).unwrap();
        assert_eq!(text(RATIO), "0");
        let folder = LaidOut::new();
        folder.write("state/changed.json", saved(&order));
        let output = fix("--undo", &state_in(&folder).0, &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!([text(RATIO), text(BYTES)], [ratio.clone(), "0".into()]);
    }
}

/// Applies and undoes the row for huge pages with a reserve that was chosen, and returns what it is then.
fn reserve_after_undo(chosen_since: Option<&str>) -> String {
    let folder = LaidOut::new();
    let (state, _) = state_in(&folder);
    fs::write(Path::new("/").join(PAGES), "always").unwrap();
    fs::write(Path::new("/").join(RESERVE), "32768").unwrap();
    let output = fix("--apply", &state, &["thp".into()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    if let Some(chosen) = chosen_since {
        fs::write(Path::new("/").join(RESERVE), chosen).unwrap();
    }
    let output = fix("--undo", &state, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "nothing is left to undo");
    fs::read_to_string(Path::new("/").join(RESERVE)).unwrap().trim().to_owned()
}

const PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const RESERVE: &str = "proc/sys/vm/min_free_kbytes";

#[test]
fn what_the_kernel_changes_beside_a_file_comes_back_unless_somebody_else_chose_it() {
    if !is_root() {
        return;
    }
    let settings = Settings::keep([PAGES, RESERVE].into_iter());
    if settings.before.len() < 2 {
        skip("there are no huge pages here, or no reserve that may be chosen");
        return;
    }
    // Where memory is plugged into a virtual machine just then the kernel raises the reserve once more.
    for (chosen_since, wanted) in [(None, "32768"), (Some("30000"), "30000")] {
        let mut tries = (0..10).map(|_| reserve_after_undo(chosen_since));
        assert!(tries.any(|reserve| reserve == wanted), "it is never {wanted}");
    }
}

#[test]
fn a_reader_that_goes_and_a_full_output_change_nothing_that_is_done() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let (folder, rows, before) = (LaidOut::new(), settings.rows(), settings.texts());
    let (state, text) = state_in(&folder);
    let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).unwrap();
    drop(reader);
    let output = fix("--apply", &state, &rows).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""), "it ends in silence");
    assert_ne!(settings.texts(), before);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command(&["fix", "--undo", "--state", &text]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("No space"), "{output:?}");
    assert_eq!(settings.texts(), before);
    let again = run(&["fix", "--undo", "--json", "--state", &text]);
    assert_eq!(json_of(&again)["files"], Value::Array(vec![]));
}

#[test]
fn the_way_back_is_named_with_its_folder() {
    let Some(settings) = is_root().then(Settings::spoil).flatten() else { return };
    let (folder, rows, before) = (LaidOut::new(), settings.rows(), settings.texts());
    let state = folder.path().join("a state");
    let mut apply = command(&["fix", "--apply", "--state"]);
    apply.arg(&state);
    for row in &rows {
        apply.args(["--row", row]);
    }
    let said = String::from_utf8(apply.output().unwrap().stdout).unwrap();
    let way = said.split('`').find(|part| part.starts_with("ring-tune ")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &way.replacen("ring-tune", "\"$0\"", 1), env!("CARGO_BIN_EXE_ring-tune")]);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{way}: {output:?}");
    assert_eq!(settings.texts(), before);
}
