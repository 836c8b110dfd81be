//! Settings of this machine that tests of `ring-tune fix` change, and that come back.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, OFlag, fcntl};
use nix::unistd::pipe2;
use serde_json::{Value, json};

use crate::skip::skip;

/// Settings that harm nobody for a moment, each with a value that a row finds bad. One watchdog's file changes the
/// other's.
pub const BAD: &[(&str, &str)] = &[
    ("sys/kernel/mm/ksm/run", "1"),
    ("proc/sys/kernel/numa_balancing", "1"),
    ("proc/sys/vm/swappiness", "61"),
    ("proc/sys/vm/stat_interval", "1"),
    ("proc/sys/kernel/soft_watchdog", "1"),
    ("proc/sys/kernel/watchdog", "1"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always"),
];

/// Puts old values back when its input ends: with the test and the commands that it has started, however those end.
const RESTORE: &str =
    "cat > /dev/null; while [ $# -gt 0 ]; do printf '%s\\n' \"$2\" > \"$1\"; shift 2; done 2> /dev/null";

/// The settings of this machine, for one test of all processes at a time.
pub struct Settings {
    pub before: Vec<(PathBuf, String)>,
    guard: Child,
    /// What the guard waits for the end of.
    alive: Option<OwnedFd>,
    _alone: Flock<File>,
}

impl Settings {
    /// Sets what is there to what a row finds bad; none where that is not permitted.
    pub fn spoil() -> Option<Self> {
        let this = Self::keep(BAD.iter().map(|(path, _)| *path));
        for (path, bad) in BAD {
            let _ = fs::write(Path::new("/").join(path), bad);
        }
        if this.before.is_empty() {
            skip("no setting of the kernel may be written here");
            return None;
        }
        Some(this)
    }

    /// Keeps what those say that may be written.
    pub fn keep<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let lock = File::create(std::env::temp_dir().join("ring-tune-settings.lock")).unwrap();
        let alone = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| errno).unwrap();
        let mut before = vec![];
        for path in paths.map(|path| Path::new("/").join(path)) {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let value = setting(&text);
            if fs::write(&path, &value).is_ok() {
                before.push((path, value));
            }
        }
        let mut guard = Command::new("sh");
        let (ends_with_us, alive) = pipe2(OFlag::O_CLOEXEC).unwrap();
        guard.args(["-c", RESTORE, "sh"]).stdin(ends_with_us);
        // Ctrl-C is for the test.
        guard.process_group(0);
        for (path, value) in &before {
            guard.arg(path).arg(value);
        }
        let guard = guard.spawn().unwrap();
        // The commands that come now hold it too.
        fcntl(&alive, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        Self { before, guard, alive: Some(alive), _alone: alone }
    }

    pub fn texts(&self) -> Vec<String> {
        self.before.iter().map(|(path, _)| fs::read_to_string(path).unwrap()).collect()
    }

    /// The rows that would change these files, and no others.
    pub fn rows(&self) -> Vec<String> {
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
        self.alive = None;
        let _ = self.guard.wait();
    }
}

/// What to write for a file to say this.
pub fn setting(text: &str) -> String {
    let chosen = text.split('[').nth(1).and_then(|rest| rest.split(']').next());
    chosen.unwrap_or(text).trim().into()
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    command.args(arguments);
    command
}

pub fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// `fix` with an action, with the state in a folder, for some rows.
pub fn fix(action: &str, state: &Path, rows: &[String]) -> Command {
    let mut command = command(&["fix", action, "--json", "--state"]);
    command.arg(state);
    for row in rows {
        command.args(["--row", row]);
    }
    command
}

pub fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into()
}

pub fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip("this takes root");
    }
    is_root
}

/// A state as `--apply` leaves it.
pub fn saved(changed: &[(&str, &str, Option<&str>)]) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let changed: Vec<Value> = changed
        .iter()
        .map(|(path, before, after)| json!({"row": "a", "path": path, "before": before, "after": after}))
        .collect();
    json!({"version": 1, "boot": boot.trim(), "changed": changed}).to_string()
}
