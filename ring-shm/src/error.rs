//! What can go wrong when a segment is made, attached to, passed on or removed.

use core::fmt;
use core::time::Duration;

use ring_core::{Kind, Role};

use crate::Errno;
use crate::report::Size;

/// Why a segment could not be made, attached to, passed on or removed.
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
        "a segment of this name exists: attach to it, which takes the role of a dead process over, or have \
         `Options::open_ring` do the one or the other; or remove it with `ring_shm::unlink` or `ring-shm clean`, \
         create it anew and restart every process that still has the old one"
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
         else create it anew"
    )]
    NotReady {
        /// How long the caller was willing to wait.
        timeout: Duration,
    },
    /// The name belongs to another segment now, which was left alone.
    #[error(
        "the name belongs to another segment by now, which was left alone: if that is the one you want, look it up \
         anew"
    )]
    Replaced,
    /// The file is smaller than its header, or smaller than its header says. It was not touched beyond its
    /// end.
    #[error(
        "the file has {file_bytes} bytes and must have {needed_bytes}, so it is no segment, or somebody truncated \
         it: use another name, or create it anew"
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
        "no permission to {operation}: run as its owner, or, to open it, have its creator give it a mode like 0660, be in \
         his group, and name him with `Options::trust_owner`"
    )]
    NoPermission {
        /// What was refused.
        operation: &'static str,
        /// What the kernel said.
        source: Errno,
    },
    /// Too few free huge pages, or no way to get at them.
    #[error("no {} pages for {bytes} bytes: {}", Size(*.page_bytes), huge_pages(*.page_bytes))]
    NoHugePages {
        /// What the segment would take.
        bytes: u64,
        /// Size of the pages.
        page_bytes: u64,
        /// What the kernel said.
        source: Errno,
    },
    /// The machine has no memory on this NUMA node, or this process may not use it.
    #[error(
        "no memory on node {node} for this process: /sys/devices/system/node/has_memory lists the nodes that have \
         some, Mems_allowed_list in /proc/self/status those that it may use"
    )]
    NoSuchNode {
        /// The node asked for.
        node: u32,
    },
    /// The kernel cannot bind memory to a NUMA node, or a sandbox forbids it.
    #[error(
        "could not bind memory to node {node}: allow `mbind` in the sandbox of this process (of Docker: `--cap-add \
         SYS_NICE`), or ask for no node where the kernel has no NUMA policies (huge pages need Linux 5.14)"
    )]
    CannotBind {
        /// The node asked for.
        node: u32,
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
    /// Somebody else has claimed the role.
    #[error("the {role} is taken{}: end that process, or wait until it ends", By(*.process))]
    RoleTaken {
        /// The role.
        role: Role,
        /// The process that has it, as it says itself and by the number in its own process namespace. Until it has attached
        /// to the ring: 0, or the process that was killed before it.
        process: u32,
    },
    /// The ring in the segment has no such role.
    #[error("a ring of this kind has no {role}: take another role, or check the name of the segment")]
    NoSuchRole {
        /// The role.
        role: Role,
    },
    /// A role of an anonymous segment can only be claimed on a descriptor of its own, and that comes from /proc.
    #[error(
        "cannot open an anonymous segment once more without /proc: mount it, or have a server pass the role, which \
         needs none"
    )]
    NoProc {
        /// What the kernel said.
        source: Errno,
    },
    /// The path is longer than the kernel takes for a socket.
    #[error(
        "the socket's path has {bytes} bytes and can have 107: use a shorter one, or one relative to the working \
         directory"
    )]
    SocketPathTooLong {
        /// Bytes of the path.
        bytes: usize,
    },
    /// Something is at the socket's path that is not the rest of a server that has ended. It was left alone.
    #[error(
        "the socket's path is taken: stop the server that listens there, remove what is there if it is no socket, \
         or use another path"
    )]
    SocketInUse,
    /// Another process did not do its part within the time-out.
    #[error("could not {operation} in time: {}", delay(*.source))]
    TimedOut {
        /// What was waited for.
        operation: &'static str,
        /// What the kernel said last.
        source: Errno,
    },
    /// The process at the other end of a connection is not of the user that was required.
    #[error(
        "the other side runs as user {uid}, who is not the one that `Options::peer_user` asks for: see who is there"
    )]
    ForeignPeer {
        /// Its effective user.
        uid: u32,
    },
    /// The server at the path has another kind of ring.
    #[error("the server has a ring of kind {found}: take a side of that, or check the path")]
    OtherRing {
        /// What it has.
        found: Kind,
    },
    /// The other side of a connection is gone.
    #[error("the other side closed the connection, or ended: see why, then connect again")]
    Disconnected,
    /// The other side of a connection sent what it never should. Descriptors that came with it were closed.
    #[error(
        "the other side sent {fault}: build both sides alike, and see that only these two use the socket"
    )]
    BadMessage {
        /// What is wrong with it.
        fault: &'static str,
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
    /// It begins as names do under which segments are made.
    #[error("names that begin with `.ring-shm-` are those of segments that are being made: choose another")]
    Reserved,
    /// A zero byte.
    #[error("the name holds a zero byte: remove that")]
    Zero,
    /// "." or "..".
    #[error("`.` and `..` are directories: choose another name")]
    Dots,
}

