//! How a segment is made or attached to.

use core::time::Duration;

use crate::{Descriptor, Error, NewSegment, Pages, Segment, attach, create};

/// Makes segments and attaches to them.
///
/// ```
/// use core::time::Duration;
/// use ring_shm::{Lock, Options, Region};
///
/// # let name = format!("doc-options-{}", std::process::id());
/// let options = Options::new().lock(Lock::Never).mode(0o660);
/// let new = options.create(&name, 64 * 1024)?;
/// // ... make a ring in `new`, then:
/// let segment = new.publish();
///
/// // In another process:
/// let attached = options.attach(&name, Duration::from_secs(1))?;
/// assert_eq!(attached.bytes(), 64 * 1024);
/// assert_ne!(attached.base(), segment.base());
///
/// segment.unlink()?;
/// # Ok::<(), ring_shm::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub(crate) pages: Pages,
    pub(crate) numa_node: Option<u32>,
    pub(crate) prefault: bool,
    pub(crate) lock: Lock,
    pub(crate) mode: u32,
    pub(crate) trusted_owner: Option<u32>,
    pub(crate) peer_user: Option<u32>,
    pub(crate) in_core_dumps: bool,
    pub(crate) across_forks: bool,
}

/// Whether this process keeps the segment from being swapped out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// No.
    Never,
    /// If the limits of the process permit it; the report says so.
    IfAllowed,
    /// Yes, or [`Error::LockedMemoryLimit`].
    Required,
}

