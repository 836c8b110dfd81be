//! A sender that truncates its memory and seals it while it is being looked at: an error, no SIGBUS.
//!
//! # Safety
//!
//! `fstatfs` of the C library is replaced in this program, by one that acts in between and then does the same.
#![allow(unsafe_code, missing_docs)]

use core::sync::atomic::{AtomicI32, Ordering};
use core::time::Duration;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use ring_shm::{Error, Options};

/// What is truncated and sealed at the next call of `fstatfs`.
static TARGET: AtomicI32 = AtomicI32::new(-1);

/// Lies between the look at the length and the mapping.
// SAFETY: the signature is that of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn fstatfs(descriptor: i32, out: *mut libc::statfs) -> i32 {
    // ORDERING: Relaxed: one thread.
    let target = TARGET.swap(-1, Ordering::Relaxed);
    if target >= 0 {
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::ftruncate(target, 0) }, 0);
        // SAFETY: as above.
        let sealed =
            unsafe { libc::fcntl(target, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) };
        assert_eq!(sealed, 0);
    }
    // SAFETY: the caller's arguments are passed on.
    let result = unsafe { libc::syscall(libc::SYS_fstatfs, descriptor, out) };
    i32::try_from(result).unwrap()
}

#[test]
fn memory_that_is_truncated_and_sealed_late_is_not_mapped() {
    // SAFETY: the name ends with a zero byte.
    let descriptor =
        unsafe { libc::memfd_create(c"late".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    assert!(descriptor >= 0);
    // SAFETY: the descriptor was made above and has no other owner.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::fallocate(descriptor.as_raw_fd(), 0, 0, 32_768) }, 0);

    // ORDERING: Relaxed: one thread.
    TARGET.store(descriptor.as_raw_fd(), Ordering::Relaxed);
    let error = Options::new().attach_fd(descriptor, Duration::ZERO).unwrap_err();
    assert_eq!(TARGET.load(Ordering::Relaxed), -1, "fstatfs was not called");
    assert!(matches!(error, Error::NotSealed), "{error}");
}