/// Who has a role, if it is known.
struct By(u32);

impl fmt::Display for By {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            process => write!(formatter, " by process {process}"),
        }
    }
}

/// What to do where there is no room.
fn room(errno: Errno) -> &'static str {
    match errno {
        Errno::FBIG => "ask for less, or raise RLIMIT_FSIZE (`ulimit -f`) if that is the limit",
        Errno::NOMEM => {
            "free some memory, raise RLIMIT_AS (`ulimit -v`) if that is the limit, or ask for less"
        }
        _ => "free some memory or /dev/shm, enlarge it, or ask for less",
    }
}

/// What to do about another process that is late.
fn delay(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => "nothing is at the path: check it, and that the server has started",
        Errno::CONNREFUSED => "nobody listens at the path: check it, and start the server again",
        Errno::ACCES => "a server began to open its socket and did not end: see whether it still runs",
        _ => "see whether the other process still runs and is not stopped, or wait longer",
    }
}

/// How to get huge pages.
fn huge_pages(page_bytes: u64) -> &'static str {
    match page_bytes {
        0x4000_0000 => {
            "raise /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages, or, where memory is too scattered for \
             that, boot with `hugepagesz=1G hugepages=N` (a named segment also needs a hugetlbfs mount with \
             pagesize=1G that this user can write), or ask for `Pages::Huge1GiBIfAvailable`"
        }
        _ => {
            "raise /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages, which mostly is vm.nr_hugepages (a named \
             segment also needs a hugetlbfs mount with pagesize=2M that this user can write), or ask for \
             `Pages::Huge2MiBIfAvailable`"
        }
    }
}

/// What to do about an error that no variant tells.
fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::MFILE => "close some files, or raise RLIMIT_NOFILE (`ulimit -n`)",
        Errno::NFILE => "have some program close its files, or raise fs.file-max",
        Errno::NOMEM => "free some memory, or raise RLIMIT_AS (`ulimit -v`) or vm.max_map_count",
        Errno::NOENT => "make the directory that is missing; /dev/shm takes a tmpfs mounted on it",
        Errno::PROTOTYPE => "another kind of socket is at the path: check the path",
        Errno::TOOMANYREFS => {
            "have receivers take what was sent to them, or raise RLIMIT_NOFILE (`ulimit -n`)"
        }
        Errno::ROFS => "mount the file system writable",
        Errno::FAULT => "somebody truncated the segment, create it anew",
        Errno::NOSYS => "allow the call in the sandbox of this process",
        _ => "see what the kernel said, which is the source of this error",
    }
}

impl Error {
    /// Whether it passes when somebody gives a role back.
    pub(crate) fn is_occupied(&self) -> bool {
        use ring_core::Error::{Taken, TooManyParticipants};
        matches!(self, Self::RoleTaken { .. } | Self::Ring(Taken { .. } | TooManyParticipants { .. }))
    }

    /// An error of the call that does `operation`, sorted by its number.
    pub(crate) fn os(operation: &'static str, source: Errno) -> Self {
        match source {
            Errno::ACCES | Errno::PERM => Self::NoPermission { operation, source },
            _ => Self::Os { operation, source },
        }
    }
}
