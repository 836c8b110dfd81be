//! What can go wrong when a segment is made, attached to or removed.

use core::time::Duration;

use crate::Errno;

/// Why a segment could not be made, attached to or removed.
///
/// A creation that fails leaves neither a name nor memory behind. What the kernel said is the
/// [`source`](core::error::Error::source) of an error, and not in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name cannot be the name of a segment.
    #[error(transparent)]
    BadName(#[from] NameFault),
    /// A segment of this name exists.
    #[error(
        "a segment of this name exists: attach to it and, where a ring's role is held by a dead process, take that \
         over; or remove it with `ring_shm::unlink` (or `rm` its file in /dev/shm), create it anew and restart \
         every process that still has the old one"
    )]
    Exists,
    /// No segment of this name is there, or was there during the whole wait of an attach.
    #[error(
        "no segment of this name: check the name, and that its creator has started; if it was to be removed, \
         it is gone already"
    )]
    Missing,
    /// The segment exists, and its creator did not publish it within the time-out.
    #[error(
        "the segment exists but was not published within {timeout:?}: wait longer if its creator still runs, \
         else unlink it and create it anew"
    )]
    NotReady {
        /// How long the caller was willing to wait.
        timeout: Duration,
    },
    /// The name belongs to another segment now, which was left alone.
    #[error(
        "the name belongs to another segment by now: nothing to remove, whoever made the new one uses it"
    )]
    Replaced,
    /// The file is smaller than its header, or smaller than its header says. It was not touched beyond its
    /// end.
    #[error(
        "the file has {file_bytes} bytes and must have {needed_bytes}: it is no segment, or somebody truncated it: use another name, or create it anew"
    )]
    TooSmall {
        /// Bytes that the file has.
        file_bytes: u64,
        /// Bytes that the header takes or claims.
        needed_bytes: u64,
    },
    /// The file does not begin as a segment does.
    #[error("the file begins with {found:#018x}, which is no segment of this crate: use another name")]
    WrongMagic {
        /// Its first word.
        found: u64,
    },
    /// The segment has a layout that this version of the crate does not know.
    #[error("the segment has layout version {found}, this program knows {expected}: build both sides alike")]
    WrongVersion {
        /// In the header.
        found: u64,
        /// Of this program.
        expected: u64,
    },
    /// The segment was made by a program of another architecture.
    #[error(
        "the segment was made for architecture {found:#x}, this program has {expected:#x}: build both sides alike"
    )]
    WrongArchitecture {
        /// In the header: byte order, pointer width in bits << 8, cache-line bytes << 16.
        found: u64,
        /// Of this program.
        expected: u64,
    },
    /// A header field says what no creator writes, or the file has lost memory that its creator had reserved.
    #[error(
        "the segment's {field} is {found}, as no creator leaves it: the segment is spoiled, create it anew"
    )]
    Corrupted {
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: u64,
    },
    /// The descriptor or the name is not a file of shared memory.
    #[error("not shared memory: a segment is a memfd, or a file in /dev/shm (tmpfs) or on a hugetlbfs mount")]
    NotSharedMemory,
    /// The segment of this name belongs to a user whom this process has no reason to trust. It was not mapped.
    #[error(
        "the segment belongs to user {uid}, who could truncate it and kill this process: if that is whom you \
         share it with, say so with `Options::trust_owner({uid})`, else use another name"
    )]
    ForeignOwner {
        /// Who owns the file.
        uid: u32,
    },
    /// The file behind the descriptor can be truncated by everybody who has it, as a named segment's can.
    #[error(
        "the file is not sealed, so its sender could truncate it and kill this process: have it made by \
         `Options::create_anonymous`, or sealed with F_SEAL_SHRINK and F_SEAL_GROW; attach to a named segment by \
         its name"
    )]
    NotSealed,
    /// There is no room for the segment, in its file system, in the machine or in what this process may use.
    #[error("no space for {bytes} bytes: {}", room(*.source))]
    NoSpace {
        /// What the segment would take.
        bytes: u64,
        /// What the kernel said, or would say.
        source: Errno,
    },
    /// This user may not do that.
    #[error(
        "no permission to {operation}: run as its owner, or, to open it, have its creator give it a mode like 0660"
    )]
    NoPermission {
        /// What was refused.
        operation: &'static str,
        /// What the kernel said.
        source: Errno,
    },
    /// Too few free huge pages, or no way to get at them.
    #[error(
        "no 2 MiB pages for {bytes} bytes: raise vm.nr_hugepages (a named segment also needs a \
         hugetlbfs mount that this user can write), or ask for `Pages::Huge2MiBIfAvailable`"
    )]
    NoHugePages {
        /// What the segment would take.
        bytes: u64,
        /// What the kernel said.
        source: Errno,
    },
    /// The memory could not be locked, and the caller had made that a condition.
    #[error(
        "could not lock {bytes} bytes in memory: raise RLIMIT_MEMLOCK (`ulimit -l`), or grant \
         CAP_IPC_LOCK"
    )]
    LockedMemoryLimit {
        /// What was to be locked.
        bytes: u64,
        /// What the kernel said.
        source: Errno,
    },
    /// The ring in the segment could not be made or attached to.
    #[error(transparent)]
    Ring(#[from] ring_core::Error),
    /// A system call failed for another reason.
    #[error("could not {operation}: {}", remedy(*.source))]
    Os {
        /// What was tried.
        operation: &'static str,
        /// What the kernel said.
        source: Errno,
    },
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameFault {
    /// Nothing, or a slash alone.
    #[error("the name is empty: give it at least one character")]
    Empty,
    /// More bytes than a file name can have.
    #[error("the name is longer than 255 bytes: shorten it")]
    TooLong,
    /// A slash after the first character.
    #[error("the name has a slash within: only a leading one is allowed, since names have no directories")]
    Slash,
    /// A zero byte.
    #[error("the name holds a zero byte: remove that")]
    Zero,
    /// "." or "..".
    #[error("`.` and `..` are directories: choose another name")]
    Dots,
}

/// What to do where there is no room.
fn room(errno: Errno) -> &'static str {
    match errno {
        Errno::FBIG => "ask for less, or raise RLIMIT_FSIZE (`ulimit -f`) if that is the limit",
        _ => "free some memory or /dev/shm, enlarge it, or ask for less",
    }
}

/// What to do about an error that no variant tells.
fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::MFILE => "close some files, or raise RLIMIT_NOFILE (`ulimit -n`)",
        Errno::NFILE => "have some program close its files, or raise fs.file-max",
        Errno::NOMEM => "free some memory, or raise RLIMIT_AS (`ulimit -v`) or vm.max_map_count",
        Errno::NOENT => "mount a tmpfs on /dev/shm",
        Errno::ROFS => "mount the file system writable",
        Errno::FAULT => "somebody truncated the segment, create it anew",
        Errno::NOSYS => "allow the call in the sandbox of this process",
        _ => "see what the kernel said, which is the source of this error",
    }
}

impl Error {
    /// An error of the call that does `operation`, sorted by its number.
    pub(crate) fn os(operation: &'static str, source: Errno) -> Self {
        match source {
            Errno::ACCES | Errno::PERM => Self::NoPermission { operation, source },
            _ => Self::Os { operation, source },
        }
    }
}
