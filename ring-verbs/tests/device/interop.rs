//! The examples, two processes at a time; `rc_pingpong` also with the C program that it is named after.

use core::sync::atomic::{AtomicU16, Ordering};
use core::time::Duration;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use ring_verbs::DeviceList;

use crate::Tests;
use crate::rig::{PATIENCE, Rig, device_name};

pub(crate) const TESTS: Tests = &[
    ("pingpong_with_a_c_client", || pingpong(Language::Rust, Language::C, false)),
    ("pingpong_with_a_c_client_and_events", || pingpong(Language::Rust, Language::C, true)),
    ("pingpong_with_a_c_server", || pingpong(Language::C, Language::Rust, false)),
    ("pingpong_with_a_c_server_and_events", || pingpong(Language::C, Language::Rust, true)),
    ("pingpong_among_ourselves", || pingpong(Language::Rust, Language::Rust, false)),
    ("send_lat", || both("send_lat", &[&[], &["--events"], &["-s", "5000"]], "half a round trip")),
    ("write_lat", || both("write_lat", &[&[], &["-s", "5000"]], "half a round trip")),
    ("read_lat", || both("read_lat", &[&["-s", "5000"], &["--events"]], "a round trip")),
    ("send_bw", || both("send_bw", &[&[], &["-s", "64", "-I", "64"], &["--events", "-b", "1"]], "MiB/s")),
    ("examples_on_two_devices", examples_on_two_devices),
    ("mr_cost", mr_cost),
    ("two_threads", two_threads),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Language {
    Rust,
    C,
}

/// Where cargo has put an example: beside the folder of this test.
fn example(name: &str) -> Option<PathBuf> {
    let this = std::env::current_exe().expect("the path of this test");
    let path = this.parent()?.parent()?.join("examples").join(name);
    if !path.exists() {
        eprintln!(
            "left out: {} is not there; `cargo build -p ring-verbs --examples` makes it",
            path.display()
        );
        return None;
    }
    Some(path)
}

fn pingpong_of(language: Language) -> Option<PathBuf> {
    const NAME: &str = "ibv_rc_pingpong";
    if language == Language::Rust {
        return example("rc_pingpong");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(NAME)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("left out: {NAME} is not there; it is in Debian's package ibverbs-utils");
    }
    found
}

/// One end, which is ended with its test.
struct Program {
    child: Child,
    name: String,
}

impl Program {
    fn start(path: &PathBuf, arguments: &[&str]) -> Self {
        let mut command = Command::new(path);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        Self { child, name: format!("{command:?}") }
    }

    /// Whether it succeeded, and what it has said.
    fn end(&mut self) -> (bool, String) {
        let begin = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("it is our child") {
                Some(status) => break status,
                None => assert!(begin.elapsed() < PATIENCE, "{} does not end", self.name),
            }
            thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
        self.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        (status.success(), said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TCP port for each pair of programs: one that was used can be held for a minute.
fn port() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(18600);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// Runs a server and a client, which both have to succeed; what they said.
fn run(server: (&PathBuf, &[&str]), client: (&PathBuf, &[&str])) -> [String; 2] {
    let mut serving = Program::start(server.0, server.1);
    let begin = Instant::now();
    let asked = loop {
        let (has_succeeded, said) = Program::start(client.0, client.1).end();
        // The C program tries once, and the server may not be there yet.
        let is_early = said.contains("Couldn't connect to") && begin.elapsed() < PATIENCE;
        if has_succeeded || !is_early {
            assert!(has_succeeded, "{client:?} has failed: {said}");
            break said;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let (has_succeeded, said) = serving.end();
    assert!(has_succeeded, "{server:?} has failed: {said}");
    [said, asked]
}

fn pingpong(server: Language, client: Language, has_events: bool) {
    let (Some(server), Some(client)) = (pingpong_of(server), pingpong_of(client)) else { return };
    let (device, index, port) = (device_name().expect("a device"), Rig::new().gid.index.to_string(), port());
    let mut arguments = vec!["-d", &device, "-g", &index, "-p", &port, "-n", "300", "-s", "3000"];
    if has_events {
        arguments.push("-e");
    }
    let of_client = [&arguments[..], &["127.0.0.1"]].concat();
    for said in run((&server, &arguments), (&client, &of_client)) {
        assert!(said.contains("1800000 bytes in"), "{said}");
        assert!(said.contains("300 iters in"), "{said}");
    }
}

fn both(name: &str, options: &[&[&str]], expected: &str) {
    let device = device_name().expect("a device");
    for options in options {
        on(name, options, expected, &device, &device);
    }
}

fn on(name: &str, options: &[&str], expected: &str, server: &str, client: &str) {
    let Some(path) = example(name) else { return };
    let port = port();
    let of = |device| [options, &["-n", "300", "-p", &port, "-d", device]].concat();
    let of_client = [&of(client)[..], &["127.0.0.1"]].concat();
    let [_, said] = run((&path, &of(server)), (&path, &of_client));
    assert!(said.contains(expected), "{said}");
    print!("{name} {options:?}\n{said}");
}

fn examples_on_two_devices() {
    let devices = DeviceList::new().expect("a list");
    if ["rxea", "rxeb"].iter().any(|name| devices.named(name).is_err()) {
        eprintln!("left out: there are no devices rxea and rxeb, joined by a wire");
        return;
    }
    for (name, expected) in [
        ("send_lat", "half a round trip"),
        ("write_lat", "half a round trip"),
        ("read_lat", "a round trip"),
        ("send_bw", "MiB/s"),
    ] {
        on(name, &[], expected, "rxea", "rxeb");
    }
}

fn mr_cost() {
    let Some(path) = example("mr_cost") else { return };
    let device = device_name().expect("a device");
    let (has_succeeded, said) = Program::start(&path, &["-d", &device, "-n", "5", "-m", "4"]).end();
    assert!(has_succeeded, "{said}");
    assert_eq!(said.lines().count(), 1 + 6, "4 KiB to 4 MiB: {said}");
    print!("{said}");
}

fn two_threads() {
    let Some(path) = example("two_threads") else { return };
    let device = device_name().expect("a device");
    let (has_succeeded, said) = Program::start(&path, &["-d", &device, "-n", "3000"]).end();
    assert!(has_succeeded, "{said}");
    assert!(said.contains("write 3000 failed: REM_ACCESS_ERR"), "{said}");
    assert!(said.contains(" 3000 done, 1 failed, "), "{said}");
    print!("{said}");
}
