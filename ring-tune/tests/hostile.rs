//! `ring-tune check --root` over trees in which a file is not what it was: it ends, without a panic, and whatever it
//! cannot tell has a reason.
//!
//! Which files are spoilt how is the same in each run; twenty times as many with `RING_LONG=1`.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "the library's own tests use more of it")]
mod laid_out;

use core::time::Duration;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Instant;

use laid_out::LaidOut;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");

/// On a machine that others keep busy it takes a second; a minute is a hang.
const HANGS: Duration = Duration::from_secs(60);

/// Runs of `check` over trees in which one file is spoilt, in all threads together.
const RUNS: usize = 480;

/// nobody's, on all systems.
const NOBODY: u32 = 65_534;

fn is_long() -> bool {
    std::env::var_os("RING_LONG").is_some_and(|value| value == "1")
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn hosts() -> Vec<PathBuf> {
    let mut hosts: Vec<_> = fs::read_dir(HOSTS).unwrap().map(|entry| entry.unwrap().path()).collect();
    hosts.sort();
    assert!(!hosts.is_empty(), "no host is written down in {HOSTS}");
    hosts
}

/// A host whose files can be spoilt and mended again.
struct Host {
    files: LaidOut,
    arguments: Vec<String>,
    /// All files and links, below the root, in order.
    paths: Vec<String>,
}

impl Host {
    fn lay_out(host: &Path) -> Self {
        let files = LaidOut::new();
        for entry in fs::read_dir(host).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "tree") {
                files.add(&fs::read_to_string(path).unwrap());
            }
        }
        let arguments = fs::read_to_string(host.join("command")).unwrap();
        let mut paths = vec![];
        list(files.path(), files.path(), &mut paths);
        paths.sort();
        Self { files, arguments: arguments.split_whitespace().map(Into::into).collect(), paths }
    }

    /// What is wrong with how `check` ends; nothing if all is well.
    fn check(&self, copied: &Copied, as_nobody: bool) -> Result<(), String> {
        let out = LaidOut::new();
        let [stdout, stderr] = ["out", "err"].map(|name| out.path().join(name));
        let mut command = Command::new(copied.path());
        command.args(["check", "--json", "--root"]).arg(self.files.path()).args(&self.arguments);
        command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        if as_nobody && is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let status = ended(&mut command)?;
        let complaint = String::from_utf8_lossy(&fs::read(stderr).unwrap()).into_owned();
        let failed = |what: &str| Err(format!("{what}: {status}, {complaint}"));
        // What is left out of the topology is said beside the report.
        let mut said = complaint.lines().filter(|line| !line.ends_with("taken as if it were not there"));
        match (status.code(), said.next()) {
            // A root from which not even the CPUs can be told, or that has others.
            (Some(1), Some(error)) if error.starts_with("error: ") => return Ok(()),
            (Some(0 | 2), None) => {}
            _ => return failed("it neither reports nor complains"),
        }
        let Ok(report) = serde_json::from_slice::<Value>(&fs::read(stdout).unwrap()) else {
            return failed("it prints no JSON");
        };
        for finding in report["findings"].as_array().unwrap() {
            let actual = finding["actual"].as_str().unwrap();
            if finding["verdict"] == "UNKNOWN" && !gives_a_reason(actual) {
                return Err(format!("{} is UNKNOWN without a reason: {actual:?}", finding["id"]));
            }
        }
        Ok(())
    }
}

/// A reason names what it is about, and what is strange about that.
fn gives_a_reason(actual: &str) -> bool {
    actual.split_whitespace().count() >= 3
}

/// A copy of the command that nobody may run.
struct Copied(LaidOut);

impl Copied {
    fn new() -> Self {
        let copied = Self(LaidOut::new());
        copied.0.program(env!("CARGO_BIN_EXE_ring-tune"));
        copied
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("ring-tune")
    }
}

fn list(root: &Path, folder: &Path, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            list(root, &entry.path(), paths);
        } else {
            paths.push(entry.path().strip_prefix(root).unwrap().to_str().unwrap().into());
        }
    }
}

