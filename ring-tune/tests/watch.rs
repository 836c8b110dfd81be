//! `ring-tune watch` beside threads and processes that do what is known.
//!
//! A worker waits while the command starts, does its work, and waits again: what the command has told of it in between is
//! compared with what /proc says of it, to the last one.
#![cfg(feature = "cli")]

#[path = "common/skip.rs"]
mod skip;
#[path = "common/watching.rs"]
#[allow(dead_code, reason = "the tests of its ends use more of it")]
mod watching;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Instant;

use ring_tune::{allowed_cpus, pin_to};
use serde_json::Value;
use skip::skip;
use watching::{Counters, MINUTES, at_least, command, number_of_call, seconds, sum, tick, wait_for};

/// A command that goes with the test, and what it tells.
struct Ticks {
    command: Child,
    lines: BufReader<ChildStdout>,
    begin: Instant,
    /// Seconds that the ticks cover which were read so far.
    covered: f64,
}

impl Ticks {
    fn start(arguments: &[&str]) -> Self {
        Self::of(&mut command(&[arguments, &["--every", "0.05"]].concat()))
    }

    fn of(command: &mut Command) -> Self {
        let begin = Instant::now();
        let mut command = command.spawn().unwrap();
        let lines = BufReader::new(command.stdout.take().unwrap());
        Self { command, lines, begin, covered: 0.0 }
    }

    fn of_this_process() -> Self {
        Self::start(&["--json", "--pid", &std::process::id().to_string()])
    }

