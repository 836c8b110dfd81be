//! Attaching: every way in which a file can fail to be a segment has its own error, and none a crash.

mod common;

use core::time::Duration;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use common::{Peer, TestName, answer, child as start_child, punch_hole, role, unlocked};
use ring_shm::{Error, Region, Segment};

const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(20);
/// The seals that a descriptor must have.
#[cfg(feature = "std")]
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, name)) = role() else { return };
    match &*role {
        "create and stop" => {
            let new = unlocked().create(&name, 4096).unwrap();
            answer("created");
            std::thread::sleep(LONG);
            drop(new);
        }
        "create late" => {
            std::thread::sleep(SHORT);
            let new = unlocked().create(&name, 4096).unwrap();
            std::thread::sleep(SHORT);
            drop(new.publish());
        }
        other => panic!("no such role: {other}"),
    }
}

fn attach(name: &TestName) -> Result<Segment, Error> {
    unlocked().attach(name, Duration::ZERO)
}

fn file(name: &TestName) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(name.path()).unwrap()
}

/// An error that no waiting can cure comes at once.
fn assert_fails_at_once(name: &TestName, expected: Error) {
    let start = Instant::now();
    assert_eq!(unlocked().attach(name, LONG).unwrap_err(), expected);
    assert!(start.elapsed() < LONG / 2, "{expected:?} came late");
}

/// An error that waiting might cure comes at the time-out.
fn assert_fails_late(name: &TestName, expected: Error) {
    let start = Instant::now();
    assert_eq!(unlocked().attach(name, SHORT).unwrap_err(), expected);
    assert!(start.elapsed() >= SHORT, "{expected:?} came early");
    assert!(start.elapsed() < LONG / 2, "{expected:?} came late");
}

#[test]
fn nothing_there_is_missing() {
    let name = TestName::new("missing");
    assert_fails_late(&name, Error::Missing);
}

#[test]
fn a_blank_file_is_no_segment() {
    let name = TestName::new("empty");
    let empty = file(&name);
    assert_fails_at_once(&name, Error::TooSmall { file_bytes: 0, needed_bytes: 128 });
    empty.set_len(4096).unwrap();
    assert_fails_at_once(&name, Error::WrongMagic { found: 0 });
    empty.write_all_at(&[0; 4096], 0).unwrap();
    assert_fails_at_once(&name, Error::WrongMagic { found: 0 });
}

#[test]
fn an_unpublished_segment_is_not_ready() {
    let name = TestName::new("unpublished");
    let new = unlocked().create(&name, 4096).unwrap();
    assert_fails_late(&name, Error::NotReady { timeout: SHORT });
    let _segment = new.publish();
    attach(&name).unwrap();
}

#[test]
fn a_segment_of_a_killed_creator_is_not_ready_and_can_be_replaced() {
    let name = TestName::new("killed");
    let mut peer = Peer::start(start_child("create and stop", &name));
    assert_eq!(peer.hear(), "created");
    peer.kill();
    assert_fails_late(&name, Error::NotReady { timeout: SHORT });
    let _segment = unlocked().create(&name, 4096).unwrap().publish();
    attach(&name).unwrap();
}

#[test]
fn a_creator_that_comes_late_is_waited_for() {
    let name = TestName::new("late");
    let peer = Peer::start(start_child("create late", &name));
    let segment = unlocked().attach(&name, LONG).unwrap();
    assert_eq!(segment.bytes(), 4096);
    peer.finish();
}

#[test]
fn a_creator_that_gives_up_may_be_followed_by_another() {
    let name = TestName::new("follow");
    let first = unlocked().create(&name, 4096).unwrap();
    std::thread::scope(|scope| {
        let attached = scope.spawn(|| unlocked().attach(&name, LONG).unwrap());
        std::thread::sleep(SHORT);
        drop(first);
        std::thread::sleep(SHORT);
        let _second = unlocked().create(&name, 8192).unwrap().publish();
        assert_eq!(attached.join().unwrap().bytes(), 8192);
    });
}

#[test]
fn a_file_shorter_than_a_header_is_too_small() {
    let name = TestName::new("short");
    let short = file(&name);
    for file_bytes in [1, 127] {
        short.set_len(file_bytes).unwrap();
        assert_fails_at_once(&name, Error::TooSmall { file_bytes, needed_bytes: 128 });
    }
}

#[test]
fn a_truncated_segment_is_too_small() {
    let name = TestName::new("truncated");
    drop(unlocked().create(&name, 100_000).unwrap().publish());
    for file_bytes in [100_127, 99_999, 4096, 4000, 128] {
        file(&name).set_len(file_bytes).unwrap();
        assert_fails_at_once(&name, Error::TooSmall { file_bytes, needed_bytes: 100_128 });
    }
}

