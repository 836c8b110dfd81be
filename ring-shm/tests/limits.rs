//! Full file systems, other users, limits: as the kernel enforces them.

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::time::Instant;

use common::{
    OtherUser, Peer, SMALL_FILES, TestName, answer, in_namespace, in_shell, is_root, limited,
    open_descriptors, refused, role, skip, smaps_field, unlocked, word,
};
use ring_shm::{Errno, Error, Lock, Locked, NameFault, Options, Pages, unlink};

const LONG: Duration = Duration::from_secs(20);

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    match &*role {
        "fill a small /dev/shm" => fill_a_small_shm(),
        "use a segment of another user" => use_a_segment_of_another_user(&argument),
        "create for others" => drop(unlocked().mode(0o666).create(&argument, 4096).unwrap().publish()),
        "attach to a third user's" => attach_to_a_third_users(&argument),
        "create again and again" => create_again_and_again(&argument),
        "attach again and again" => return attach_again_and_again(&argument),
        "be refused" => be_refused(),
        "run out of addresses" => run_out_of_addresses(),
        "exceed the limit on files" => exceed_the_limit_on_files(),
        "lock too much" => lock_too_much(&argument),
        "lock a little" => lock_a_little(),
        other => panic!("no such role: {other}"),
    }
    answer("done");
}

#[test]
fn a_full_file_system_is_no_space_and_leaves_nothing() {
    if !is_root() {
        return skip("a full /dev/shm", "only root can mount a small one");
    }
    let setup = "mount -t tmpfs -o size=1m tmpfs /dev/shm";
    assert_eq!(Peer::start(in_namespace("fill a small /dev/shm", "", setup)).finish(), ["done"]);
}

fn fill_a_small_shm() {
    const MIB: usize = 1 << 20;
    let files = || std::fs::read_dir("/dev/shm").unwrap().count();
    let create = |name: &str, bytes| unlocked().create(name, bytes);
    let refused = |name, bytes| refused(|| create(name, bytes));
    assert_eq!(files(), 0, "a file system of our own");

    let error = refused("too-large", 2 * MIB);
    assert_eq!(error, Error::NoSpace { bytes: 2 * MIB as u64, source: Errno::NOSPC });
    assert_eq!(files(), 0);

    let error = refused("just-too-large", MIB);
    assert!(matches!(error, Error::NoSpace { .. }), "the header does not fit: {error:?}");
    assert_eq!(files(), 0);

    let all = create("all", MIB - 128).unwrap().publish();
    assert_eq!(all.report().reserved_bytes, MIB as u64);
    for bytes in [1, 4096] {
        assert!(matches!(refused("one-more", bytes), Error::NoSpace { .. }));
        assert_eq!(files(), 1);
    }
    all.unlink().unwrap();
    drop(all);
    drop(create("all-again", MIB - 128).unwrap());
    assert_eq!(files(), 0);

    // A file that has no memory behind it is not touched: to read it would kill this process.
    let sparse = std::fs::File::create("/dev/shm/sparse").unwrap();
    sparse.set_len(4096).unwrap();
    let _all = create("all", MIB - 128).unwrap();
    let error = Options::new().attach("sparse", Duration::ZERO).unwrap_err();
    assert_eq!(error, Error::WrongMagic { found: 0 });
}

#[test]
fn another_user_has_no_permission_unless_the_mode_gives_it() {
    if !is_root() {
        return skip("another user", "only root can become one");
    }
    let user = OtherUser::new();
    let private = TestName::new("private");
    let _private = unlocked().create(&private, 4096).unwrap().publish();
    let open = TestName::new("open");
    let _open = unlocked().mode(0o666).create(&open, 4096).unwrap().publish();
    let argument = format!("{} {}", &*private, &*open);
    let peer = Peer::start(user.child("use a segment of another user", &argument, ":"));
    assert_eq!(peer.finish(), ["done"]);
    assert!(private.path().exists() && open.path().exists());
}

