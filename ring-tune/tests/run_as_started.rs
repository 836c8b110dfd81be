//! `ring-tune run` gives the command all that its starter left, and nothing more than was asked for.
#![cfg(feature = "cli")]

#[path = "common/skip.rs"]
mod skip;

use core::time::Duration;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ring_tune::{LatencyLimit, allowed_cpus};
use skip::skip;

fn run(arguments: &str) -> Command {
    let mut run = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    run.arg("run").args(arguments.split_whitespace()).arg("--");
    run
}

/// What a script of the shell says where it is started directly, and where through `run`.
fn both(arguments: &str, script: &str) -> [String; 2] {
    let mut through = run(arguments);
    through.arg("sh");
    [Command::new("sh"), through].map(|mut shell| {
        let output = shell.args(["-c", script]).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    })
}

#[test]
fn what_nobody_asked_for_is_as_the_starter_left_it() {
    // Numbers and sizes of the process differ from one to the next, and CPUs and nodes are what is asked for.
    let status = "grep -E '^(State|Umask|Uid|Gid|Groups|Kthread|Sig[BIC]|Cap|NoNewPrivs|Seccomp|THP)' /proc/self/status";
    for script in [
        "env | grep -v ^_=",
        "pwd",
        "umask",
        status,
        "cat /proc/self/limits",
        "cat /proc/self/oom_score_adj",
        "cat /proc/self/timerslack_ns",
        "nice",
        "echo $PPID",
    ] {
        let [direct, through] = both("", script);
        assert!(!direct.is_empty(), "{script}");
        assert_eq!(through, direct, "{script}");
    }
}

#[test]
fn arguments_arrive_as_they_are() {
    let odd = [&b"\xff\xfe"[..], b"", b" a  b ", b"*", b"--json", b"-x", b"--", b"$HOME", b"--cpus"];
    let mut through = run("");
    through.args(["printf", "%s|"]).args(odd.map(OsStr::from_bytes));
    let wanted: Vec<u8> = odd.iter().flat_map(|word| [*word, b"|"].concat()).collect();
    assert_eq!(through.output().unwrap().stdout, wanted);
    // Without the dashes too the first word that is no option begins the command.
    let mut plain = Command::new(env!("CARGO_BIN_EXE_ring-tune"));
    let output = plain.args(["run", "echo", "--json", "-x", "--", "--help"]).output().unwrap();
    assert_eq!(output.stdout, b"--json -x -- --help\n");
}

#[test]
fn an_executable_text_is_a_script_of_the_shell() {
    let path = std::env::temp_dir().join(format!("ring-tune-script-{}", std::process::id()));
    // By another process: nothing is executed that a child of another thread still has open for writing.
    let make = r#"printf 'echo "$1"; exit 3\n' > "$0" && chmod +x "$0""#;
    let made = Command::new("sh").args(["-c", make]).arg(&path).status().unwrap();
    let output = run("").arg(&path).arg("word").output();
    fs::remove_file(&path).unwrap();
    let output = output.unwrap();
    assert!(made.success());
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"word\n"[..]));
}

/// A command that runs until its input ends.
struct Running(Child);