fn ended(command: &mut Command) -> Result<ExitStatus, String> {
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Ok(status);
        }
        if begin.elapsed() > HANGS {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err("it hangs".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// What becomes of a file.
#[derive(Debug, Clone)]
enum Spoil {
    Content(Vec<u8>),
    /// Each number in it becomes this one.
    Numbers(&'static str),
    /// Its beginning, in 256ths.
    Cut(u8),
    /// One byte becomes another.
    Byte(Index, u8),
    Huge,
    Unreadable,
    Folder,
    Pipe,
    LinkToItself,
    Gone,
}

fn each_spoil() -> Vec<Spoil> {
    vec![
        Spoil::Content(b"certainly: not; what 0-was,, meant\n\n= [x] 1 2\n".into()),
        Spoil::Content((0..=255).cycle().take(5_000).collect()),
        Spoil::Content(vec![]),
        Spoil::Numbers("18446744073709551615"),
        Spoil::Numbers("-1"),
        Spoil::Cut(128),
        Spoil::Huge,
        Spoil::Unreadable,
        Spoil::Folder,
        Spoil::Pipe,
        Spoil::LinkToItself,
        Spoil::Gone,
    ]
}

impl Spoil {
    fn apply(&self, path: &Path) {
        // Of a link to nowhere there is nothing to be cut.
        let before = fs::read(path).unwrap_or_default();
        let mode = match self {
            Self::Unreadable => 0,
            _ => 0o644,
        };
        fs::remove_file(path).unwrap();
        match self {
            Self::Content(bytes) => fs::write(path, bytes).unwrap(),
            Self::Numbers(number) => fs::write(path, with_numbers(&before, number)).unwrap(),
            Self::Cut(part) => fs::write(path, &before[..before.len() * usize::from(*part) / 256]).unwrap(),
            Self::Byte(place, byte) => {
                let mut bytes = before;
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = *byte;
                }
                fs::write(path, bytes).unwrap();
            }
            // A file with a hole takes no room on the disk.
            Self::Huge => File::create(path).unwrap().set_len(1 << 36).unwrap(),
            Self::Unreadable => fs::write(path, before).unwrap(),
            Self::Folder => return fs::create_dir(path).unwrap(),
            Self::Pipe => {
                return assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
            }
            Self::LinkToItself => return symlink(path.file_name().unwrap(), path).unwrap(),
            Self::Gone => return,
        }
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
}

fn with_numbers(text: &[u8], number: &str) -> Vec<u8> {
    let mut spoilt = vec![];
    let mut was_digit = false;
    for &byte in text {
        let is_digit = byte.is_ascii_digit();
        match (is_digit, was_digit) {
            (true, false) => spoilt.extend(number.as_bytes()),
            (true, true) => {}
            (false, _) => spoilt.push(byte),
        }
        was_digit = is_digit;
    }
    spoilt
}

/// A file as it is to be again.
enum Mend {
    File(Vec<u8>),
    Link(PathBuf),
}

impl Mend {
    fn of(path: &Path) -> Self {
        match fs::read_link(path) {
            Ok(target) => Self::Link(target),
            Err(_) => Self::File(fs::read(path).unwrap()),
        }
    }

    fn apply(&self, path: &Path) {
        let _ = fs::remove_dir(path);
        let _ = fs::remove_file(path);
        match self {
            Self::File(bytes) => fs::write(path, bytes).unwrap(),
            Self::Link(target) => symlink(target, path).unwrap(),
        }
    }
}

/// Spoils one file after the other, the `turn`th of so many turns of all.
fn spoil_each(copied: &Copied, hosts: &[PathBuf], turn: usize, turns: usize) -> Vec<String> {
    let mut wrong = vec![];
    let mut number = 0;
    for path in hosts {
        let host = Host::lay_out(path);
        for file in &host.paths {
            for spoil in each_spoil() {
                number += 1;
                if number % turns != turn {
                    continue;
                }
                let place = host.files.path().join(file);
                let mend = Mend::of(&place);
                spoil.apply(&place);
                if let Err(error) = host.check(copied, matches!(spoil, Spoil::Unreadable)) {
                    wrong.push(format!("{}, {file}, {spoil:.60?}: {error}", path.display()));
                }
                mend.apply(&place);
            }
        }
    }
    wrong
}

#[test]
fn a_spoilt_file_is_no_more_than_an_unknown_verdict() {
    let copied = Copied::new();
    let hosts = hosts();
    let files: usize = hosts.iter().map(|host| Host::lay_out(host).paths.len()).sum();
    let all = files * each_spoil().len();
    // Turns without a common factor with the kinds of spoiling, so that each kind has its turn.
    let runs = if is_long() { 20 * RUNS } else { RUNS };
    let step = ((all / runs).max(1)..).find(|step| step % 2 != 0 && step % 3 != 0).unwrap();
    let threads = thread::available_parallelism().unwrap().get();
    let wrong: Vec<String> = thread::scope(|scope| {
        let spoil = |thread| spoil_each(&copied, &hosts, (thread * step) % (threads * step), threads * step);
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || spoil(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of some {}:\n{}", wrong.len(), all / step, wrong.join("\n"));
}

fn any_spoil() -> impl Strategy<Value = Spoil> {
    let number = prop::sample::select(vec![
        "0",
        "-1",
        "00",
        "1e9",
        "4294967296",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999999",
        "18446744073709551616",
        "0-8191",
        "0-4294967295",
        "0-7:2/4",
        "1-",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Spoil::Content),
        "[0-9a-f ,.:;/()=\\[\\]\r\n\t\0-]{0,120}".prop_map(|text| Spoil::Content(text.into_bytes())),
        number.prop_map(Spoil::Numbers),
        any::<u8>().prop_map(Spoil::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(place, byte)| Spoil::Byte(place, byte)),
        Just(Spoil::Gone),
    ]
}

#[test]
fn whatever_files_hold_check_ends_with_a_report() {
    let copied = Copied::new();
    let hosts: Vec<Host> = hosts().iter().map(|host| Host::lay_out(host)).collect();
    let spoilt = prop::collection::vec((any::<Index>(), any_spoil()), 1..12);
    let cases = if is_long() { 2_400 } else { 120 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&(any::<Index>(), spoilt), |(host, spoilt)| {
        let host = host.get(&hosts);
        let mut mends = vec![];
        for (file, spoil) in spoilt {
            let place = host.files.path().join(file.get(&host.paths));
            // What an earlier one took away is gone.
            if fs::symlink_metadata(&place).is_ok() {
                mends.push((Mend::of(&place), place.clone()));
                spoil.apply(&place);
            }
        }
        let result = host.check(&copied, false);
        for (mend, place) in mends.iter().rev() {
            mend.apply(place);
        }
        result.map_err(TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
