//! `ring-tune run`, with the settings of the command read back from /proc.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod laid_out;
#[path = "common/skip.rs"]
mod skip;

use core::time::Duration;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Instant;

use laid_out::LaidOut;
use nix::sys::resource::{Resource, getrlimit};
use ring_tune::{Fifo, LatencyLimit, Topology, Tree, allowed_cpus, memory_policy};
use serde_json::Value;
use skip::skip;

const RING_TUNE: &str = env!("CARGO_BIN_EXE_ring-tune");
/// proc_pid_stat(5): SCHED_OTHER and SCHED_FIFO.
const OTHER: i64 = 0;
const FIFO: i64 = 1;

fn ring_tune(arguments: &str, command: &[&str]) -> Command {
    ring_tune_at(Path::new(RING_TUNE), arguments, command)
}

fn ring_tune_at(program: &Path, arguments: &str, command: &[&str]) -> Command {
    let mut run = Command::new(program);
    run.arg("run").args(arguments.split_whitespace()).arg("--").args(command);
    run
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn first_cpu() -> usize {
    allowed_cpus().unwrap().iter().next().unwrap()
}

/// Says why a part of a test is left out.
fn is_there<T>(what: Result<T, ring_tune::Error>) -> bool {
    if let Err(error) = &what {
        skip(error);
    }
    what.is_ok()
}

/// A `sleep` that goes with the test.
struct Sleeper(Child);

impl Sleeper {
    /// Returns when the command is running.
    fn start(run: &mut Command) -> Self {
        let mut sleeper = Self(run.stderr(Stdio::piped()).spawn().unwrap());
        let end = Instant::now() + Duration::from_secs(120);
        while !sleeper.proc("cmdline").starts_with("sleep\0") {
            assert_eq!(sleeper.0.try_wait().unwrap(), None, "it has ended");
            assert!(Instant::now() < end, "it has not started");
            thread::yield_now();
        }
        sleeper
    }

    fn of(arguments: &str) -> Self {
        Self::start(&mut ring_tune(arguments, &["sleep", "600"]))
    }

    fn proc(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).unwrap()
    }

    fn cpus(&self) -> String {
        let status = self.proc("status");
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().into()
    }

    /// Policy and real-time priority; proc_pid_stat(5), fields 41 and 40.
    fn policy(&self) -> [i64; 2] {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        [41, 40].map(|number: usize| fields[number - 3].parse().unwrap())
    }

    /// The memory policies of its mappings; numa(7).
    fn memory(&self) -> Vec<String> {
        let maps = self.proc("numa_maps");
        let mut policies: Vec<String> =
            maps.lines().map(|line| line.split(' ').nth(1).unwrap().into()).collect();
        policies.sort();
        policies.dedup();
        policies
    }

    fn holds_the_latency(&self) -> bool {
        let files = fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap();
        let targets = files.map(|file| fs::read_link(file.unwrap().path()).unwrap());
        targets.into_iter().any(|target| target == Path::new("/dev/cpu_dma_latency"))
    }

    /// Ends it by a signal, and returns what it or ring-tune has said.
    fn end(mut self, signal: &str) -> Output {
        send(signal, &self.0);
        let status = self.0.wait().unwrap();
        let mut stderr = vec![];
        std::io::Read::read_to_end(&mut self.0.stderr.take().unwrap(), &mut stderr).unwrap();
        Output { status, stdout: vec![], stderr }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(signal: &str, child: &Child) {
    let kill = Command::new("sh").args(["-c", "kill -s $0 $1", signal, &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

#[test]
fn cpus_priority_memory_and_latency_are_as_they_were_asked_for() {
    let cpu = first_cpu();
    let sleeper = Sleeper::of(&format!("--cpus {cpu} --fifo 5 --memory bind --latency-us 3"));
    assert_eq!(sleeper.cpus(), cpu.to_string());
    if is_there(thread::spawn(|| Fifo::begin(5).map(Fifo::keep)).join().unwrap()) {
        assert_eq!(sleeper.policy(), [FIFO, 5]);
        // /proc/PID/sched has the kernel's own scale: 99 less the priority.
        let sched = sleeper.proc("sched");
        let value = |name: &str| {
            let line = sched.lines().find(|line| line.split(':').next().unwrap().trim() == name);
            line.unwrap().rsplit(':').next().unwrap().trim().to_owned()
        };
        assert_eq!((value("policy").as_str(), value("prio").as_str()), ("1", "94"));
    }
    let topology = Topology::read(&Tree::live()).unwrap();
    if let (true, Some(node)) = (is_there(memory_policy()), topology.node(cpu)) {
        assert_eq!(sleeper.memory(), [format!("bind:{node}")]);
    }
    if let Ok(loose) = LatencyLimit::hold(1_000_000) {
        assert!(sleeper.holds_the_latency());
        assert!(loose.effective_us().unwrap() <= 3);
    } else {
        skip("there is no /dev/cpu_dma_latency for this user");
    }
    sleeper.end("TERM");
}

#[test]
fn without_wishes_the_profile_decides() {
    let topology = Topology::read(&Tree::live()).unwrap();
    for (profile, word) in [("spin", "bind"), ("hybrid", "prefer"), ("rdma", "bind"), ("bench", "bind")] {
        let sleeper = Sleeper::of(&format!("--profile {profile}"));
        if topology.isolated().is_empty() {
            let allowed = allowed_cpus().unwrap();
            let pair = topology.best_pair(&allowed, None);
            let pair = pair.map_or(allowed, |pair| pair.into_iter().collect());
            assert_eq!(sleeper.cpus(), pair.to_string());
        } else {
            skip("whether isolated CPUs can be had depends on the cpuset");
        }
        assert_eq!(sleeper.policy(), [OTHER, 0], "nobody asked for more");
        if is_there(memory_policy()) && topology.nodes().len() == 1 {
            assert_eq!(sleeper.memory(), [format!("{word}:{}", topology.nodes()[0].0)]);
        }
        sleeper.end("TERM");
    }
}

/// The command where everybody may execute it, and a folder that goes with it.
fn for_everybody() -> (LaidOut, std::path::PathBuf) {
    let folder = LaidOut::new();
    let program = folder.program(RING_TUNE);
    (folder, program)
}

/// As a user without privilege, nobody if this one has some; false where this one may do it all the same.
fn without_privilege(command: &mut Command) -> bool {
    const NOBODY: u32 = 65_534;
    let this_user = fs::metadata("/proc/self").unwrap().uid();
    if this_user == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let is_without = getrlimit(Resource::RLIMIT_RTPRIO).unwrap().0 == 0;
    if !is_without {
        skip("RLIMIT_RTPRIO lets everybody have what this test wants to be refused");
    }
    is_without
}

#[test]
fn without_privilege_each_thing_that_is_missing_is_a_line_with_what_to_do() {
    let (_folder, program) = for_everybody();
    let cpu = first_cpu();
    let arguments = format!("--cpus {cpu} --fifo 5");
    let mut run = ring_tune_at(&program, &arguments, &["sleep", "600"]);
    if !without_privilege(&mut run) {
        return;
    }
    let sleeper = Sleeper::start(&mut run);
    assert_eq!(sleeper.cpus(), cpu.to_string(), "this needs no privilege");
    assert_eq!(sleeper.policy(), [OTHER, 0]);
    let output = sleeper.end("TERM");
    assert_eq!(output.status.signal(), Some(15));
    let said = text(&output.stderr);
    let lines = |words: &str| said.lines().filter(|line| line.contains(words)).count();
    assert_eq!((lines("RLIMIT_RTPRIO"), lines("/dev/cpu_dma_latency")), (1, 1), "{said}");
    assert!(said.lines().all(|line| line.starts_with("ring-tune: cannot ")), "{said}");
}

#[test]
fn strict_starts_nothing_that_lacks_something() {
    let (folder, program) = for_everybody();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let sign = folder.path().join("sign");
    let command = ["touch", sign.to_str().unwrap()];
    let mut run = ring_tune_at(&program, "--fifo 5 --strict", &command);
    if !without_privilege(&mut run) {
        return;
    }
    let output = run.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!sign.exists());
    assert!(text(&output.stderr).contains("not started"), "{}", text(&output.stderr));

    // The same command without the word leaves its sign.
    let mut run = ring_tune_at(&program, "--fifo 5", &command);
    assert!(without_privilege(&mut run) && run.output().unwrap().status.success());
    assert!(sign.exists());
}

#[test]
fn signals_are_the_commands_own() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("USR1", 10), ("KILL", 9)] {
        let output = Sleeper::of("").end(signal);
        assert_eq!(output.status.signal(), Some(number), "{signal}");
    }
    let script = "trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done";
    let mut run = ring_tune("", &["sh", "-c", script]);
    let mut child = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut ready)
        .unwrap();
    send("USR1", &child);
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn the_command_finds_signals_as_its_starter_left_them() {
    let command = ["grep", "^Sig[BIC]", "/proc/self/status"];
    let direct = Command::new(command[0]).args(&command[1..]).output().unwrap();
    let run = ring_tune("", &command).output().unwrap();
    assert!(run.status.success());
    assert_eq!(text(&run.stdout), text(&direct.stdout));
}

#[test]
fn the_status_is_the_commands_own() {
    for status in [0, 1, 2, 42, 255] {
        let output = ring_tune("", &["sh", "-c", &format!("exit {status}")]).output().unwrap();
        assert_eq!(output.status.code(), Some(status));
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_told_from_one_that_is_not_there() {
    let folder = LaidOut::new();
    folder.write("text", "no program\n");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (command, status) in [
        ("no-such-command-anywhere".into(), 127),
        (path("absent"), 127),
        (path("text"), 126),
        (path(""), 126),
        (String::new(), 127),
    ] {
        // A folder of PATH that this user may not enter would be a reason to say that it may not be executed; exec(3).
        let output = ring_tune("", &[&command]).env("PATH", "/usr/bin:/bin").output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{command:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(&command));
    }
    for mistyped in ["--cpu", "-c"] {
        let output = Command::new(RING_TUNE).args(["run", mistyped, "1", "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no such option"), "{output:?}");
    }
    let hostile = ring_tune("", &["no\x1b[2Jsuch"]).output().unwrap();
    assert!(!hostile.stderr.contains(&0x1b));
}

#[test]
fn a_dry_run_says_what_would_be_and_starts_nothing() {
    let folder = LaidOut::new();
    let sign = folder.path().join("sign");
    let command = ["touch", sign.to_str().unwrap()];
    let cpu = first_cpu();
    let arguments = format!("--dry-run --cpus {cpu} --profile hybrid --latency-us 9");
    let output = ring_tune(&format!("{arguments} --json"), &command).output().unwrap();
    assert!(output.status.success());
    assert!(text(&output.stdout).starts_with("{\n  \"report\": \"ring-tune run\""));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["profile"], "hybrid");
    assert_eq!(report["cpus"], cpu.to_string());
    assert_eq!(report["latency_limit_us"], 9);
    assert_eq!(report["fifo"], Value::Null);
    assert_eq!(report["command"], serde_json::json!(command));
    assert_eq!(report["starts"], false);

    let output = ring_tune(&arguments, &command).output().unwrap();
    assert!(output.status.success());
    let said = text(&output.stdout);
    for words in [format!("CPUs      {cpu}"), "within 9 µs".into(), "policy    as it is".into()] {
        assert!(said.contains(&words), "{said}");
    }
    assert!(!sign.exists());
}

#[test]
fn with_json_the_output_stays_the_commands() {
    let output = ring_tune("--json", &["echo", "-n", "hello"]).output().unwrap();
    assert_eq!(text(&output.stdout), "hello");
    let report: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&report["report"], &report["starts"]), (&"ring-tune run".into(), &true.into()));
}

#[test]
fn wrong_usage_is_an_error_and_starts_nothing() {
    let folder = LaidOut::new();
    let sign = folder.path().join("sign");
    for arguments in [
        "--fifo 0",
        "--fifo 100",
        "--cpus 8191",
        "--cpus x",
        "--node 1023",
        "--near nothing-there",
        "--latency-us x",
    ] {
        let output = ring_tune(arguments, &["touch", sign.to_str().unwrap()]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(ring_tune("", &[]).output().unwrap().status.code(), Some(1));
    assert!(!sign.exists());
}
