//! All memory is locked, as the kernel counts it. One test in this process, since the whole process is meant.
//!
//! # Safety
//!
//! The unsafe block passes plain numbers to the kernel.
#![allow(unsafe_code)]

#[path = "common/skip.rs"]
mod skip;

use core::hint::black_box;
use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use ring_tune::{Error, lock_all_memory, unlock_all_memory};
use skip::skip;

/// A line of `/proc/self/status` in KiB.
fn kib(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn all_memory_is_locked_now_and_later_until_it_is_unlocked() {
    assert_eq!(kib("VmLck:"), 0);
    match lock_all_memory() {
        Ok(()) => {}
        Err(error) => {
            let Error::LockMemory { limit_bytes, .. } = error else { panic!("{error}") };
            assert_eq!(limit_bytes, getrlimit(Resource::RLIMIT_MEMLOCK).unwrap().0);
            assert!(error.to_string().contains(&limit_bytes.to_string()), "{error}");
            return skip(error);
        }
    }
    let before = kib("VmLck:");
    assert!(before * 10 > kib("VmRSS:") * 9, "{before} KiB are locked");

    // Reserved and never touched: it is there all the same.
    let later: Vec<u8> = black_box(Vec::with_capacity(64 << 20));
    assert!(kib("VmLck:") >= before + (64 << 10));
    assert!(kib("VmRSS:") >= 64 << 10);
    drop(later);

    unlock_all_memory().unwrap();
    assert_eq!(kib("VmLck:"), 0);
    let later: Vec<u8> = black_box(Vec::with_capacity(64 << 20));
    assert_eq!(kib("VmLck:"), 0);
    drop(later);
    without_privilege();
}

/// Without the capability the limit counts, and the error names it.
fn without_privilege() {
    let (limit, hard) = getrlimit(Resource::RLIMIT_MEMLOCK).unwrap();
    let lowered = 12 << 10;
    setrlimit(Resource::RLIMIT_MEMLOCK, lowered, hard).unwrap();
    // Of a capability that is gone only this thread is without.
    let result = std::thread::spawn(|| {
        nobody::become_nobody();
        lock_all_memory()
    })
    .join()
    .unwrap();
    setrlimit(Resource::RLIMIT_MEMLOCK, limit, hard).unwrap();
    let error = result.unwrap_err();
    assert!(matches!(error, Error::LockMemory { limit_bytes, .. } if limit_bytes == lowered), "{error:?}");
    assert!(error.to_string().contains("RLIMIT_MEMLOCK allows 12288 bytes"), "{error}");
}

mod nobody {
    use nix::libc;

    /// Changes the user of this thread alone, where libc's function changes the whole process.
    pub(super) fn become_nobody() {
        let nobody: libc::uid_t = 65_534;
        // SAFETY: takes plain numbers; a thread without privilege keeps what it has, which is none.
        unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) };
    }
}
