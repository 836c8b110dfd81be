//! What the tests share: directories that clean up after themselves, and other processes.
//!
//! The other process of a test is the test binary itself, started again to run the ignored test `child`, which finds
//! its role and its path in the environment and answers on lines that begin with "=> ".

mod listener;
mod messages;
mod raw;

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::borrow::ToOwned;
use std::format;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::pages::PageSize;
use crate::sys;

const ROLE: &str = "RING_SHM_SOCKET_TEST_ROLE";
const PATH: &str = "RING_SHM_SOCKET_TEST_PATH";

/// At once or not at all.
fn now() -> Deadline {
    Deadline::after(Duration::ZERO)
}

/// Long enough for what happens, however busy the machine is. The end of a connection comes so late, and not at once,
/// while a child that another test has just forked has a copy of the descriptor.
fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

/// A directory that no other test has; it goes with all that is in it.
#[derive(Debug)]
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // ORDERING: Relaxed: each number is given out once, and nothing else goes with it.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ring-shm-socket-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Both ends of a connection: the server's and the client's.
fn pair() -> (Connection, Connection) {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let listener = Listener::bind(&path, 0o600).unwrap();
    let client = Connection::connect(&path, now()).unwrap();
    (listener.accept(now()).unwrap(), client)
}

/// Leaves what a killed server leaves.
fn leave_a_rest(path: &Path) {
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    until_dead(path);
}

/// Waits until no child that another test has just forked, and that has not begun its program yet, keeps the socket.
fn until_dead(path: &Path) {
    let address = Place::new(path).unwrap().address;
    while socket::is_bound(&address).unwrap() {
        std::thread::yield_now();
    }
}

fn anonymous_files(count: usize) -> Vec<Descriptor> {
    (0..count).map(|_| sys::anonymous_file(c"ring-shm-test", PageSize::Base).unwrap()).collect()
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn is_root() -> bool {
    sys::effective_user() == 0
}

/// Says what is not tested here, and why: `cargo xtask test` counts these lines, once a test.
fn skip(test: &str, reason: &str) {
    // Not `eprintln!`: the test harness would capture it.
    std::io::stderr().write_all(format!("\nSKIPPED {test}: {reason}\n").as_bytes()).unwrap();
}

/// Answers the parent.
fn answer(text: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\n=> {text}").unwrap();
    stdout.flush().unwrap();
}

#[test]
#[ignore = "the other process of the tests here"]
fn child() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(PATH)) else { return };
    let path = Path::new(&path);
    match &*role {
        "listen" => {
            let listener = Listener::bind(path, 0o600).unwrap();
            answer("listening");
            std::thread::sleep(Duration::from_secs(60));
            drop(listener);
        }
        "bind" => {
            // The parent lets several begin at once, and keeps the one that succeeds.
            std::io::stdin().read_line(&mut String::new()).unwrap();
            let result = Listener::bind(path, 0o600).map(|listener| {
                answer("bound");
                std::io::stdin().read_line(&mut String::new()).unwrap();
                drop(listener);
            });
            if let Err(error) = result {
                answer(&format!("{error:?}"));
            }
        }
        "connect" => {
            let client = Connection::connect(path, soon()).unwrap();
            answer("connected");
            std::thread::sleep(Duration::from_secs(60));
            drop(client);
        }
        "try to connect" => {
            let start = std::time::Instant::now();
            let result = Connection::connect(path, Deadline::after(Duration::from_millis(300)));
            let waited = start.elapsed() >= Duration::from_millis(300);
            answer(&format!("{:?} {waited}", result.map(drop)));
        }
        "errors" => messages::each_error_closes_what_came(),
        "limit" => messages::a_limit_on_descriptors(),
        other => panic!("no such role: {other}"),
    }
}

/// A command that runs `child` of a copy of this test binary, after `setup` in a shell.
fn command(program: &Path, role: &str, path: &Path, setup: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-ec").arg(format!("{setup} \"$0\" \"$@\"")).arg(program);
    command.args(["--ignored", "--exact", "socket::tests::child", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(PATH, path).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A running child whose answers can be read one by one. Killed on drop.
#[derive(Debug)]
struct Peer {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Peer {
    fn start(role: &str, path: &Path, setup: &str) -> Self {
        Self::spawn(command(&std::env::current_exe().unwrap(), role, path, setup))
    }

    fn spawn(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// The next answer.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(answer) = line.strip_prefix("=> ") {
                return answer.trim_end().to_owned();
            }
            line.clear();
        }
        panic!("the child ended without an answer");
    }

    /// A line on the standard input.
    fn go_on(&mut self) {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits for the end, which must be a success.
    fn finish(mut self) {
        assert!(self.process.wait().unwrap().success(), "the child failed");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