    fn line(&mut self) -> String {
        assert!(self.begin.elapsed() < MINUTES);
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    fn next(&mut self) -> Value {
        let tick = tick(&self.line());
        self.covered += seconds(&tick);
        tick
    }

    /// The ticks until one that was due after this call: a line that is read now may have been written long ago.
    fn until_now(&mut self) -> Vec<Value> {
        let now = self.begin.elapsed().as_secs_f64();
        let mut ticks = vec![];
        while self.covered <= now {
            ticks.push(self.next());
        }
        ticks
    }

    fn notes(mut self) -> String {
        self.command.kill().unwrap();
        let mut notes = String::new();
        self.command.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
        notes
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

/// A thread that waits to be told, works, and waits again.
struct Worker<'a> {
    id: u32,
    stream: UnixStream,
    turns: &'a AtomicU32,
}

impl Worker<'_> {
    /// Calls `act` beside a thread that does `work` when it is told.
    fn beside<T>(work: impl Fn() + Send, act: impl FnOnce(&mut Worker<'_>) -> T) -> T {
        let (stream, mut other) = UnixStream::pair().unwrap();
        let (id, turns) = (AtomicU32::new(0), AtomicU32::new(0));
        let (id, turns) = (&id, &turns);
        thread::scope(|scope| {
            scope.spawn(move || {
                // ORDERING: Relaxed: nothing else is read because of it.
                id.store(nix::unistd::gettid().as_raw().try_into().unwrap(), Ordering::Relaxed);
                while other.read_exact(&mut [0]).is_ok() {
                    work();
                    // ORDERING: Relaxed: nothing else is read because of it.
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
            // ORDERING: Relaxed: as above.
            wait_for(|| id.load(Ordering::Relaxed) != 0);
            // ORDERING: Relaxed: as above.
            let mut worker = Worker { id: id.load(Ordering::Relaxed), stream, turns };
            worker.is_waiting();
            act(&mut worker)
        })
    }

    /// Has it work once, and returns when it waits again.
    fn work(&mut self) {
        self.stream.write_all(&[1]).unwrap();
        // ORDERING: Relaxed: nothing else is read because of it.
        wait_for(|| self.turns.load(Ordering::Relaxed) == 1);
        self.is_waiting();
    }

    /// Returns when the worker has left the CPU to wait in read(2), so that nothing of it counts on.
    fn is_waiting(&self) {
        // proc_pid_syscall(5): a thread that runs has no number here; for others the kernel waits until it is off its
        // CPU.
        wait_for(|| {
            let number = number_of_call(&self.path("syscall"));
            number == Some(libc::SYS_read) || number == Some(libc::SYS_recvfrom)
        });
    }

    fn path(&self, file: &str) -> String {
        format!("/proc/self/task/{}/{file}", self.id)
    }

    /// What /proc says of it, read without the command's help.
    fn counters(&self) -> Counters {
        let bytes = |file: &str| fs::read(self.path(file)).unwrap_or_default();
        let read = |file: &str| String::from_utf8_lossy(&bytes(file)).into_owned();
        let mut counters = Counters::new();
        let mut add = |name: &str, count: &str| {
            counters.insert(name.into(), count.parse().unwrap());
        };
        for line in read("status").lines().chain(read("sched").lines()) {
            let Some((name, count)) = line.split_once(':') else { continue };
            match name.trim() {
                "voluntary_ctxt_switches" => add("voluntary_switches", count.trim()),
                "nonvoluntary_ctxt_switches" => add("involuntary_switches", count.trim()),
                "se.nr_migrations" => add("migrations", count.trim()),
                _ => {}
            }
        }
        if let [run, wait, _] = read("schedstat").split_whitespace().collect::<Vec<_>>()[..] {
            add("cpu_ns", run);
            add("run_queue_ns", wait);
        }
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        add("minor_faults", fields[7]);
        add("major_faults", fields[9]);
        counters
    }
}

/// What the command tells of a thread that does `work` and of its process, after it was compared with what /proc says.
fn watched(work: impl Fn() + Send) -> (Counters, Counters, String) {
    Worker::beside(work, |worker| {
        let before = worker.counters();
        let mut ticks = Ticks::of_this_process();
        let mut told = vec![ticks.next()];
        worker.work();
        let after = worker.counters();
        told.extend(ticks.until_now());
        let thread = sum(&told, "thread", Some(worker.id));
        let mut expected: Counters =
            after.iter().map(|(name, count)| (name.clone(), count - before[name])).collect();
        expected.retain(|_, count| *count > 0);
        assert_eq!(thread, expected);
        (thread, sum(&told, "process", Some(std::process::id())), ticks.notes())
    })
}

/// Where perf_event_open works, its counts are there too; else a note says why not.
fn perf_at_least((process, notes): (&Counters, &str), name: &str, least: u64) {
    if notes.contains(name) {
        skip(notes);
    } else {
        at_least(process, &format!("perf {name}"), least);
    }
}

fn sleep_often() {
    (0..50).for_each(|_| thread::sleep(Duration::from_millis(1)));
}

#[test]
fn a_thread_that_sleeps_is_seen_to_switch() {
    let (thread, process, notes) = watched(sleep_often);
    at_least(&thread, "voluntary_switches", 50);
    perf_at_least((&process, &notes), "context_switches", 50);
}

#[test]
fn pages_that_are_touched_are_seen_to_fault() {
    const BYTES: usize = 16 << 20;
    let huge = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let page = if huge.contains("[always]") { 2 << 20 } else { 4096 * 16 };
    // Large enough to be mapped anew.
    let (thread, process, _) = watched(|| drop(core::hint::black_box(vec![1_u8; BYTES])));
    at_least(&thread, "minor_faults", (BYTES / page) as u64);
    at_least(&process, "minor_faults", thread["minor_faults"]);
}

/// The same, beside threads that would need more files than `ulimit` leaves.
fn beside_many_threads(act: impl FnOnce(&mut Worker<'_>)) {
    let (end, other) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        for _ in 0..16 {
            let mut other = other.try_clone().unwrap();
            scope.spawn(move || other.read(&mut [0]));
        }
        // Goes before the scope waits for the threads, which it ends, whatever `act` does.
        let _end = end;
        Worker::beside(sleep_often, act);
    });
}

#[test]
fn counters_that_take_all_files_leave_some_to_read_by() {
    beside_many_threads(|worker| {
        let line = format!(
            "ulimit -n 20; exec {} watch --json --every 0.05 --pid {}",
            env!("CARGO_BIN_EXE_ring-tune"),
            std::process::id()
        );
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut ticks = Ticks::of(shell);
        let mut told = vec![ticks.next()];
        worker.work();
        told.extend(ticks.until_now());
        at_least(&sum(&told, "thread", Some(worker.id)), "voluntary_switches", 50);
        let notes = ticks.notes();
        assert!(notes.contains("too many files") || notes.contains("not permitted"), "{notes}");
    });
}

/// Spins until something else has been run in its place so many times.
fn spin_until_switched(times: u64) {
    let switches = || {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("nonvoluntary")).unwrap();
        line.rsplit('\t').next().unwrap().parse::<u64>().unwrap()
    };
    let begin = (switches(), Instant::now());
    while switches() < begin.0 + times {
        (0..100_000).for_each(|_| core::hint::spin_loop());
        assert!(begin.1.elapsed() < MINUTES);
    }
}

#[test]
fn two_that_spin_on_one_cpu_are_seen_to_wait_for_each_other() {
    let cpu = allowed_cpus().unwrap().iter().next().unwrap();
    let (thread, ..) = watched(|| {
        pin_to(cpu).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // Begins on the CPU of its parent.
            scope.spawn(|| {
                // ORDERING: Relaxed: nothing else is read because of it.
                while !is_over.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
            });
            spin_until_switched(10);
            // ORDERING: Relaxed: as above.
            is_over.store(true, Ordering::Relaxed);
        });
    });
    at_least(&thread, "involuntary_switches", 10);
    at_least(&thread, "cpu_ns", 1);
    if fs::exists("/proc/self/schedstat").unwrap() {
        at_least(&thread, "run_queue_ns", 1_000_000);
    } else {
        skip("this kernel has no /proc/PID/schedstat");
    }
}

#[test]
fn a_thread_that_is_sent_to_and_fro_is_seen_to_migrate() {
    let cpus: Vec<usize> = allowed_cpus().unwrap().iter().take(2).collect();
    let [one, other] = cpus[..] else {
        return skip("there is one CPU");
    };
    let (thread, process, notes) = watched(|| {
        for _ in 0..20 {
            pin_to(one).unwrap();
            pin_to(other).unwrap();
        }
    });
    if fs::exists("/proc/self/sched").unwrap() {
        at_least(&thread, "migrations", 39);
    } else {
        skip("this kernel has no /proc/PID/sched");
    }
    perf_at_least((&process, &notes), "migrations", 39);
}

#[test]
fn threads_that_begin_later_count_from_nothing_and_for_the_process() {
    let mut ticks = Ticks::of_this_process();
    let mut told = vec![ticks.next()];
    Worker::beside(sleep_often, |worker| {
        worker.work();
        let all = worker.counters();
        told.extend(ticks.until_now());
        let thread = sum(&told, "thread", Some(worker.id));
        at_least(&thread, "voluntary_switches", 51);
        assert_eq!(thread["voluntary_switches"], all["voluntary_switches"]);
        assert_eq!(thread.get("minor_faults").copied().unwrap_or(0), all["minor_faults"]);
    });
    let process = sum(&told, "process", Some(std::process::id()));
    perf_at_least((&process, &ticks.notes()), "context_switches", 50);
}

/// What the kernel has counted of a CPU and of the machine, by the command's names.
fn host_counters(cpu: usize) -> Counters {
    let mut counters = Counters::new();
    for (path, kind) in [("/proc/interrupts", "interrupt"), ("/proc/softirqs", "softirq")] {
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let cpus = lines.next().unwrap();
        let place = cpus.iter().position(|name| *name == format!("CPU{cpu}")).unwrap();
        for line in lines.filter(|line| line.len() > cpus.len()) {
            let mut name = vec![kind, line[0].trim_end_matches(':')];
            name.extend(&line[cpus.len() + 1..]);
            counters.insert(name.join(" "), line[place + 1].parse().unwrap());
        }
    }
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let switches = stat.lines().find_map(|line| line.strip_prefix("ctxt ")).unwrap();
    counters.insert("context_switches".into(), switches.parse().unwrap());
    counters
}

#[test]
fn what_a_cpu_counts_agrees_with_what_is_read_around_it_and_within() {
    let cpu = allowed_cpus().unwrap().iter().next().unwrap();
    let around = host_counters(cpu);
    let mut ticks = Ticks::start(&["--json", "--cpus", &cpu.to_string()]);
    let mut told = vec![ticks.next()];
    let within = host_counters(cpu);
    (0..20).for_each(|_| told.push(ticks.next()));
    let still_within = host_counters(cpu);
    told.extend(ticks.until_now());
    let around_it = host_counters(cpu);
    let mut of_cpu = sum(&told, "cpu", Some(u32::try_from(cpu).unwrap()));
    perf_at_least((&of_cpu, &ticks.notes()), "context_switches", 1);
    of_cpu.extend(sum(&told, "machine", None));
    let mut moved = 0;
    for (name, last) in &around_it {
        let count = of_cpu.get(name).copied().unwrap_or(0);
        let most = last - around.get(name).unwrap_or(&0);
        let least = still_within[name] - within[name];
        assert!((least..=most).contains(&count), "{name}: {count} is not within {least} and {most}");
        moved += u64::from(least > 0);
    }
    assert!(moved >= 3, "timer, softirqs and switches: {of_cpu:?}");
}

#[test]
fn a_thread_may_call_itself_what_it_likes() {
    Worker::beside(sleep_often, |worker| {
        fs::write(worker.path("comm"), b"a\n\x1b[2J\xff) S 9").unwrap();
        let before = worker.counters();
        let mut people = Ticks::start(&["--pid", &std::process::id().to_string()]);
        let mut ticks = Ticks::of_this_process();
        let mut text = people.line();
        let mut told = vec![ticks.next()];
        worker.work();
        while !text.contains("a\\n\\u{1b}[2J\u{fffd}) S 9  voluntary_switches") {
            text += &people.line();
        }
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
        assert!(text.lines().all(|line| line.starts_with("     ")), "{text:?}");
        told.extend(ticks.until_now());
        let groups = told.iter().flat_map(|tick| tick["watched"].as_array().unwrap());
        let mut names = groups.filter(|group| group["id"] == worker.id).map(|group| &group["name"]);
        assert!(names.any(|name| name == "a\n\u{1b}[2J\u{fffd}) S 9"), "{told:?}");
        // By another name it is the same thread, which does not count from nothing.
        fs::write(worker.path("comm"), b"b\r\x07").unwrap();
        told.extend(ticks.until_now());
        let switches = worker.counters()["voluntary_switches"] - before["voluntary_switches"];
        assert_eq!(sum(&told, "thread", Some(worker.id))["voluntary_switches"], switches);
    });
}

#[test]
fn a_stop_of_the_command_itself_is_one_long_tick() {
    const STOPPED: Duration = Duration::from_millis(300);
    let mut watch = Ticks::start(&["--json", "--cpus", "0"]);
    watch.next();
    let send = |signal: &str, id: u32| {
        let line = format!("kill -{signal} {id}");
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    };
    let id = watch.command.id();
    send("STOP", id);
    wait_for(|| fs::read_to_string(format!("/proc/{id}/status")).unwrap().contains("State:\tT"));
    // The length of the tick to come.
    thread::sleep(STOPPED);
    send("CONT", id);
    let began = Instant::now();
    while seconds(&watch.next()) < STOPPED.as_secs_f64() {
        assert!(began.elapsed() < MINUTES);
    }
}
