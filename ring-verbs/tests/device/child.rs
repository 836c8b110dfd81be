//! Tests in a process of their own, which gives rights away: this binary, run once more.
//!
//! # Safety
//!
//! System calls that take a path or a limit that is there during the call.
#![allow(unsafe_code)]

use core::ffi::CStr;
use core::ptr;
use std::env;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::Tests;
use crate::refusals;

/// Names the test that the child runs.
const VARIABLE: &str = "RING_VERBS_CHILD";

/// The path of libibverbs, for the child that hides it.
const LIBRARY: &str = "RING_VERBS_LIBRARY";

const TESTS: Tests = &[
    ("the_limit_of_locked_memory", refusals::the_limit_of_locked_memory),
    ("the_device_may_not_be_opened", refusals::the_device_may_not_be_opened),
    ("the_device_has_no_file", refusals::the_device_has_no_file),
    ("the_library_is_not_there", refusals::the_library_is_not_there),
];

/// Runs a test in a child.
pub(crate) fn run(name: &str) {
    let mut child = Command::new(env::current_exe().expect("a path"));
    child.env(VARIABLE, name).env(LIBRARY, library_path());
    let output = child.output().expect("the child runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Whether this process is such a child. Then the test has run.
pub(crate) fn was_one() -> bool {
    let Some(name) = env::var_os(VARIABLE) else { return false };
    let (_, test) = TESTS.iter().find(|(test, _)| name == *test).expect("a test of this name");
    test();
    true
}

pub(crate) fn is_root() -> bool {
    // SAFETY: it has no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Where the library was found: what is mapped.
fn library_path() -> String {
    ring_verbs::sys::Functions::load().expect("libibverbs");
    let maps = fs::read_to_string("/proc/self/maps").expect("what is mapped");
    let path = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    path.into_iter().find(|path| path.contains("/libibverbs.so")).expect("its path").to_owned()
}

/// This process, from now on: root is above the limit of locked memory, and opens every file.
pub(crate) fn become_nobody() {
    const NOBODY: u32 = 65534;
    if !is_root() {
        return;
    }
    // SAFETY: no groups, at no address.
    check(unsafe { libc::setgroups(0, ptr::null()) }, "setgroups");
    // SAFETY: it takes no memory.
    check(unsafe { libc::setgid(NOBODY) }, "setgid");
    // SAFETY: as above.
    check(unsafe { libc::setuid(NOBODY) }, "setuid");
}

pub(crate) fn limit_locked_memory(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the limit is there.
    check(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) }, "setrlimit");
}

/// Takes the devices' files away, for this process alone.
pub(crate) fn hide_device_files() {
    own_mounts();
    mount(c"tmpfs", c"/dev/infiniband", c"tmpfs", 0, c"mode=0755");
}

/// Makes the devices' files root's alone, for this process alone.
pub(crate) fn lock_device_files() {
    let files = fs::read_dir("/dev/infiniband").expect("the devices' files");
    let files: Vec<_> = files
        .map(|file| {
            let path = file.expect("a file").path();
            (path.metadata().expect("what it is").rdev(), path)
        })
        .collect();
    hide_device_files();
    for (number, path) in files {
        let path = CString::new(path.into_os_string().into_encoded_bytes()).expect("no zero byte");
        // SAFETY: the path ends with a zero byte.
        let returned = unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o600, number) };
        check(returned, &format!("mknod {path:?}"));
    }
}

/// Puts an empty file over the library, for this process alone.
pub(crate) fn hide_library() {
    own_mounts();
    let path = CString::new(env::var(LIBRARY).expect("a path")).expect("no zero byte");
    mount(c"/dev/null", &path, c"", libc::MS_BIND, c"");
}

/// What is mounted from now on, only this process sees.
fn own_mounts() {
    // SAFETY: it takes no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) }, "unshare");
    mount(c"", c"/", c"", libc::MS_REC | libc::MS_PRIVATE, c"");
}

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong, data: &CStr) {
    // SAFETY: all of them end with a zero byte.
    let returned =
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()) };
    check(returned, &format!("mount at {target:?}"));
}

fn check(returned: i32, what: &str) {
    assert_eq!(returned, 0, "{what}: {}", std::io::Error::last_os_error());
}
