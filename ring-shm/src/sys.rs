//! System calls, each behind a thin wrapper that returns `Result<_, Errno>` and goes on after a signal.
//!
//! # Safety
//!
//! Every foreign call of this crate is here. A [`Descriptor`] is open for as long as it lives, a `&CStr` ends
//! in a zero byte, and structures that the kernel fills are plain integers for which all zeroes are valid:
//! the wrappers rest on nothing else, except where a wrapper is itself `unsafe`.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_long};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::time::Duration;

use crate::pages::PageSize;
use crate::{Descriptor, Errno};

mod directory;
mod fork;
mod lock;

pub(crate) use directory::{each_name, open_in_to_read, rename_in};
pub(crate) use fork::{Mutex, at_fork, close_number};
pub(crate) use lock::{LockKind, is_byte_locked, lock_byte, open_again, unlock_byte};
pub(crate) mod numa;
#[cfg(feature = "std")]
pub(crate) mod socket;

/// What `fstat` tells, as far as a segment needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) identity: Identity,
    pub(crate) is_regular: bool,
    /// How many names the file has.
    pub(crate) names: u64,
    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "sockets need std"))]
    pub(crate) is_socket: bool,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) file_bytes: u64,
    /// When it last got its length or was written by a call, since 1970.
    pub(crate) modified: Duration,
    /// Bytes that have memory behind them.
    pub(crate) reserved_bytes: u64,
}

impl Status {
    pub(crate) fn has_holes(&self) -> bool {
        self.reserved_bytes < self.file_bytes
    }
}

/// Tells one file from every other that exists at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

/// What a descriptor's file system is, and the size of its pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSystem {
    pub(crate) kind: FileSystemKind,
    pub(crate) page_bytes: u64,
}

/// The file systems that shared memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystemKind {
    Tmpfs,
    Hugetlbfs,
    Other,
}

/// Seals that fix the length of a file.
const LENGTH_SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

/// The number that the last failed call of this thread left.
fn errno() -> Errno {
    // SAFETY: the C library returns the address of this thread's own errno.
    let address = unsafe { libc::__errno_location() };
    // SAFETY: that address is valid for as long as the thread runs.
    Errno(unsafe { *address })
}

/// Calls until no signal interrupts; −1 is an error.
fn call(mut function: impl FnMut() -> c_int) -> Result<c_int, Errno> {
    loop {
        match function() {
            -1 => match errno() {
                Errno::INTR => {}
                error => return Err(error),
            },
            value => return Ok(value),
        }
    }
}

/// The C library's message for an error number, in `buffer`.
pub(crate) fn error_message(error: Errno, buffer: &mut [u8; 128]) -> Option<&str> {
    // SAFETY: the buffer is valid for writes of the length given.
    let result = unsafe { libc::strerror_r(error.0, buffer.as_mut_ptr().cast::<c_char>(), buffer.len()) };
    if result != 0 {
        return None;
    }
    CStr::from_bytes_until_nul(buffer).ok()?.to_str().ok()
}

pub(crate) fn open_directory(path: &CStr) -> Result<Descriptor, Errno> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path ends in a zero byte.
    call(|| unsafe { libc::open(path.as_ptr(), flags) }).map(Descriptor::owning)
}

pub(crate) fn open_to_read(path: &CStr) -> Result<Descriptor, Errno> {
    // SAFETY: the path ends in a zero byte.
    call(|| unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }).map(Descriptor::owning)
}

/// Opens an existing file in a directory for reading and writing, without following a link or waiting for a
/// pipe.
pub(crate) fn open_in(directory: &Descriptor, name: &CStr) -> Result<Descriptor, Errno> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // SAFETY: the directory is open and the name ends in a zero byte.
    call(|| unsafe { libc::openat(directory.raw(), name.as_ptr(), flags) }).map(Descriptor::owning)
}

