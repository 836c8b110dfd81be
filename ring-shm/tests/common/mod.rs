//! What the tests share: names that clean up after themselves, other processes, and words in shared memory.
//!
//! The other process of a test is the test binary itself, started again to run one ignored test called
//! `child`, which finds its role and its arguments in the environment and answers on lines that begin with
//! "=> ".
//!
//! # Safety
//!
//! Regions are as long as they say and zeroed at first; the tests touch them through atomics alone.
#![allow(unsafe_code)]
#![allow(dead_code)] // Each test binary uses a part.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ring_shm::{Error, Lock, Options, Region};

const ROLE: &str = "RING_SHM_TEST_ROLE";
const ARGUMENT: &str = "RING_SHM_TEST_ARGUMENT";

/// A name that no other test has; what is left under it goes when the test ends, however it ends.
#[derive(Debug)]
pub(crate) struct TestName(String);

impl TestName {
    pub(crate) fn new(tag: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("ring-shm-test-{tag}-{}-{number}", std::process::id()))
    }

    /// The file that a segment of this name is.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new("/dev/shm").join(&self.0)
    }
}

impl core::ops::Deref for TestName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Drop for TestName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path());
    }
}

/// For a shell: no file over 512 MiB, so that a segment that is wrongly granted is refused for that, and does not
/// kill the machine.
pub(crate) const SMALL_FILES: &str = "ulimit -f 1048576";

/// Waits for something that the other process does, but not for ever.
pub(crate) fn wait_until(mut is_done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < Duration::from_secs(20), "the other process did not do its part");
        std::thread::yield_now();
    }
}

/// Options that leave limits on locked memory to other tests.
pub(crate) fn unlocked() -> Options {
    Options::new().lock(Lock::Never)
}

/// The n-th word of the data.
pub(crate) fn word(region: &impl Region, index: usize) -> &AtomicU64 {
    assert!((index + 1) * 8 <= region.bytes());
    // SAFETY: the word is inside the region.
    let address = unsafe { region.base().cast::<AtomicU64>().add(index) };
    // SAFETY: the region is aligned, zeroed at first, used through atomics alone, and outlives the reference.
    unsafe { address.as_ref() }
}

pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call has no conditions.
    unsafe { libc::geteuid() }
}

pub(crate) fn is_root() -> bool {
    effective_user() == 0
}

/// Waits until no other process has the file locked; the lock goes with the descriptor.
pub(crate) fn lock_file(file: &std::fs::File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0);
}

/// Has the lock of a segment's users for as long as the file is open.
pub(crate) fn join_users(file: &std::fs::File) {
    use std::os::fd::AsRawFd;
    // SAFETY: plain integers, for which zeroes are valid.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    (lock.l_type, lock.l_start, lock.l_len) = (libc::F_WRLCK.try_into().unwrap(), 1 << 62, 1);
    // SAFETY: the descriptor is open and the structure readable.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }, 0);
}

/// A memfd of these bytes with these seals.
pub(crate) fn anonymous_file(bytes: &[u8], seals: libc::c_int) -> std::fs::File {
    use std::io::Write;
    use std::os::fd::{AsRawFd, FromRawFd};
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends in a zero byte.
    let number = unsafe { libc::memfd_create(c"ring-shm-test".as_ptr(), flags) };
    assert!(number >= 0);
    // SAFETY: the number was opened just now, and nobody else has it.
    let mut file = unsafe { std::fs::File::from_raw_fd(number) };
    file.write_all(bytes).unwrap();
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
    file
}

/// Takes the memory from a part of a file, which keeps its length.
pub(crate) fn punch_hole(file: &std::fs::File, offset: i64, bytes: i64) {
    use std::os::fd::AsRawFd;
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, bytes) }, 0);
}

/// Whether runs are to be as long as a release is worth.
pub(crate) fn is_long() -> bool {
    std::env::var_os("RING_LONG").is_some_and(|long| long == "1")
}

/// Says what is not tested here, and why: `cargo xtask test` counts these lines, once a test.
pub(crate) fn skip(test: &str, reason: &str) {
    // Not `eprintln!`: the test harness would capture it. On a line of its own, since the harness may have
    // begun one, and in one piece, since other tests write too.
    use std::io::Write;
    std::io::stderr().write_all(format!("\nSKIPPED {test}: {reason}\n").as_bytes()).unwrap();
}

/// The role that this process was started for.
pub(crate) fn role() -> Option<(String, String)> {
    Some((std::env::var(ROLE).ok()?, std::env::var(ARGUMENT).unwrap_or_default()))
}

/// Answers the parent.
pub(crate) fn answer(text: &str) {
    // Not `println!`: the test harness would capture it.
    use std::io::Write;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\n=> {text}").unwrap();
    stdout.flush().unwrap();
}

/// A command that runs `child` of this test binary.
pub(crate) fn child(role: &str, argument: &str) -> Command {
    in_shell(role, argument, "")
}

/// The same, after `setup` in a shell.
pub(crate) fn in_shell(role: &str, argument: &str, setup: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match setup {
        "" => Command::new(program),
        _ => {
            let mut shell = Command::new("sh");
            shell.arg("-ec").arg(format!("{setup}; exec \"$0\" \"$@\"")).arg(program);
            shell
        }
    };
    with_role(&mut command, role, argument);
    command
}

