//! Creating: exclusive, reserved, and gone if it is not finished.

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::{Peer, SMALL_FILES, TestName, answer, in_shell, join_users, role, smaps_field, unlocked, word};
use ring_shm::{Errno, Error, FallBack, Locked, NameFault, Options, Region, unlink};

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, name)) = role() else { return };
    match &*role {
        "create with mode 0666" => drop(unlocked().mode(0o666).create(&name, 4096).unwrap().publish()),
        "ask for too much" => ask_for_too_much(&TestName::new("too-much")),
        other => panic!("no such role: {other}"),
    }
    answer("done");
}

#[test]
fn a_taken_name_is_exists() {
    let name = TestName::new("exists");
    let new = unlocked().create(&name, 4096).unwrap();
    assert_eq!(unlocked().create(&name, 4096).unwrap_err(), Error::Exists, "not published yet");
    let segment = new.publish();
    assert_eq!(unlocked().create(&name, 4096).unwrap_err(), Error::Exists, "published");
    drop(segment);
    assert_eq!(unlocked().create(&name, 4096).unwrap_err(), Error::Exists, "nobody has it mapped");
    let error = unlocked().create(&name, usize::MAX / 2).unwrap_err();
    assert_eq!(error, Error::Exists, "found before memory is looked for");
    unlink(&name).unwrap();
    unlocked().create(&name, 4096).unwrap();
}

#[test]
fn another_programs_file_is_left_alone() {
    for content in ["", "something else that is longer than a word"] {
        let name = TestName::new("foreign");
        std::fs::write(name.path(), content).unwrap();
        assert_eq!(unlocked().create(&name, 4096).unwrap_err(), Error::Exists);
        assert_eq!(std::fs::read_to_string(name.path()).unwrap(), content);
    }
}

/// A file of a temporary name is removed if it is blank and has no user: a creator that lives is one.
#[test]
fn what_a_killed_creator_left_without_a_name_goes_with_the_next_creation() {
    let create = || drop(unlocked().create(&TestName::new("next"), 4096).unwrap());
    let own = std::process::id();
    let path = |tag: &str| Path::new("/dev/shm").join(format!(".ring-shm-test-{own}-{tag}"));
    let [rest, locked, foreign, published] = ["rest", "locked", "foreign", "published"].map(path);
    // Each is complete when it gets its name: creators in other tests take what is blank for a rest.
    let before = Path::new("/dev/shm").join(format!("ring-shm-test-{own}-before"));
    std::fs::write(&before, "something else").unwrap();
    std::fs::rename(&before, &foreign).unwrap();
    let name = TestName::new("published");
    drop(unlocked().create(&name, 4096).unwrap().publish());
    std::fs::rename(name.path(), &published).unwrap();
    assert_eq!(unlocked().create(".ring-shm-x", 4096).unwrap_err(), Error::BadName(NameFault::Reserved));
    let living = File::create_new(&before).unwrap();
    join_users(&living);
    std::fs::rename(&before, &locked).unwrap();
    File::create_new(&rest).unwrap();
    let present = || [&rest, &locked, &foreign, &published].map(|path| path.exists());
    // A creator of another test that is just about to remove it keeps the others off.
    let goes = |path: &Path| {
        (0..10_000).any(|_| {
            create();
            !path.exists()
        })
    };
    assert!(goes(&rest));
    assert_eq!(present(), [false, true, true, true]);
    drop(living);
    assert!(goes(&locked));
    assert_eq!(present(), [false, false, true, true]);
    std::fs::remove_file(foreign).unwrap();
    std::fs::remove_file(published).unwrap();
}

#[test]
fn a_name_with_and_without_slash_is_the_same() {
    let name = TestName::new("slash");
    let slashed = format!("/{}", &*name);
    let segment = unlocked().create(&slashed, 4096).unwrap().publish();
    assert_eq!(segment.name(), Some(&*name));
    assert_eq!(unlocked().create(&name, 4096).unwrap_err(), Error::Exists);
    unlink(&slashed).unwrap();
}