/// Makes a file that must not exist yet.
pub(crate) fn create_in(directory: &Descriptor, name: &CStr, mode: u32) -> Result<Descriptor, Errno> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the directory is open and the name ends in a zero byte.
    call(|| unsafe { libc::openat(directory.raw(), name.as_ptr(), flags, mode) }).map(Descriptor::owning)
}

pub(crate) fn unlink_in(directory: &Descriptor, name: &CStr) -> Result<(), Errno> {
    // SAFETY: the directory is open and the name ends in a zero byte.
    call(|| unsafe { libc::unlinkat(directory.raw(), name.as_ptr(), 0) }).map(drop)
}

/// Anonymous memory that behaves as a file and can be sealed.
pub(crate) fn anonymous_file(name: &CStr, pages: PageSize) -> Result<Descriptor, Errno> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | pages.memfd_flags();
    // SAFETY: the name ends in a zero byte.
    call(|| unsafe { libc::memfd_create(name.as_ptr(), flags) }).map(Descriptor::owning)
}

/// Fixes the length of an anonymous file for ever, whoever has it open. What it holds can still be written,
/// and no seal that would forbid that can be added.
pub(crate) fn seal(descriptor: &Descriptor) -> Result<(), Errno> {
    let seals = LENGTH_SEALS | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open.
    call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_ADD_SEALS, seals) }).map(drop)
}

/// Whether the length of a file is fixed for ever. A file that cannot be sealed is not.
pub(crate) fn is_sealed(descriptor: &Descriptor) -> bool {
    // SAFETY: the descriptor is open.
    call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_GET_SEALS) })
        .is_ok_and(|seals| seals & LENGTH_SEALS == LENGTH_SEALS)
}

pub(crate) fn close(descriptor: &mut Descriptor) {
    // SAFETY: the descriptor is open, and its owner, which is being dropped, does not use it again. An
    // interrupted close has closed it too.
    let _ = unsafe { libc::close(descriptor.raw()) };
}

/// A second number for the same open file, which a program started by `exec` keeps.
pub(crate) fn duplicate_for_child(descriptor: &Descriptor) -> Result<Descriptor, Errno> {
    // Not a number that the child's standard streams will want.
    const LOWEST: c_int = 3;
    // SAFETY: the descriptor is open.
    call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_DUPFD, LOWEST) }).map(Descriptor::owning)
}

/// A second number for one description, and its locks.
pub(crate) fn duplicate(descriptor: &Descriptor) -> Result<Descriptor, Errno> {
    // SAFETY: reads no memory; the number that comes back belongs to nobody else.
    call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_DUPFD_CLOEXEC, 0) }).map(Descriptor::owning)
}