#[test]
fn a_segment_that_somebody_extended_is_corrupt() {
    let name = TestName::new("extended");
    drop(unlocked().create(&name, 4096).unwrap().publish());
    let expected = Error::Corrupted { field: "data length", found: 4096 };
    file(&name).set_len(12_288).unwrap();
    assert_fails_at_once(&name, expected);
    file(&name).write_all_at(&[0; 4096], 8192).unwrap();
    assert_fails_at_once(&name, expected);
}

#[test]
fn a_segment_with_a_hole_is_corrupt() {
    let name = TestName::new("hole");
    let segment = unlocked().create(&name, 8192).unwrap().publish();
    punch_hole(&file(&name), 4096, 4096);
    assert_fails_at_once(&name, Error::Corrupted { field: "reserved memory", found: 8192 });
    punch_hole(&file(&name), 0, 4096);
    assert_fails_at_once(&name, Error::WrongMagic { found: 0 });
    drop(segment);
}

#[test]
fn a_foreign_file_has_the_wrong_magic() {
    let name = TestName::new("magic");
    file(&name).write_all_at(&[b'x'; 4096], 0).unwrap();
    assert_fails_at_once(&name, Error::WrongMagic { found: u64::from_ne_bytes([b'x'; 8]) });
}

#[test]
fn a_segment_of_another_version_is_refused() {
    let name = TestName::new("version");
    drop(unlocked().create(&name, 4096).unwrap().publish());
    file(&name).write_all_at(&2_u64.to_ne_bytes(), 16).unwrap();
    assert_fails_at_once(&name, Error::WrongVersion { found: 2, expected: 1 });
}

#[test]
fn a_segment_of_another_architecture_is_refused() {
    let name = TestName::new("architecture");
    drop(unlocked().create(&name, 4096).unwrap().publish());
    let expected = ring_core::ARCHITECTURE;
    let found = expected ^ (64 ^ 32) << 8;
    file(&name).write_all_at(&found.to_ne_bytes(), 24).unwrap();
    assert_fails_at_once(&name, Error::WrongArchitecture { found, expected });
}

#[test]
fn a_segment_of_the_other_byte_order_is_refused() {
    let name = TestName::new("order");
    drop(unlocked().create(&name, 4096).unwrap().publish());
    let file = file(&name);
    let expected = ring_core::ARCHITECTURE;
    let found = expected ^ 3;
    file.write_all_at(&found.swap_bytes().to_ne_bytes(), 24).unwrap();
    for offset in (0..128).step_by(8).filter(|offset| *offset != 24) {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, offset).unwrap();
        word.reverse();
        file.write_all_at(&word, offset).unwrap();
    }
    assert_fails_at_once(&name, Error::WrongArchitecture { found, expected });
}

/// Every bit of the header, and every byte as a whole.
#[test]
fn every_spoiled_byte_of_the_header_is_refused_or_harmless() {
    const DATA_BYTES: u64 = 10_000;
    const FILE_BYTES: u64 = 12_288;
    let name = TestName::new("bytes");
    drop(unlocked().create(&name, 10_000).unwrap().publish());
    let file = file(&name);
    let mut header = [0; 128];
    file.read_exact_at(&mut header, 0).unwrap();
    let mut other_lengths = (0, 0, 0);
    for (offset, byte) in header.iter().enumerate() {
        let place = offset as u64;
        for flip in (0..8).map(|bit| 1 << bit).chain([0xff]) {
            file.write_all_at(&[byte ^ flip], place).unwrap();
            let result = attach(&name);
            let case = format!("byte {offset} with {flip:#x} flipped: {result:?}");
            match (offset, result) {
                (0..8, Err(Error::WrongMagic { .. }))
                | (8..16, Err(Error::NotReady { .. }))
                | (16..24, Err(Error::WrongVersion { .. }))
                | (24..32, Err(Error::WrongArchitecture { .. }))
                | (32..40, Err(Error::Corrupted { field: "data offset", .. }))
                | (48..56, Err(Error::Corrupted { field: "page size", .. })) => {}
                (40..48, result) => {
                    // Harmless: a length that ends in the same page, within the file.
                    let claimed = DATA_BYTES ^ u64::from(flip) << ((offset - 40) * 8);
                    let needed_bytes = claimed.saturating_add(128);
                    match result {
                        Ok(segment) => {
                            assert!(needed_bytes.next_multiple_of(4096) == FILE_BYTES, "{case}");
                            assert_eq!(segment.bytes() as u64, claimed, "{case}");
                            other_lengths.0 += 1;
                        }
                        Err(Error::TooSmall { file_bytes, needed_bytes: needed }) => {
                            assert_eq!((file_bytes, needed), (FILE_BYTES, needed_bytes), "{case}");
                            assert!(needed_bytes > FILE_BYTES, "{case}");
                            other_lengths.1 += 1;
                        }
                        Err(Error::Corrupted { field: "data length", found }) => {
                            assert_eq!(found, claimed, "{case}");
                            assert!(needed_bytes <= FILE_BYTES - 4096, "{case}");
                            other_lengths.2 += 1;
                        }
                        Err(_) => panic!("{case}"),
                    }
                }
                // Harmless: nobody reads these.
                (56.., Ok(segment)) => assert_eq!(segment.bytes() as u64, DATA_BYTES),
                _ => panic!("{case}"),
            }
        }
        file.write_all_at(&[*byte], place).unwrap();
    }
    attach(&name).unwrap();
    assert!(other_lengths.0 > 0 && other_lengths.1 > 0 && other_lengths.2 > 0, "{other_lengths:?}");
}

