//! The rows of `ring-tune check` about memory and the kernel, against what the shell says of this machine.
#![cfg(feature = "cli")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Verdict and actual of a row.
type Found = (String, String);

fn found(verdict: &str, actual: impl Into<String>) -> Found {
    (verdict.into(), actual.into())
}

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

fn absent(path: &str) -> Found {
    found("SKIP", format!("{path} does not exist"))
}

/// The rows of both groups, with all CPUs as those that are to be quick: none is left for anything else.
fn rows(mut command: Command) -> BTreeMap<String, Found> {
    let cpus = cat("/sys/devices/system/cpu/online").unwrap();
    let output = command.args(["check", "--json", "--profile", "spin", "--cpus", &cpus]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = report["findings"].as_array().unwrap().iter();
    let rows = rows.filter(|row| ["memory", "kernel"].contains(&row["group"].as_str().unwrap()));
    rows.map(|row| (text(row, "id"), (text(row, "verdict"), text(row, "actual")))).collect()
}

fn row(id: &str) -> Found {
    let rows = rows(Command::new(env!("CARGO_BIN_EXE_ring-tune")));
    rows.get(id).unwrap_or_else(|| panic!("no row {id}")).clone()
}

/// A file that is to hold 0.
fn zero(path: &str, otherwise: &str) -> Found {
    match number(&format!("/{path}")) {
        None => absent(path),
        Some(0) => found("OK", "0"),
        Some(value) => found(otherwise, value.to_string()),
    }
}

#[test]
fn balancing_and_reclaim_of_nodes() {
    assert_eq!(row("numa-balancing"), zero("proc/sys/kernel/numa_balancing", "FAIL"));
    assert_eq!(row("zone-reclaim"), zero("proc/sys/vm/zone_reclaim_mode", "FAIL"));
}

#[test]
fn merging_of_pages() {
    let expected = match number("/sys/kernel/mm/ksm/run") {
        None => absent("sys/kernel/mm/ksm/run"),
        Some(run) => found(if run == 1 { "FAIL" } else { "OK" }, run.to_string()),
    };
    assert_eq!(row("ksm"), expected);
}

#[test]
fn swap() {
    let swappiness = number("/proc/sys/vm/swappiness").unwrap_or_default();
    let expected = match shell("test -e /proc/swaps && tail -n +2 /proc/swaps | wc -l").as_deref() {
        None => absent("proc/swaps"),
        Some("0") => found("OK", "no swap space"),
        Some(_) => found(if swappiness > 10 { "FAIL" } else { "OK" }, format!("swappiness {swappiness}")),
    };
    assert_eq!(row("swap"), expected);
}

/// The modes of pages that the kernel makes by itself: of each size, or of all where there is one switch.
fn modes(file: &str) -> Option<String> {
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let chosen =
        |paths: &str| shell(&format!("grep -ho '\\[.*\\]' {paths} 2>/dev/null | tr -d '[]'")).unwrap();
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
    let (verdict, actual) = row("thp");
    let Some(modes) = modes("enabled") else {
        return assert_eq!((verdict.as_str(), actual.contains("does not exist")), ("SKIP", true));
    };
    let expected =
        [("always", "FAIL"), ("madvise", "WARN")].into_iter().find(|(mode, _)| modes.contains(mode));
    let (mode, expected) = expected.unwrap_or(("never", "OK"));
    assert_eq!((verdict.as_str(), actual.contains(mode)), (expected, true), "{actual}: {modes}");
}

#[test]
fn transparent_huge_pages_of_shared_memory() {
    let (verdict, actual) = row("shmem-thp");
    let Some(modes) = modes("shmem_enabled") else {
        return assert_eq!((verdict.as_str(), actual.contains("does not exist")), ("SKIP", true));
    };
    let mount = shell("findmnt -rno OPTIONS /dev/shm || grep ' /dev/shm ' /proc/mounts").unwrap_or_default();
    let is_huge = |text: &str| ["always", "within_size", "force"].iter().any(|mode| text.contains(mode));
    let expected = if is_huge(&modes) || is_huge(&mount) { "WARN" } else { "OK" };
    assert_eq!(verdict, expected, "{actual}: {modes}, {mount}");
}

#[test]
fn pools_of_huge_pages() {
    let (verdict, actual) = row("huge-page-pool");
    let sum = |name: &str| {
        let files = "/sys/devices/system/node/node*/hugepages/hugepages-*";
        shell(&format!("cat {files}/{name} 2>/dev/null | awk '{{ sum += $1 }} END {{ print sum + 0 }}'"))
            .unwrap()
    };
    let expected: &[&str] =
        match (Path::new("/sys/kernel/mm/hugepages").exists(), sum("nr_hugepages").as_str()) {
            (false, _) => &["SKIP"],
            (true, "0") => &["INFO"],
            (true, _) if sum("free_hugepages") == "0" => &["WARN"],
            // Each node of a CPU needs pages of its own.
            (true, _) => &["OK", "WARN"],
        };
    assert!(expected.contains(&verdict.as_str()), "{verdict} {actual}");
}

#[test]
fn memory_that_may_be_locked() {
    let (verdict, actual) = row("memlock");
    // In KiB, or without a limit.
    let expected = match shell("ulimit -l").unwrap().parse::<u64>() {
        Err(_) => found("OK", "unlimited"),
        Ok(kib) => {
            let size = if kib < 1_024 { format!("{kib} KiB") } else { format!("{} MiB", kib / 1_024) };
            match shell("awk '/^CapEff/ { print $2 }' /proc/self/status").map(|mask| bit(&mask, 14)).unwrap()
            {
                true => found("OK", format!("{size}, which does not bind CAP_IPC_LOCK")),
                false => found(if kib < 65_536 { "WARN" } else { "OK" }, size),
            }
        }
    };
    assert_eq!((verdict, actual), expected);
}

fn bit(mask: &str, bit: u32) -> bool {
    u64::from_str_radix(mask, 16).unwrap() >> bit & 1 == 1
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
        eprintln!(
            "skipped: some CPUs are isolated here, and a shell does not tell what that means for all of them"
        );
        return;
    }
    let interval = match number("/proc/sys/vm/stat_interval") {
        None => absent("proc/sys/vm/stat_interval"),
        Some(seconds) => found(if seconds < 10 { "WARN" } else { "OK" }, format!("{seconds} s")),
    };
    assert_eq!(row("stat-interval"), interval);
    assert_eq!(row("timer-migration"), zero("proc/sys/kernel/timer_migration", "WARN"));
    let (verdict, actual) = row("skew-tick");
    let cpus: usize = shell("getconf _NPROCESSORS_ONLN").unwrap().parse().unwrap();
    let is_skewed = shell("grep -qw skew_tick=1 /proc/cmdline").is_some();
    let expected = [(is_skewed, "OK"), (cpus <= 16, "SKIP"), (true, "WARN")];
    assert_eq!(verdict, expected.into_iter().find(|(is_so, _)| *is_so).unwrap().1, "{actual}");
}