fn use_a_segment_of_another_user(names: &str) {
    let (private, open) = names.split_once(' ').unwrap();
    let start = Instant::now();
    let error = refused(|| unlocked().attach(private, LONG));
    assert!(matches!(error, Error::NoPermission { source: Errno::ACCES, .. }), "{error:?}");
    let source = core::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "Permission denied (errno 13)");
    assert!(!error.to_string().contains(&source), "said twice: {error}");
    assert!(start.elapsed() < LONG / 2, "at once");
    assert_eq!(refused(|| unlocked().create(private, 4096)), Error::Exists);

    let segment = unlocked().attach(open, Duration::ZERO).unwrap();
    for error in [segment.unlink(), unlink(open), unlink(private)] {
        assert!(matches!(error, Err(Error::NoPermission { .. })), "a sticky directory: {error:?}");
    }
}

#[test]
fn a_segment_of_another_user_is_refused_unless_he_is_trusted() {
    const THIRD_USER: u32 = OtherUser::ID - 1;
    if !is_root() {
        return skip("a segment of another user", "only root can become one");
    }
    let user = OtherUser::new();
    let name = TestName::new("foreign");
    assert_eq!(Peer::start(user.child("create for others", &name, ":")).finish(), ["done"]);
    let attach = |options: Options| options.attach(&name, LONG).map(drop);
    let start = Instant::now();
    let foreign = Error::ForeignOwner { uid: OtherUser::ID };
    assert_eq!(attach(unlocked()), Err(foreign));
    assert!(foreign.to_string().contains("trust_owner(65534)"), "{foreign}");
    assert_eq!(attach(unlocked().trust_owner(THIRD_USER)), Err(foreign));
    assert!(start.elapsed() < LONG / 2, "at once");
    assert_eq!(attach(unlocked().trust_owner(OtherUser::ID)), Ok(()));

    // Whoever is not root is asked the same.
    std::os::unix::fs::chown(name.path(), Some(THIRD_USER), None).unwrap();
    let peer = Peer::start(user.child("attach to a third user's", &name, ":"));
    assert_eq!(peer.finish(), ["done"]);
}

fn attach_to_a_third_users(name: &str) {
    let uid = OtherUser::ID - 1;
    let error = unlocked().attach(name, Duration::ZERO).unwrap_err();
    assert_eq!(error, Error::ForeignOwner { uid });
    unlocked().trust_owner(uid).attach(name, Duration::ZERO).unwrap();
}

#[test]
fn a_mode_that_lets_another_user_in_does_so_from_the_start() {
    if !is_root() {
        return skip("creating beside another user", "only root can become one");
    }
    let user = OtherUser::new();
    let name = TestName::new("mode-race");
    let mut peer = Peer::start(user.child("attach again and again", &name, ":"));
    assert_eq!(peer.hear(), "started");
    let creator = Peer::start(in_shell("create again and again", &name, "umask 077"));
    assert_eq!(creator.finish(), ["done"]);
    assert_eq!(peer.finish(), ["attached"]);
}

const CREATIONS: u64 = 300;

fn create_again_and_again(name: &str) {
    for creation in 1..=CREATIONS {
        let new = unlocked().mode(0o666).create(name, 4096).unwrap();
        word(&new, 0).store(creation, Ordering::Relaxed);
        let segment = new.publish();
        if creation < CREATIONS {
            segment.unlink().unwrap();
        }
    }
}