#[test]
fn what_is_not_shared_memory_is_refused() {
    use std::os::unix::fs::symlink;
    let name = TestName::new("link");
    symlink("/etc/hostname", name.path()).unwrap();
    assert_fails_at_once(&name, Error::NotSharedMemory);

    let segment = TestName::new("link-target");
    drop(unlocked().create(&segment, 4096).unwrap().publish());
    let name = TestName::new("link-to-segment");
    symlink(segment.path(), name.path()).unwrap();
    assert_fails_at_once(&name, Error::NotSharedMemory);

    let name = TestName::new("pipe");
    assert!(std::process::Command::new("mkfifo").arg(name.path()).status().unwrap().success());
    assert_fails_at_once(&name, Error::NotSharedMemory);

    let name = TestName::new("directory");
    std::fs::create_dir(name.path()).unwrap();
    assert_fails_at_once(&name, Error::NotSharedMemory);
    std::fs::remove_dir(name.path()).unwrap();
}

#[cfg(feature = "std")]
#[test]
fn a_descriptor_of_something_else_is_refused() {
    use ring_shm::Errno;
    use std::os::fd::{AsRawFd, OwnedFd};
    let attach = |descriptor: OwnedFd| unlocked().attach_fd(descriptor, Duration::ZERO).unwrap_err();
    let program = File::open(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(attach(program.into()), Error::NotSharedMemory);
    let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
    assert_eq!(attach(socket.into()), Error::NotSharedMemory);

    let image = image_of_a_segment();
    let sealed = common::anonymous_file(&image, SEALS);
    let read_only = File::open(format!("/proc/self/fd/{}", sealed.as_raw_fd())).unwrap();
    let read_only = attach(read_only.into());
    assert!(matches!(read_only, Error::NoPermission { source: Errno::ACCES, .. }), "{read_only:?}");
    // Attaching does not care how the descriptor came about.
    unlocked().attach_fd(OwnedFd::from(sealed), Duration::ZERO).unwrap();
    let short = common::anonymous_file(&image[..4096], SEALS);
    assert_eq!(attach(short.into()), Error::TooSmall { file_bytes: 4096, needed_bytes: 4224 });
}

/// What lies in the file of a published segment with 4096 bytes of data.
#[cfg(feature = "std")]
fn image_of_a_segment() -> Vec<u8> {
    let name = TestName::new("image");
    let _segment = unlocked().create(&name, 4096).unwrap().publish();
    std::fs::read(name.path()).unwrap()
}

#[cfg(feature = "std")]
#[test]
fn a_descriptor_that_is_not_sealed_is_refused_at_once() {
    use std::os::fd::OwnedFd;
    let image = image_of_a_segment();
    let name = TestName::new("unsealed");
    drop(unlocked().create(&name, 4096).unwrap().publish());
    let memfds = [0, libc::F_SEAL_SHRINK, libc::F_SEAL_GROW, libc::F_SEAL_SEAL]
        .map(|seals| common::anonymous_file(&image, seals));
    for unsealed in memfds.into_iter().chain([file(&name), common::anonymous_file(&[], 0)]) {
        let start = Instant::now();
        let error = unlocked().attach_fd(OwnedFd::from(unsealed), LONG).unwrap_err();
        assert_eq!(error, Error::NotSealed);
        assert!(error.to_string().contains("create_anonymous"), "{error}");
        assert!(start.elapsed() < LONG / 2, "came late");
    }
}

#[cfg(feature = "std")]
#[test]
fn a_descriptor_of_an_unpublished_segment_is_waited_for() {
    use std::os::fd::OwnedFd;
    const READY: core::ops::Range<usize> = 8..16;
    let mut image = image_of_a_segment();
    let ready: [u8; 8] = image[READY].try_into().unwrap();
    image[READY].fill(0);
    let creator = common::anonymous_file(&image, SEALS);
    let descriptor = OwnedFd::from(creator.try_clone().unwrap());
    let again = descriptor.try_clone().unwrap();
    assert_eq!(unlocked().attach_fd(descriptor, SHORT).unwrap_err(), Error::NotReady { timeout: SHORT });
    std::thread::scope(|scope| {
        let attached = scope.spawn(|| unlocked().attach_fd(again, LONG).unwrap());
        std::thread::sleep(SHORT);
        creator.write_all_at(&ready, READY.start as u64).unwrap();
        attached.join().unwrap();
    });
}