#[test]
fn watchdogs() {
    let (verdict, actual) = row("watchdog");
    let expected = match number("/proc/sys/kernel/watchdog") {
        None => "SKIP",
        Some(0) => "OK",
        Some(_) if cat("/proc/sys/kernel/watchdog_cpumask").is_some_and(|mask| mask.is_empty()) => "OK",
        // All CPUs are to be quick, so that any watchdog disturbs one.
        Some(_) => "WARN",
    };
    assert_eq!(verdict, expected, "{actual}");
}

#[test]
fn polling_for_errors() {
    let folder = "/sys/devices/system/machinecheck/machinecheck0";
    let (verdict, actual) = row("mce-poll");
    let expected = match (cat(&format!("{folder}/ignore_ce")), cat(&format!("{folder}/check_interval"))) {
        (None, _) => "SKIP",
        (Some(ignores), _) if ignores == "1" => "OK",
        (_, Some(interval)) if interval == "0" => "OK",
        _ => "WARN",
    };
    assert_eq!(verdict, expected, "{actual}");
}

#[test]
fn throttling_of_real_time_threads() {
    let (verdict, actual) = row("rt-throttling");
    let has_groups = shell("ls /sys/fs/cgroup/*/cpu.rt_runtime_us >/dev/null 2>&1").is_some();
    let runtime = number("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
    let period = number("/proc/sys/kernel/sched_rt_period_us").unwrap();
    if kernel() >= (6, 12) && !has_groups {
        assert!(
            ["OK", "INFO"].contains(&verdict.as_str()) && actual.starts_with("no limit"),
            "{verdict} {actual}"
        );
    } else if runtime < 0 || runtime >= period {
        assert_eq!((verdict, actual), found("OK", "no limit"));
    } else {
        assert_eq!((verdict, actual), found("WARN", format!("{runtime} of {period} µs")));
    }
}

#[test]
fn guards_against_leaks() {
    let (verdict, actual) = row("mitigations");
    let Some(count) =
        shell("ls /sys/devices/system/cpu/vulnerabilities | wc -l").filter(|count| count != "0")
    else {
        return assert_eq!(verdict, "SKIP", "{actual}");
    };
    assert_eq!(verdict, "INFO");
    let script = "grep -L '^Not affected' /sys/devices/system/cpu/vulnerabilities/*";
    let concerned = shell(script).unwrap_or_default();
    for path in concerned.lines() {
        let name = path.rsplit('/').next().unwrap();
        assert!(actual.contains(name), "{name}, of {count}: {actual}");
    }
    let named = actual.split("; ").map(|part| part.split(", ").count()).sum::<usize>();
    assert_eq!(if actual == "none needed" { 0 } else { named }, concerned.lines().count(), "{actual}");
}

#[test]
fn auditing() {
    let (verdict, actual) = row("audit");
    let expected =
        match (Path::new("/proc/self/loginuid").exists(), shell("grep -qwE 'audit=(0|off)' /proc/cmdline")) {
            (false, _) => return assert_eq!(verdict, "SKIP", "{actual}"),
            (true, Some(_)) => "off (audit=0)",
            (true, None) => "possible",
        };
    assert_eq!((verdict, actual), found("INFO", expected));
}

/// What one user sees another sees too: none of these files is root's.
#[test]
fn another_user_gets_the_same_verdicts() {
    const NOBODY: u32 = 65_534;
    if shell("id -u").unwrap() != "0" {
        eprintln!("skipped: only root may become another user");
        return;
    }
    // The folder of the build may be closed to others.
    let copy = std::env::temp_dir().join(format!("ring-tune-agrees-{}", std::process::id()));
    // By another process: one that this one forks meanwhile could still hold the copy open, which makes it busy.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_ring-tune")).arg(&copy).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(&copy);
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    let theirs = rows(command);
    fs::remove_file(&copy).unwrap();
    let mut ours = rows(Command::new(env!("CARGO_BIN_EXE_ring-tune")));
    assert!(ours.values().chain(theirs.values()).all(|(verdict, _)| verdict != "UNKNOWN"), "{theirs:?}");
    // A limit of each user's own, and what debugfs shows to root alone.
    ours.retain(|id, _| id != "memlock" && id != "rt-throttling");
    for (id, found) in ours {
        assert_eq!(theirs[&id], found, "{id}");
    }
}