impl Running {
    fn start(mut run: Command) -> Self {
        run.args(["sh", "-c", "echo ready; read line || true"]);
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    /// The numbers of its descriptors, and what they are.
    fn descriptors(&self) -> BTreeMap<String, String> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap().map(Result::unwrap);
        let descriptors = entries.map(|entry| {
            let target = fs::read_link(entry.path()).unwrap().to_str().unwrap().to_owned();
            let kind = target.split(":[").next().unwrap_or_default().to_owned();
            (entry.file_name().into_string().unwrap(), kind)
        });
        descriptors.collect()
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn of_descriptors_there_is_one_more_and_it_keeps_the_limit() {
    let mut direct = Command::new("env");
    direct.arg("--");
    let direct = Running::start(direct).descriptors();
    let through = Running::start(run("--cpus 0 --fifo 1 --memory local")).descriptors();
    let more: Vec<&str> = through
        .iter()
        .filter(|(number, _)| !direct.contains_key(*number))
        .map(|(_, target)| target.as_str())
        .collect();
    let device = LatencyLimit::hold(1_000_000).map(|_| "/dev/cpu_dma_latency");
    assert_eq!(more, device.into_iter().collect::<Vec<_>>(), "{direct:?} {through:?}");
    assert!(direct.iter().all(|descriptor| through.iter().any(|known| known == descriptor)));
}

#[test]
fn the_limit_on_the_wake_up_latency_goes_with_the_command() {
    let Ok(loose) = LatencyLimit::hold(1_000_000) else {
        return skip("there is no /dev/cpu_dma_latency for this user");
    };
    let running = Running::start(run("--latency-us 0"));
    assert_eq!(loose.effective_us().unwrap(), 0);
    running.end();
    // Others on this machine may ask for as much, for a while.
    let end = Instant::now() + Duration::from_secs(120);
    while loose.effective_us().unwrap() == 0 {
        assert!(Instant::now() < end, "the limit is still there");
        std::thread::yield_now();
    }
}

/// A cpuset, of cgroups of either version, that goes with the test.
struct Cpuset(std::path::PathBuf);

impl Cpuset {
    /// None where this user or this machine cannot make one.
    fn with(cpu: usize) -> Option<Self> {
        let name = format!("ring-tune-{}", std::process::id());
        let made = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"].iter().find_map(|root| {
            let this = Self(Path::new(root).join(&name));
            fs::create_dir(&this.0).ok()?;
            let memory = fs::read_to_string(Path::new(root).join("cpuset.mems"))
                .or_else(|_| fs::read_to_string(Path::new(root).join("cpuset.mems.effective")));
            fs::write(this.0.join("cpuset.cpus"), cpu.to_string()).ok()?;
            fs::write(this.0.join("cpuset.mems"), memory.ok()?).ok()?;
            Some(this)
        });
        if made.is_none() {
            skip("no cpuset can be made here");
        }
        made
    }

    /// Runs a command within.
    fn run(&self, arguments: &str, command: &[&str]) -> std::process::Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.0);
        let run = run(arguments);
        shell.arg(run.get_program()).args(run.get_args()).args(command).output().unwrap()
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cpus_outside_of_the_cpuset_are_said_and_the_command_keeps_its_own() {
    let mut allowed = allowed_cpus().unwrap().iter().collect::<Vec<_>>().into_iter();
    let (Some(outside), Some(inside)) = (allowed.next(), allowed.next()) else {
        return skip("this takes two CPUs");
    };
    let Some(cpuset) = Cpuset::with(inside) else { return };
    let list = ["grep", "^Cpus_allowed_list", "/proc/self/status"];
    for wanted in [format!("{outside}"), format!("{outside},{inside}")] {
        let output = cpuset.run(&format!("--cpus {wanted}"), &list);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("Cpus_allowed_list:\t{inside}\n"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("cpuset"), "{wanted}: {said}");
        let output = cpuset.run(&format!("--strict --cpus {wanted}"), &list);
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{wanted}");
    }
    // Of itself it takes what it can have.
    let output = cpuset.run("", &list);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("Cpus_allowed_list:\t{inside}\n"));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("cpuset"), "{output:?}");
}

#[test]
fn a_device_whose_node_is_not_known_is_said() {
    let lo = Path::new("/sys/class/net/lo");
    if !lo.exists() {
        return skip("there is no loopback device, which has no node");
    }
    let output = run("--near lo").arg("true").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("cannot tell the NUMA node of lo"),
        "{output:?}"
    );
    let output = run("--near lo --strict --json").arg("true").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("\"what\":\"near\"") && report.contains("\"starts\":false"), "{report}");
}