/// The same, in a mount namespace of its own, where `setup` may mount what it likes.
pub(crate) fn in_namespace(role: &str, argument: &str, setup: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec"]);
    command.arg(format!("{setup}; exec \"$0\" \"$@\"")).arg(std::env::current_exe().unwrap());
    with_role(&mut command, role, argument);
    command
}

fn with_role(command: &mut Command, role: &str, argument: &str) {
    command.args(["--ignored", "--exact", "child", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(ARGUMENT, argument);
}

/// The test binary where another user can start it.
#[derive(Debug)]
pub(crate) struct OtherUser(PathBuf);

impl OtherUser {
    pub(crate) const ID: u32 = 65534;

    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ring-shm-test-program-{}-{number}", std::process::id());
        let program = std::env::temp_dir().join(name);
        // By another process: a child that a test forks meanwhile would keep a descriptor of ours open for writing,
        // and a program that somebody can write cannot be started.
        let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
        assert!(copied.success(), "cannot copy the test program");
        Self(program)
    }

    /// Runs `child` as a user without any capability, after `setup` in a shell.
    pub(crate) fn child(&self, role: &str, argument: &str, setup: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sh");
        command.arg("-ec").arg(format!("{setup}; exec \"$0\" \"$@\"")).arg(&self.0);
        command.uid(Self::ID).gid(Self::ID).current_dir("/");
        with_role(&mut command, role, argument);
        command
    }

    /// The same, in a mount namespace of its own, where root has run `setup` before.
    pub(crate) fn in_namespace(&self, role: &str, argument: &str, setup: &str) -> Command {
        let become_other = format!("exec setpriv --reuid {0} --regid {0} --clear-groups", Self::ID);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-ec"]);
        command.arg(format!("{setup}; {become_other} \"$0\" \"$@\"")).arg(&self.0).current_dir("/");
        with_role(&mut command, role, argument);
        command
    }
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A running child whose answers can be read one by one. Killed on drop.
#[derive(Debug)]
pub(crate) struct Peer {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Peer {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next answer.
    pub(crate) fn hear(&mut self) -> String {
        self.next_answer().unwrap_or_else(|| panic!("the child ended without an answer"))
    }

    fn next_answer(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(answer) = line.strip_prefix("=> ") {
                return Some(answer.trim_end().to_owned());
            }
            line.clear();
        }
        None
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits for the end, which must be a success, and returns the answers that were not heard yet.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let mut answers = Vec::new();
        while let Some(answer) = self.next_answer() {
            answers.push(answer);
        }
        let status = self.process.wait().unwrap();
        assert!(status.success(), "the child failed: {status}, having said {answers:?}");
        answers
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A field of what the kernel says about the mapping that holds `address`.
pub(crate) fn smaps_field(address: usize, field: &str) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_ours = false;
    for line in maps.lines() {
        if let Some((start, rest)) = line.split_once('-') {
            let end = rest.split(' ').next().unwrap();
            let bounds = usize::from_str_radix(start, 16).ok().zip(usize::from_str_radix(end, 16).ok());
            if let Some((start, end)) = bounds {
                is_ours = (start..end).contains(&address);
            }
        }
        if let Some(value) = line.strip_prefix(field).and_then(|rest| rest.strip_prefix(':')) {
            if is_ours {
                return value.trim().to_owned();
            }
        }
    }
    panic!("no {field} for {address:#x}")
}

/// The NUMA policy of the mapping that holds `address`, as numa_maps(5) shows it, on a kernel that has such policies.
pub(crate) fn numa_policy(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
    let mut lines = maps.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let start = usize::from_str_radix(fields.next()?, 16).ok()?;
        Some((start, fields.next()?.to_owned()))
    });
    lines.rfind(|(start, _)| *start <= address).map(|(_, policy)| policy)
}

/// Whether this process may bind memory to a node.
pub(crate) fn can_bind() -> bool {
    unlocked().numa_node(0).create_anonymous(1).is_ok()
}

/// How many descriptors this process has open. Of use where no other thread opens any.
pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many descriptors of this process lead to a file.
pub(crate) fn descriptors_of(file: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    open.filter(|number| std::fs::read_link(number.as_ref().unwrap().path()).is_ok_and(|to| to == file))
        .count()
}

/// What a call that must fail says; it leaves no descriptor open.
pub(crate) fn refused<T: core::fmt::Debug>(call: impl FnOnce() -> Result<T, Error>) -> Error {
    let before = open_descriptors();
    let error = call().unwrap_err();
    assert_eq!(open_descriptors(), before, "left open by {error:?}");
    error
}

/// Does something while a limit of this process is lower.
pub(crate) fn limited<T>(resource: libc::__rlimit_resource_t, limit: u64, act: impl FnOnce() -> T) -> T {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable.
    assert_eq!(unsafe { libc::getrlimit(resource, &raw mut found) }, 0);
    let lower = libc::rlimit { rlim_cur: limit, ..found };
    // SAFETY: the structure is readable.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const lower) }, 0);
    let done = act();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const found) }, 0);
    done
}

/// Does something that finds `count` descriptors free.
pub(crate) fn with_free_descriptors<T>(count: usize, act: impl FnOnce() -> T) -> T {
    // SAFETY: the call tells of a number whether it is open.
    let is_open = |number: &i32| unsafe { libc::fcntl(*number, libc::F_GETFD) } != -1;
    let limit = (0..).filter(|number| !is_open(number)).nth(count).unwrap();
    limited(libc::RLIMIT_NOFILE, limit.try_into().unwrap(), act)
}