impl Options {
    /// The defaults that each setter names.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pages: Pages::Base,
            numa_node: None,
            prefault: true,
            lock: Lock::IfAllowed,
            mode: 0o600,
            trusted_owner: None,
            peer_user: None,
            in_core_dumps: false,
            across_forks: true,
        }
    }

    /// The pages to make a segment of. Default: [`Pages::Base`]. Whoever attaches gets those of the creator.
    #[must_use]
    pub const fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// The NUMA node whose memory to make a segment of. Default: that of the CPU on which the kernel finds this thread,
    /// or what the thread's own policy says.
    ///
    /// The [`Report`](crate::Report) then tells how many pages lie there, which it asks of the kernel each time: some
    /// 0.3 µs a page. No page comes from another node: where this one has too little memory, creating fails. Huge
    /// pages come from the node's own pool, which /sys/devices/system/node/node*N*/hugepages sets, and what binds them
    /// is that the creator makes them present, even without [`prefault`](Self::prefault).
    ///
    /// Whoever attaches gets what the creator chose, and with this option only counts: no page moves, and none lies on
    /// a node that does not exist.
    ///
    /// ```
    /// use ring_shm::{Error, Nodes, Options};
    ///
    /// match Options::new().numa_node(0).create_anonymous(10_000) {
    ///     Ok(new) => match new.report().nodes {
    ///         Nodes::Counted { node, there, elsewhere, .. } => assert_eq!((node, there, elsewhere), (0, 3, 0)),
    ///         other => println!("{other}"),
    ///     },
    ///     // A sandbox, or a kernel that knows no nodes.
    ///     Err(Error::CannotBind { .. }) => {}
    ///     Err(error) => return Err(error),
    /// }
    /// assert_eq!(Options::new().numa_node(9999).create_anonymous(1).unwrap_err(), Error::NoSuchNode { node: 9999 });
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub const fn numa_node(mut self, node: u32) -> Self {
        self.numa_node = Some(node);
        self
    }

    /// Whether to make every page present in this process now. Default: yes.
    ///
    /// Each side has a page table of its own, and without this its first touch of every page is a fault: some 2 µs on
    /// a virtual machine, for a page of any size, in the middle of a push or a pop. Prefaulting takes half of that a
    /// page. The memory is reserved in any case. To leave it out pays where somebody attaches to a large segment and
    /// uses a part of it. Locking then holds each page from its first touch on.
    #[must_use]
    pub const fn prefault(mut self, on: bool) -> Self {
        self.prefault = on;
        self
    }

    /// Whether to lock the segment in memory, for this process. Default: [`Lock::IfAllowed`].
    #[must_use]
    pub const fn lock(mut self, lock: Lock) -> Self {
        self.lock = lock;
        self
    }

    /// Whether a core dump of this process contains the segment. Default: no. To write 1 GiB takes seconds, and as long
    /// does the kernel take to say that the process is dead.
    #[must_use]
    pub const fn in_core_dumps(mut self, on: bool) -> Self {
        self.in_core_dumps = on;
        self
    }

    /// Whether a child that this process forks has the segment mapped as well, at the same address. Default: yes.
    ///
    /// Without it the child's copies of the segment and of handles in it lead to nothing, or to what the child maps
    /// there later: it must neither use nor drop them. With it a use spoils what the parent does.
    #[must_use]
    pub const fn across_forks(mut self, on: bool) -> Self {
        self.across_forks = on;
        self
    }

    /// Who may open a new segment, as for `chmod`; the umask does not apply. Default: `0o600`, this user
    /// alone.
    ///
    /// Whoever attaches needs to read and to write: 0o660, 0o666; 0o644 lets nobody else in. Whoever may open a segment
    /// can write to it, and can truncate it, which kills everyone who touches it.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = mode & 0o777;
        self
    }

    /// The user, beside this one and root, whose named segments [`attach`](Self::attach) accepts. Default: nobody.
    ///
    /// Where two users share a segment, the creator, in whose group the other is, gives it the mode `0o660`, and
    /// the other names the creator here. The owner of a segment can truncate it,
    /// which kills everyone who touches it: for a user who is not trusted there are anonymous segments.
    ///
    /// ```
    /// use core::time::Duration;
    /// use ring_shm::{Error, Options};
    ///
    /// # const FEED: u32 = 1234;
    /// let options = Options::new().trust_owner(FEED);
    /// assert_eq!(options.attach("/no-such-feed", Duration::ZERO).unwrap_err(), Error::Missing);
    /// ```
    #[must_use]
    pub const fn trust_owner(mut self, uid: u32) -> Self {
        self.trusted_owner = Some(uid);
        self
    }

    /// The user that the process at the other end of a socket must run as, for [`listen`](Self::listen) and
    /// [`connect_ring`](Self::connect_ring); the kernel says who it is. Default: anybody.
    ///
    /// A server's socket lets in whom its [`mode`](Self::mode) lets in. A client's segment is checked whoever sent it; to
    /// know the server matters where what it writes into the ring does.
    #[must_use]
    pub const fn peer_user(mut self, uid: u32) -> Self {
        self.peer_user = Some(uid);
        self
    }

    /// Makes a named segment with `bytes` of data, all zero, that nobody can attach to before it is
    /// published.
    ///
    /// The name is "x" or "/x", as for `shm_open`. The segment is a file in /dev/shm, or, with huge pages, on
    /// the first hugetlbfs mount of the mount table that has pages of that size and lets this user make a file.
    /// None of these places may have the name yet. All its memory is reserved here, and every page made present in this
    /// process, unless [`prefault`](Self::prefault) says otherwise, so that no later access faults. It lives until its
    /// name is removed and its last user is gone.
    ///
    /// A segment that does not fit the memory that the kernel calls available is [`Error::NoSpace`]. Only the
    /// limit of a control group is not foreseen: the kernel kills a process of the group that goes beyond it.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`], [`Error::Exists`], [`Error::NoSpace`], [`Error::NoPermission`],
    /// [`Error::NoHugePages`], [`Error::NoSuchNode`], [`Error::CannotBind`], [`Error::LockedMemoryLimit`],
    /// [`Error::NotSharedMemory`] if /dev/shm is no tmpfs, [`Error::Os`]. A creation that fails leaves nothing behind.
    pub fn create(&self, name: &str, bytes: usize) -> Result<NewSegment, Error> {
        create::named(self, name, bytes)
    }

    /// Makes a segment without a name, with `bytes` of data, all zero. Others reach it through its
    /// descriptor.
    ///
    /// It lives as long as its last user. It is sealed: nobody who gets the descriptor can change its length, so
    /// this is the segment to share with a peer that is not trusted. (What such a peer still can do:
    /// [`Segment`].)
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`], [`Error::NoHugePages`], [`Error::NoSuchNode`], [`Error::CannotBind`],
    /// [`Error::LockedMemoryLimit`], [`Error::NoPermission`], [`Error::NotSharedMemory`], [`Error::Os`].
    pub fn create_anonymous(&self, bytes: usize) -> Result<NewSegment, Error> {
        create::anonymous(self, bytes)
    }

    /// Attaches to a named segment, once it is published; waits for that, in short sleeps, up to `timeout`.
    ///
    /// With a time-out of zero it looks once. Every page is made present in this process too, unless
    /// [`prefault`](Self::prefault) says otherwise. The name is looked up in /dev/shm and on all hugetlbfs mounts
    /// with pages that a segment can have.
    ///
    /// The file must belong to this process's effective user, to root, or to whom
    /// [`trust_owner`](Self::trust_owner) names: anybody may have made a file of this name first.
    ///
    /// # Errors
    ///
    /// At the time-out: [`Error::Missing`] if there is no such name, [`Error::NotReady`] if there is one.
    /// At once: [`Error::BadName`], [`Error::NoPermission`], [`Error::NotSharedMemory`],
    /// [`Error::ForeignOwner`], [`Error::TooSmall`], [`Error::WrongMagic`], [`Error::WrongVersion`],
    /// [`Error::WrongArchitecture`], [`Error::Corrupted`], [`Error::LockedMemoryLimit`], [`Error::NoSpace`],
    /// [`Error::Os`].
    pub fn attach(&self, name: &str, timeout: Duration) -> Result<Segment, Error> {
        attach::named(self, name, timeout)
    }

    /// Attaches to the segment behind a descriptor, which a child inherited or was sent; waits as `attach`
    /// does.
    ///
    /// The file must be sealed, as that of an anonymous segment is, so that its sender cannot truncate it.
    ///
    /// The descriptor is made close-on-exec. A program without unsafe code gets it as its standard input: see
    /// [`Segment::inheritable`].
    ///
    /// # Errors
    ///
    /// [`Error::NotSealed`], and those of [`attach`](Self::attach) apart from [`Error::BadName`],
    /// [`Error::Missing`] and [`Error::ForeignOwner`].
    pub fn attach_fd(&self, descriptor: impl Into<Descriptor>, timeout: Duration) -> Result<Segment, Error> {
        attach::descriptor(self, descriptor.into(), timeout)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
