//! Descriptors: none leaks, neither here nor into a child.

mod common;

use core::time::Duration;

use common::{Peer, SMALL_FILES, TestName, answer, child as start_child, in_shell, role, unlocked};
use ring_shm::{Descriptor, Pages};

#[test]
#[ignore = "the other process of the test in this file"]
fn child() {
    match role() {
        Some((role, _)) if role == "count" => answer(&segments_open().to_string()),
        Some(_) => none_leaks_here(),
        None => {}
    }
}

fn open() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many descriptors of this process are anonymous segments.
fn segments_open() -> usize {
    let links = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().path().read_link().ok());
    links.filter(|target| target.starts_with("/memfd:ring-shm (deleted)")).count()
}

fn inherited() -> String {
    Peer::start(start_child("count", "")).finish().concat()
}

#[test]
fn none_leaks() {
    assert!(Peer::start(in_shell("leak none", "", SMALL_FILES)).finish().is_empty());
}

fn none_leaks_here() {
    let name = TestName::new("descriptors");
    let before = open();
    for pages in [Pages::Base, Pages::Huge2MiBRequired, Pages::Huge2MiBIfAvailable] {
        let options = unlocked().pages(pages);
        let _ = options.create(&name, usize::MAX);
        let _ = options.create(&name, 1 << 46);
        let _ = options.create_anonymous(1 << 46);
        let _ = options.create_anonymous(1 << 20);
        let _ = options.create("a/b", 1);
        let _ = options.attach(&name, Duration::from_millis(5));
        assert_eq!(open(), before, "after failures");
    }
    let new = unlocked().create(&name, 4096).unwrap();
    assert_eq!(open(), before + 2, "the segment, and the directory that its name may have to go from");
    let _ = unlocked().create(&name, 4096);
    let _ = unlocked().attach(&name, Duration::from_millis(5));
    assert_eq!(open(), before + 2);
    let segment = new.publish();
    assert_eq!(open(), before + 1, "one a segment");
    let attached = unlocked().attach(&name, Duration::ZERO).unwrap();
    assert_eq!(open(), before + 2);
    attached.unlink().unwrap();
    let _ = segment.unlink();
    drop((segment, attached));
    assert_eq!(open(), before);

    let segment = unlocked().create_anonymous(4096).unwrap().publish();
    assert_eq!((segments_open(), inherited().as_str()), (1, "0"));
    let inheritable = segment.inheritable().unwrap();
    assert_eq!((segments_open(), inherited().as_str()), (2, "1"));
    take_over(inheritable);
    assert_eq!((segments_open(), inherited().as_str()), (1, "0"));
    drop(segment);
    assert_eq!(open(), before);
}

/// Attaching makes an inherited descriptor close-on-exec, so that it goes no further.
fn take_over(inheritable: Descriptor) {
    let attached = unlocked().attach_fd(inheritable, Duration::ZERO).unwrap();
    assert_eq!((segments_open(), inherited().as_str()), (2, "0"));
    drop(attached);
}