pub(crate) fn close_on_exec(descriptor: &Descriptor) -> Result<(), Errno> {
    // SAFETY: the descriptor is open.
    call(|| unsafe { libc::fcntl(descriptor.raw(), libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

pub(crate) fn set_mode(descriptor: &Descriptor, mode: u32) -> Result<(), Errno> {
    // SAFETY: the descriptor is open.
    call(|| unsafe { libc::fchmod(descriptor.raw(), mode) }).map(drop)
}

/// Makes the file `bytes` long with memory behind every one of them.
pub(crate) fn reserve(descriptor: &Descriptor, bytes: usize) -> Result<(), Errno> {
    let length = libc::off_t::try_from(bytes).map_err(|_| Errno::FBIG)?;
    // SAFETY: the descriptor is open.
    call(|| unsafe { libc::fallocate(descriptor.raw(), 0, 0, length) }).map(drop)
}

/// Bytes beyond which this process may make no file longer; who tries is sent a signal that kills it.
pub(crate) fn file_limit_bytes() -> Result<u64, Errno> {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the structure is writable.
    call(|| unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) })?;
    // SAFETY: an `rlimit` is plain integers: zeroes are valid, and the kernel wrote the rest.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    #[allow(clippy::useless_conversion)] // The field has another width on some targets.
    Ok(if limit == libc::RLIM_INFINITY { u64::MAX } else { u64::from(limit) })
}

/// Reads into `buffer`; 0 at the end of the file.
pub(crate) fn read(descriptor: &Descriptor, buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        // SAFETY: the descriptor is open and the buffer valid for writes of its length.
        let count = unsafe { libc::read(descriptor.raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(count) {
            Ok(count) => return Ok(count),
            Err(_) if errno() == Errno::INTR => {}
            Err(_) => return Err(errno()),
        }
    }
}

/// Reads the beginning of a file into `buffer`, which stays as it is beyond the file's end. Where the file has a
/// hole this reads zeros and allocates nothing.
pub(crate) fn read_start(descriptor: &Descriptor, buffer: &mut [u8]) -> Result<(), Errno> {
    loop {
        // SAFETY: the descriptor is open and the buffer valid for writes of its length.
        let count = unsafe { libc::pread(descriptor.raw(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match count {
            0.. => return Ok(()),
            _ if errno() == Errno::INTR => {}
            _ => return Err(errno()),
        }
    }
}

pub(crate) fn status(descriptor: &Descriptor) -> Result<Status, Errno> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the descriptor is open and the structure writable.
    call(|| unsafe { libc::fstat(descriptor.raw(), status.as_mut_ptr()) })?;
    // SAFETY: a `stat` is plain integers: zeroes are valid, and the kernel wrote the rest.
    Ok(Status::from(&unsafe { status.assume_init() }))
}

/// The status of a file in a directory, not of what it may link to.
pub(crate) fn status_in(directory: &Descriptor, name: &CStr) -> Result<Status, Errno> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the directory is open, the name ends in a zero byte and the structure is writable.
    call(|| unsafe { libc::fstatat(directory.raw(), name.as_ptr(), status.as_mut_ptr(), flags) })?;
    // SAFETY: a `stat` is plain integers: zeroes are valid, and the kernel wrote the rest.
    Ok(Status::from(&unsafe { status.assume_init() }))
}

impl From<&libc::stat> for Status {
    // The fields have another width on some targets.
    #[allow(clippy::unnecessary_cast)]
    fn from(status: &libc::stat) -> Self {
        // `st_blocks` counts 512 bytes on every file system.
        Self {
            identity: Identity { device: status.st_dev as u64, inode: status.st_ino as u64 },
            is_regular: status.st_mode & libc::S_IFMT == libc::S_IFREG,
            names: status.st_nlink as u64,
            is_socket: status.st_mode & libc::S_IFMT == libc::S_IFSOCK,
            mode: status.st_mode & 0o7777,
            owner: status.st_uid,
            file_bytes: u64::try_from(status.st_size).unwrap_or(0),
            modified: Duration::new(
                u64::try_from(status.st_mtime).unwrap_or(0),
                u32::try_from(status.st_mtime_nsec).unwrap_or(0),
            ),
            reserved_bytes: u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(512),
        }
    }
}

pub(crate) fn file_system(descriptor: &Descriptor) -> Result<FileSystem, Errno> {
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the descriptor is open and the structure writable.
    call(|| unsafe { libc::fstatfs(descriptor.raw(), found.as_mut_ptr()) })?;
    // SAFETY: a `statfs` is plain integers: zeroes are valid, and the kernel wrote the rest.
    let found = unsafe { found.assume_init() };
    // The kind is a 32-bit number that some targets keep in a signed field.
    let kind = match found.f_type & 0xffff_ffff {
        kind if kind == libc::TMPFS_MAGIC & 0xffff_ffff => FileSystemKind::Tmpfs,
        kind if kind == libc::HUGETLBFS_MAGIC & 0xffff_ffff => FileSystemKind::Hugetlbfs,
        _ => FileSystemKind::Other,
    };
    Ok(FileSystem { kind, page_bytes: u64::try_from(found.f_bsize).unwrap_or(0) })
}

/// Bytes of memory and swap space that the machine has in all.
pub(crate) fn memory_bytes() -> Result<u64, Errno> {
    let mut found = MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: the structure is writable.
    call(|| unsafe { libc::sysinfo(found.as_mut_ptr()) })?;
    // SAFETY: a `sysinfo` is plain integers: zeroes are valid, and the kernel wrote the rest.
    let found = unsafe { found.assume_init() };
    #[allow(clippy::useless_conversion)] // The fields have another width on some targets.
    Ok(u64::from(found.totalram)
        .saturating_add(u64::from(found.totalswap))
        .saturating_mul(found.mem_unit.into()))
}

/// Maps the first `bytes` of a file, shared, at an address that the kernel chooses.
pub(crate) fn map(descriptor: &Descriptor, bytes: usize) -> Result<NonNull<u8>, Errno> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the descriptor is open, and a mapping where the kernel finds room replaces no other.
    let address =
        unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, descriptor.raw(), 0) };
    if address == libc::MAP_FAILED {
        return Err(errno());
    }
    NonNull::new(address.cast()).ok_or(Errno::NOMEM)
}

/// Ends a mapping.
///
/// # Safety
///
/// `map` returned the address for this length, and nobody uses the bytes again.
pub(crate) unsafe fn unmap(address: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller promises that the mapping is this one and no longer used.
    let _ = unsafe { libc::munmap(address.as_ptr().cast(), bytes) };
}

/// Gives every page of a mapping an entry in the page table that can be written. What the pages hold is
/// unchanged.
pub(crate) fn populate(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the call writes nothing; for addresses that are not mapped it reports an error.
    call(|| unsafe { libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) }).map(drop)
}