#[test]
fn of_many_creators_one_succeeds() {
    let name = TestName::new("race");
    for _ in 0..300 {
        let barrier = std::sync::Barrier::new(4);
        let results: Vec<_> = std::thread::scope(|scope| {
            let create = || {
                barrier.wait();
                unlocked().create(&name, 4096)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        for error in results.iter().flat_map(|result| result.as_ref().err()) {
            assert_eq!(*error, Error::Exists);
        }
    }
}

#[test]
fn bad_names_are_refused_by_every_call() {
    let longest = "x".repeat(255);
    let too_long = "x".repeat(256);
    for (name, fault) in [
        ("", NameFault::Empty),
        ("/", NameFault::Empty),
        ("//x", NameFault::Slash),
        ("x/", NameFault::Slash),
        ("../x", NameFault::Slash),
        (".", NameFault::Dots),
        ("/..", NameFault::Dots),
        ("a\0b", NameFault::Zero),
        (&too_long, NameFault::TooLong),
    ] {
        let expected = Error::BadName(fault);
        assert_eq!(Options::new().create(name, 4096).unwrap_err(), expected, "{name:?}");
        assert_eq!(Options::new().attach(name, Duration::ZERO).unwrap_err(), expected, "{name:?}");
        assert_eq!(unlink(name).unwrap_err(), expected, "{name:?}");
    }
    assert_eq!(Options::new().attach(&longest, Duration::ZERO).unwrap_err(), Error::Missing);
    unlocked().create(&longest, 4096).unwrap();
}

#[test]
fn dropping_an_unpublished_segment_leaves_no_name() {
    let name = TestName::new("unpublished");
    let new = unlocked().create(&name, 1 << 20).unwrap();
    assert!(name.path().exists());
    drop(new);
    assert!(!name.path().exists());
}

#[test]
fn dropping_an_unpublished_segment_leaves_a_successor_alone() {
    let name = TestName::new("successor");
    let first = unlocked().create(&name, 4096).unwrap();
    unlink(&name).unwrap();
    let second = unlocked().create(&name, 4096).unwrap();
    drop(first);
    assert!(name.path().exists());
    drop(second);
    assert!(!name.path().exists());
}

#[test]
fn a_published_segment_outlives_its_creator() {
    let name = TestName::new("outlives");
    let new = unlocked().create(&name, 4096).unwrap();
    word(&new, 5).store(42, Ordering::Relaxed);
    drop(new.publish());
    let segment = unlocked().attach(&name, Duration::ZERO).unwrap();
    assert_eq!(word(&segment, 5).load(Ordering::Relaxed), 42);
}

#[test]
fn data_of_every_length_are_whole_aligned_and_zero() {
    for bytes in [0, 1, 8, 4096 - 128, 4096 - 127, 4096, 100_000] {
        let segment = unlocked().create_anonymous(bytes).unwrap().publish();
        assert_eq!(segment.bytes(), bytes);
        assert_eq!(segment.base().as_ptr().addr() % 128, 0);
        assert_eq!(segment.name(), None);
        for index in 0..bytes / 8 {
            assert_eq!(word(&segment, index).fetch_add(1, Ordering::Relaxed), 0);
        }
        assert_eq!(segment.unlink(), Ok(()));
    }
}

#[test]
fn memory_is_reserved_and_present_before_it_is_used() {
    const BYTES: usize = 1 << 20;
    let name = TestName::new("reserved");
    for (new, what) in [
        (unlocked().create(&name, BYTES).unwrap(), "named"),
        (unlocked().create_anonymous(BYTES).unwrap(), "anonymous"),
    ] {
        let report = new.report();
        assert_eq!(report.data_bytes, BYTES as u64);
        assert_eq!(report.mapped_bytes, report.reserved_bytes, "{what}");
        assert!(report.mapped_bytes >= BYTES as u64 + 128);
        assert_eq!(report.page_bytes, 4096);
        assert_eq!((report.locked, report.fall_back), (Locked::NotAsked, FallBack::default()));
        assert_eq!(report.address, new.base().as_ptr().addr());
        assert_eq!(smaps_field(report.address, "KernelPageSize"), "4 kB");
        assert_eq!(smaps_field(report.address, "Rss"), format!("{} kB", report.mapped_bytes / 1024));
    }
}

#[test]
fn whoever_attaches_has_every_page_present_too() {
    let name = TestName::new("present");
    let segment = unlocked().create(&name, 1 << 20).unwrap().publish();
    let attached = unlocked().attach(&name, Duration::ZERO).unwrap();
    assert_eq!(attached.report().mapped_bytes, segment.report().mapped_bytes);
    assert_eq!(attached.report().reserved_bytes, segment.report().reserved_bytes);
    let present = smaps_field(attached.report().address, "Rss");
    assert_eq!(present, format!("{} kB", attached.report().mapped_bytes / 1024));
}

#[test]
fn more_than_the_machine_has_is_no_space() {
    let peer = Peer::start(in_shell("ask for too much", "", SMALL_FILES));
    assert_eq!(peer.finish(), ["done"]);
}

fn ask_for_too_much(name: &TestName) {
    let tables = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kib = |field: &str| -> usize {
        let value = tables.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    };
    // The rest is for what others free meanwhile.
    let just_too_much = (kib("MemAvailable:") + kib("SwapFree:")) * 1024 + (4 << 30);
    for bytes in [just_too_much, 1 << 46, usize::MAX / 2, usize::MAX - 4096, usize::MAX] {
        let named = unlocked().create(name, bytes).unwrap_err();
        // For its own reason, not for the limit on files: see `SMALL_FILES`.
        let source = if bytes < usize::MAX / 2 { Errno::NOSPC } else { Errno::FBIG };
        assert_eq!(named, Error::NoSpace { bytes: bytes as u64, source });
        assert!(!name.path().exists());
        let anonymous = unlocked().create_anonymous(bytes).unwrap_err();
        assert_eq!(anonymous, named);
    }
}

#[test]
fn the_mode_is_the_one_asked_for() {
    let name = TestName::new("mode");
    let mode = || std::fs::metadata(name.path()).unwrap().mode() & 0o7777;
    let new = Options::new().create(&name, 4096).unwrap();
    assert_eq!(mode(), 0o600);
    drop(new);
    for asked in [0o660, 0o640, 0o666] {
        let _new = unlocked().mode(asked).create(&name, 4096).unwrap();
        assert_eq!(mode(), asked);
    }
    let peer = Peer::start(in_shell("create with mode 0666", &name, "umask 077"));
    assert_eq!(peer.finish(), ["done"]);
    assert_eq!(mode(), 0o666);
}

#[test]
fn an_anonymous_segment_has_the_mode_too() {
    let segment = unlocked().create_anonymous(4096).unwrap().publish();
    let path = format!("/proc/self/fd/{}", segment.descriptor().raw());
    assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o7777, 0o600);
}