/// Until it has attached to the last one.
fn attach_again_and_again(name: &str) {
    answer("started");
    let start = Instant::now();
    while start.elapsed() < LONG {
        match unlocked().attach(name, Duration::ZERO) {
            Ok(segment) if word(&segment, 0).load(Ordering::Relaxed) == CREATIONS => {
                return answer("attached");
            }
            Ok(_) | Err(Error::Missing | Error::NotReady { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn what_is_refused_leaves_nothing() {
    assert_eq!(Peer::start(in_shell("be refused", "", SMALL_FILES)).finish(), ["done"]);
}

fn be_refused() {
    /// More than any pool has, and than any machine.
    const TOO_MUCH: usize = 1 << 46;
    let files =
        || std::fs::read_dir("/dev/shm").unwrap().filter(|file| file.as_ref().is_ok_and(is_ours)).count();
    let name = TestName::new("refused");
    let too_long = "x".repeat(256);
    let bad = |fault| Error::BadName(fault);
    for (name, expected) in [
        ("a/b", bad(NameFault::Slash)),
        ("/", bad(NameFault::Empty)),
        (&too_long, bad(NameFault::TooLong)),
        (&name, Error::NoSpace { bytes: TOO_MUCH as u64, source: Errno::NOSPC }),
    ] {
        assert_eq!(refused(|| unlocked().create(name, TOO_MUCH)), expected);
        let attaching = if matches!(expected, Error::BadName(_)) { expected } else { Error::Missing };
        assert_eq!(refused(|| unlocked().attach(name, Duration::ZERO)), attaching);
        assert_eq!(refused(|| unlink(name)), attaching);
        assert_eq!(files(), 0, "{name:?}");
    }
    for (pages, expected_bytes) in [(Pages::Huge2MiBRequired, 2 << 20), (Pages::Huge1GiBRequired, 1 << 30)] {
        let options = unlocked().pages(pages);
        // Too few pages, no mount, no pages of this size in this machine: one error.
        for error in
            [refused(|| options.create(&name, TOO_MUCH)), refused(|| options.create_anonymous(TOO_MUCH))]
        {
            assert!(
                matches!(error, Error::NoHugePages { page_bytes, .. } if page_bytes == expected_bytes),
                "{error:?}"
            );
        }
        assert_eq!(files(), 0, "{pages:?}");
    }
    for pages in [Pages::Huge2MiBIfAvailable, Pages::Huge1GiBIfAvailable] {
        let error = refused(|| unlocked().pages(pages).create(&name, TOO_MUCH));
        assert_eq!(error, Error::NoSpace { bytes: TOO_MUCH as u64, source: Errno::NOSPC });
    }
}

/// Made by this process.
fn is_ours(file: &std::fs::DirEntry) -> bool {
    let name = file.file_name().into_string().unwrap();
    name.starts_with("ring-shm-test-") && name.contains(&format!("-{}-", std::process::id()))
}

#[test]
fn the_limit_on_addresses_is_told() {
    assert_eq!(Peer::start(in_shell("run out of addresses", "", ":")).finish(), ["done"]);
}

fn run_out_of_addresses() {
    const BYTES: usize = 64 << 20;
    let (name, made) = (TestName::new("addresses"), TestName::new("addresses-made"));
    drop(unlocked().create(&made, BYTES).unwrap().publish());
    let anonymous = unlocked().create_anonymous(BYTES).unwrap().publish();
    let descriptor = anonymous.inheritable().unwrap();
    drop(anonymous);
    let pages: u64 =
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let limited = |call: &mut dyn FnMut() -> Result<(), Error>| {
        // Room for what the test itself needs.
        limited(libc::RLIMIT_AS, pages * 4096 + BYTES as u64 / 2, call)
    };
    let expected = Error::NoSpace { bytes: BYTES as u64, source: Errno::NOMEM };
    assert!(expected.to_string().contains("ulimit -v"), "{expected}");
    assert_eq!(refused(|| limited(&mut || unlocked().create(&name, BYTES).map(drop))), expected);
    assert_eq!(refused(|| limited(&mut || unlocked().create_anonymous(BYTES).map(drop))), expected);
    assert!(!name.path().exists(), "nothing is left behind");
    let error = refused(|| limited(&mut || unlocked().attach(&made, Duration::ZERO).map(drop)));
    assert!(matches!(error, Error::Os { source: Errno::NOMEM, .. }), "{error:?}");
    assert!(error.to_string().contains("ulimit -v"), "{error}");
    assert!(made.path().exists(), "an attacher leaves the segment alone");
    let before = open_descriptors();
    let mut descriptor = Some(descriptor);
    let attach = || unlocked().attach_fd(descriptor.take().unwrap(), Duration::ZERO).map(drop);
    let error = limited(&mut { attach }).unwrap_err();
    assert!(matches!(error, Error::Os { source: Errno::NOMEM, .. }), "{error:?}");
    assert_eq!(open_descriptors(), before - 1, "a descriptor that was handed over is closed");
}

#[test]
fn the_limit_on_files_is_an_error_and_no_signal() {
    // In units of 512 bytes.
    let peer = Peer::start(in_shell("exceed the limit on files", "", "ulimit -f 16"));
    assert_eq!(peer.finish(), ["done"]);
}

fn exceed_the_limit_on_files() {
    const LIMIT_BYTES: usize = 16 * 512;
    let name = TestName::new("file-limit");
    let bytes = LIMIT_BYTES - 127; // With the header one byte more, so one page more.
    let error = refused(|| unlocked().create(&name, bytes));
    assert_eq!(error, Error::NoSpace { bytes: bytes as u64, source: Errno::FBIG });
    assert!(error.to_string().contains("ulimit -f"), "{error}");
    assert!(!name.path().exists(), "nothing is left behind");
    assert_eq!(refused(|| unlocked().create_anonymous(bytes)), error);
    drop(unlocked().create(&name, LIMIT_BYTES - 128).unwrap());
    drop(unlocked().create_anonymous(LIMIT_BYTES - 128).unwrap());
}

#[test]
fn the_limit_on_locked_memory_is_told_apart() {
    if !is_root() {
        return skip("the limit on locked memory", "only root can start a child as another user");
    }
    let user = OtherUser::new();
    for (limit_kib, errno) in [(0, Errno::PERM), (64, Errno::NOMEM)] {
        let setup = format!("ulimit -l {limit_kib}");
        let peer = Peer::start(user.child("lock too much", &errno.0.to_string(), &setup));
        assert_eq!(peer.finish(), ["done"]);
    }
    assert_eq!(Peer::start(user.child("lock a little", "", "ulimit -l 64")).finish(), ["done"]);
}

fn lock_too_much(errno: &str) {
    const BYTES: usize = 1 << 20;
    let source = Errno(errno.parse().unwrap());
    let name = TestName::new("lock");
    let required = Options::new().lock(Lock::Required);
    let expected = Error::LockedMemoryLimit { bytes: (BYTES + 4096) as u64, source };
    assert_eq!(refused(|| required.create(&name, BYTES)), expected);
    assert!(!name.path().exists(), "nothing is left behind");
    assert_eq!(refused(|| required.create_anonymous(BYTES)), expected);
    assert_eq!(refused(|| required.prefault(false).create_anonymous(BYTES)), expected);

    let segment = Options::new().create(&name, BYTES).unwrap().publish();
    assert_eq!(segment.report().locked, Locked::Refused(source));
    assert!(segment.report().to_string().contains("raise RLIMIT_MEMLOCK"), "{}", segment.report());
    assert_eq!(smaps_field(segment.report().address, "Locked"), "0 kB");
    assert_eq!(refused(|| required.attach(&name, Duration::ZERO)), expected);
    assert!(name.path().exists(), "an attacher leaves the segment alone");
}

fn lock_a_little() {
    let segment = Options::new().lock(Lock::Required).create_anonymous(32 << 10).unwrap().publish();
    assert_eq!(segment.report().locked, Locked::Yes);
    assert!(smaps_field(segment.report().address, "VmFlags").split(' ').any(|flag| flag == "lo"));
}