/// A core dump of this process does without a mapping.
pub(crate) fn leave_out_of_core_dumps(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the call writes nothing; for addresses that are not mapped it reports an error.
    call(|| unsafe { libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_DONTDUMP) }).map(drop)
}

/// Children of this process do without a mapping.
///
/// In them nothing is at its addresses, until they map something there: handles that lead there are for the parent.
pub(crate) fn leave_out_of_forks(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: in this process the mapping stays as it is; for addresses that are not mapped the call reports an error.
    call(|| unsafe { libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_DONTFORK) }).map(drop)
}

/// Keeps the pages of a mapping in memory: all of them, which makes them present.
pub(crate) fn lock(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the call writes nothing; for addresses that are not mapped it reports an error.
    call(|| unsafe { libc::mlock(address.as_ptr().cast(), bytes) }).map(drop)
}

/// Keeps the pages of a mapping in memory, each from its first touch on.
pub(crate) fn lock_what_is_touched(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    let flags = libc::MLOCK_ONFAULT;
    // SAFETY: the call writes nothing; for addresses that are not mapped it reports an error.
    call(|| unsafe { libc::mlock2(address.as_ptr().cast(), bytes, flags) }).map(drop)
}

/// The user whose rights this process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call has no conditions.
    unsafe { libc::geteuid() }
}

pub(crate) fn process_id() -> c_int {
    // SAFETY: the call has no conditions.
    unsafe { libc::getpid() }
}

/// Time since some fixed point, unaffected by whoever sets the date.
pub(crate) fn monotonic() -> Duration {
    clock(libc::CLOCK_MONOTONIC)
}

/// Time since 1970, as this machine has it.
pub(crate) fn since_1970() -> Duration {
    clock(libc::CLOCK_REALTIME)
}

/// One of the clocks that Linux always has.
fn clock(which: libc::clockid_t) -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable, and the clock is there, so the call cannot fail.
    let _ = unsafe { libc::clock_gettime(which, &raw mut now) };
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// A length of time as the kernel takes it: the longest it knows, if it is longer.
fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos() as c_long,
    }
}

/// Sleeps for a while, less if a signal comes: the caller looks at the clock.
pub(crate) fn sleep(pause: Duration) {
    let request = timespec(pause);
    // SAFETY: the request is readable, and no remainder is asked for.
    let _ = unsafe { libc::nanosleep(&raw const request, ptr::null_mut()) };
}
