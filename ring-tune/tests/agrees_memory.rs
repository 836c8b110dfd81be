//! The rows of `ring-tune check` about memory and the kernel, against what the shell says of this machine.
#![cfg(feature = "cli")]

#[path = "common/laid_out.rs"]
#[allow(unreachable_pub, dead_code, reason = "other tests use more of it")]
mod laid_out;
#[path = "common/skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use laid_out::LaidOut;
use serde_json::Value;
use skip::skip;

/// What a shell prints; nothing where it fails, as for a file that does not exist.
fn shell(script: &str) -> Option<String> {
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

fn cat(path: &str) -> Option<String> {
    shell(&format!("cat {path} 2>/dev/null"))
}

fn number(path: &str) -> Option<i64> {
    Some(cat(path)?.parse().unwrap())
}

/// The rows of both groups, their verdicts and actual values, with all CPUs as those that are to be quick.
fn rows(mut command: Command) -> BTreeMap<String, (String, String)> {
    let cpus = cat("/sys/devices/system/cpu/online").unwrap();
    let output = command.args(["check", "--json", "--profile", "spin", "--cpus", &cpus]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = report["findings"].as_array().unwrap().iter();
    let rows = rows.filter(|row| ["memory", "kernel"].contains(&row["group"].as_str().unwrap()));
    rows.map(|row| (text(row, "id"), (text(row, "verdict"), text(row, "actual")))).collect()
}

/// A verdict, and the actual value where a test says it too.
type Expected = (String, Option<String>);

fn exactly(verdict: &str, actual: impl Into<String>) -> Expected {
    (verdict.into(), Some(actual.into()))
}

fn verdict(verdict: &str) -> Expected {
    (verdict.into(), None)
}

fn absent(path: &str) -> Expected {
    exactly("SKIP", format!("{path} does not exist"))
}

/// A file that is to hold 0.
fn zero(path: &str, otherwise: &str) -> Expected {
    match number(&format!("/{path}")) {
        None => absent(path),
        Some(0) => exactly("OK", "0"),
        Some(value) => exactly(otherwise, value.to_string()),
    }
}

/// Asserts that a row says what is expected. Other programs may change the files at any time: only an expectation that
/// is the same before and after counts.
fn agrees(id: &str, expected: impl Fn() -> Expected) {
    for _ in 0..100 {
        let before = expected();
        let rows = rows(Command::new(env!("CARGO_BIN_EXE_ring-tune")));
        if expected() == before {
            let (verdict, actual) = rows.get(id).unwrap_or_else(|| panic!("no row {id}"));
            assert_eq!(*verdict, before.0, "{id}: {actual}");
            return assert_eq!(*actual, before.1.unwrap_or_else(|| actual.clone()), "{id}");
        }
    }
    panic!("the files of {id} change all the time");
}

#[test]
fn balancing_and_reclaim_of_nodes() {
    agrees("numa-balancing", || zero("proc/sys/kernel/numa_balancing", "FAIL"));
    agrees("zone-reclaim", || zero("proc/sys/vm/zone_reclaim_mode", "FAIL"));
}

#[test]
fn merging_of_pages() {
    agrees("ksm", || match number("/sys/kernel/mm/ksm/run") {
        None => absent("sys/kernel/mm/ksm/run"),
        Some(run) => exactly(if run == 1 { "FAIL" } else { "OK" }, run.to_string()),
    });
}

#[test]
fn swap() {
    agrees("swap", || match shell("test -e /proc/swaps && tail -n +2 /proc/swaps | wc -l").as_deref() {
        None => absent("proc/swaps"),
        Some("0") => exactly("OK", "no swap space"),
        Some(_) => {
            let swappiness = number("/proc/sys/vm/swappiness").unwrap();
            exactly(if swappiness > 10 { "FAIL" } else { "OK" }, format!("swappiness {swappiness}"))
        }
    });
}

/// The modes of pages that the kernel makes by itself: of each size, or of all where there is one switch.
fn modes(file: &str) -> Option<String> {
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let chosen =
        |paths: &str| shell(&format!(r"grep -ho '\[.*\]' {paths} 2>/dev/null | tr -d '[]'")).unwrap();
    let top = chosen(&format!("{folder}/{file}"));
    if top.is_empty() {
        return None;
    }
    let own = chosen(&format!("{folder}/hugepages-*/{file}"));
    let own = own.lines().map(|mode| if mode == "inherit" { top.clone() } else { mode.to_owned() });
    let all: Vec<String> = own.collect();
    Some(if all.is_empty() { top } else { all.join(" ") })
}

#[test]
fn transparent_huge_pages() {
    agrees("thp", || match modes("enabled") {
        None => absent("sys/kernel/mm/transparent_hugepage/enabled"),
        Some(modes) if modes.contains("always") => verdict("FAIL"),
        Some(modes) if modes.contains("madvise") => verdict("WARN"),
        Some(_) => exactly("OK", "never"),
    });
}

#[test]
fn transparent_huge_pages_of_shared_memory() {
    let is_huge = |text: &str| ["always", "within_size", "force"].iter().any(|mode| text.contains(mode));
    agrees("shmem-thp", || {
        let mount = shell("grep ' /dev/shm ' /proc/mounts | tail -n 1").unwrap();
        match modes("shmem_enabled") {
            None => absent("sys/kernel/mm/transparent_hugepage/shmem_enabled"),
            Some(modes) => verdict(if is_huge(&modes) || is_huge(&mount) { "WARN" } else { "OK" }),
        }
    });
}

#[test]
fn pools_of_huge_pages() {
    let reserved =
        "cat /sys/kernel/mm/hugepages/hugepages-*/nr_hugepages | awk '{ sum += $1 } END { print sum + 0 }'";
    // All CPUs are to be quick, so that each node with CPUs needs pages of its own.
    let lacking = "for node in /sys/devices/system/node/node*; do test -z \"$(cat $node/cpulist)\" && continue; \
                   cat $node/hugepages/*/free_hugepages | grep -qvx 0 || echo $node; done";
    agrees("huge-page-pool", || match Path::new("/sys/kernel/mm/hugepages").exists() {
        false => absent("sys/kernel/mm/hugepages"),
        true if shell(reserved).unwrap() == "0" => exactly("INFO", "none reserved"),
        true => verdict(if shell(lacking).unwrap().is_empty() { "OK" } else { "WARN" }),
    });
}

#[test]
fn memory_that_may_be_locked() {
    agrees("memlock", || {
        // In KiB, or without a limit.
        let Ok(kib) = shell("ulimit -l").unwrap().parse::<u64>() else { return exactly("OK", "unlimited") };
        let size = if kib < 1_024 { format!("{kib} KiB") } else { format!("{} MiB", kib / 1_024) };
        // CAP_IPC_LOCK, 14, is the third bit of the fourth digit from the right.
        match shell("grep -Eq '^CapEff:.*[4-7c-f]...$' /proc/self/status").is_some() {
            true => exactly("OK", format!("{size}, which does not bind CAP_IPC_LOCK")),
            false => exactly(if kib < 65_536 { "WARN" } else { "OK" }, size),
        }
    });
}

/// The version of the running kernel.
fn kernel() -> (u32, u32) {
    let release = shell("uname -r").unwrap();
    let mut numbers = release.split(['.', '-', '+']).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Whether all CPUs do the kernel's work as well, none being isolated or tickless.
fn none_is_isolated() -> bool {
    let list = |script: &str| shell(script).filter(|text| text != "(null)").unwrap_or_default();
    let scripts = [
        "cat /sys/devices/system/cpu/isolated",
        "cat /sys/devices/system/cpu/nohz_full",
        "find /sys/fs/cgroup -maxdepth 2 -name cpuset.cpus.isolated -exec cat {} +",
    ];
    scripts.iter().all(|script| list(script).is_empty())
}

#[test]
fn work_that_comes_periodically() {
    if !none_is_isolated() {
        return skip("some CPUs are isolated, and a shell does not tell what that means for all of them");
    }
    agrees("stat-interval", || match number("/proc/sys/vm/stat_interval") {
        None => absent("proc/sys/vm/stat_interval"),
        Some(seconds) => exactly(if seconds < 10 { "WARN" } else { "OK" }, format!("{seconds} s")),
    });
    agrees("timer-migration", || {
        let version: u32 = shell("uname -r | awk -F. '{ print $1 * 1000 + $2 }'").unwrap().parse().unwrap();
        match number("/proc/sys/kernel/timer_migration") {
            // Nothing is isolated here, and 0 does not hold for all timers any more.
            Some(value) if version >= 6009 => exactly("WARN", value.to_string()),
            _ => zero("proc/sys/kernel/timer_migration", "WARN"),
        }
    });
    agrees("skew-tick", || {
        let cpus: usize = shell("getconf _NPROCESSORS_ONLN").unwrap().parse().unwrap();
        match shell("grep -qw skew_tick=1 /proc/cmdline").is_some() {
            true => exactly("OK", "skew_tick=1"),
            false if cpus <= 16 => verdict("SKIP"),
            false => exactly("WARN", format!("{cpus} CPUs tick at once")),
        }
    });
}

#[test]
fn watchdogs() {
    agrees("watchdog", || match number("/proc/sys/kernel/watchdog") {
        None => absent("proc/sys/kernel/watchdog"),
        Some(0) => exactly("OK", "off"),
        Some(_) if cat("/proc/sys/kernel/watchdog_cpumask").is_some_and(|mask| mask.is_empty()) => {
            verdict("OK")
        }
        // All CPUs are to be quick, so that any watchdog disturbs one.
        Some(_) => verdict("WARN"),
    });
}

#[test]
fn polling_for_errors() {
    let file = |name: &str| cat(&format!("/sys/devices/system/machinecheck/machinecheck0/{name}"));
    agrees("mce-poll", || match (file("ignore_ce"), file("check_interval")) {
        (None, _) => absent("sys/devices/system/machinecheck"),
        (Some(ignores), _) if ignores == "1" => verdict("OK"),
        (_, Some(interval)) if interval == "0" => verdict("OK"),
        (_, interval) => exactly("WARN", format!("every {} s", interval.unwrap())),
    });
}

#[test]
fn throttling_of_real_time_threads() {
    let has_groups = shell("ls /sys/fs/cgroup/*/cpu.rt_runtime_us >/dev/null 2>&1").is_some();
    agrees("rt-throttling", || {
        let runtime = number("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
        let period = number("/proc/sys/kernel/sched_rt_period_us").unwrap();
        if kernel() >= (6, 12) && !has_groups {
            let servers = cat("/sys/kernel/debug/sched/fair_server/cpu*/runtime");
            let is_off = servers.is_some_and(|runtimes| runtimes.lines().all(|runtime| runtime == "0"));
            verdict(if is_off { "OK" } else { "INFO" })
        } else if runtime < 0 || runtime >= period {
            exactly("OK", "no limit")
        } else {
            exactly("WARN", format!("{runtime} of {period} µs"))
        }
    });
}

#[test]
fn guards_against_leaks() {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let list = |option: &str, pattern: &str| {
        let script =
            format!("cd {folder} && grep -{option}E '{pattern}' * | sort | paste -sd, | sed 's/,/, /g'");
        shell(&script).unwrap()
    };
    agrees("mitigations", || {
        if !Path::new(folder).exists() {
            return absent("sys/devices/system/cpu/vulnerabilities");
        }
        let active = list("l", "^(KVM: )?Mitigation");
        let vulnerable = list("l", "^(KVM: )?(Processor v|V)ulnerable");
        let unknown = list("L", "^(KVM: )?(Mitigation|(Processor v|V)ulnerable|Not affected)");
        let kinds = [("active", active), ("vulnerable", vulnerable), ("unknown", unknown)];
        let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> = kinds.map(|(kind, names)| format!("{kind}: {names}")).collect();
        exactly("INFO", if parts.is_empty() { "none needed".into() } else { parts.join("; ") })
    });
}

#[test]
fn auditing() {
    let is_off = shell("grep -qwE 'audit=(0|off)' /proc/cmdline").is_some();
    agrees("audit", || match Path::new("/proc/self/loginuid").exists() {
        false => absent("proc/self/loginuid"),
        true => exactly("INFO", if is_off { "off (audit=0)" } else { "possible" }),
    });
}

/// What one user sees another sees too: none of these files needs root.
#[test]
fn another_user_gets_the_same_verdicts() {
    const NOBODY: u32 = 65_534;
    if shell("id -u").unwrap() != "0" {
        return skip("only root may become another user");
    }
    let folder = LaidOut::new();
    let mut command = Command::new(folder.program(env!("CARGO_BIN_EXE_ring-tune")));
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    let theirs = rows(command);
    let ours = rows(Command::new(env!("CARGO_BIN_EXE_ring-tune")));
    assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>());
    for (id, (verdict, actual)) in &theirs {
        assert_ne!(verdict, "UNKNOWN", "{id}: {actual}");
        let is_skipped = ours[id].0 == "SKIP";
        assert_eq!(verdict == "SKIP", is_skipped, "{id}: {actual}");
    }
}
