//! Descriptors: none leaks, neither here nor into a child, and it is an error where there is none.

mod common;

use core::time::Duration;

use common::{
    Peer, SMALL_FILES, TestName, answer, child as start_child, in_shell, open_descriptors as open, role,
    unlocked, with_free_descriptors,
};
use ring_shm::{Descriptor, Errno, Error, Pages};

#[test]
#[ignore = "the other process of the test in this file"]
fn child() {
    match role() {
        Some((role, _)) if role == "count" => answer(&segments_open().to_string()),
        Some((role, _)) if role == "run out" => run_out(),
        Some(_) => none_leaks_here(),
        None => {}
    }
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
    for pages in
        [Pages::Base, Pages::Huge2MiBRequired, Pages::Huge2MiBIfAvailable, Pages::Huge1GiBIfAvailable]
    {
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

#[test]
fn a_process_without_descriptors_is_told_and_leaks_none() {
    assert_eq!(Peer::start(start_child("run out", "")).finish(), [""; 0]);
}

/// Tries with no free descriptor, with one, and so on until it succeeds.
fn until_descriptors_suffice(
    what: &str,
    name: &TestName,
    mut call: impl FnMut(usize) -> Result<(), Error>,
) -> usize {
    for count in 0..10 {
        let (existed, before) = (name.path().exists(), open());
        let result = call(count);
        assert_eq!(open(), before, "{what} with {count} free: {result:?}");
        let Err(error) = result else { return count };
        assert!(
            matches!(error, Error::Os { source: Errno::MFILE, .. }),
            "{what} with {count} free: {error:?}"
        );
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        assert_eq!(name.path().exists(), existed, "{what} with {count} free");
    }
    panic!("{what}: does not succeed")
}

fn run_out() {
    let (name, made) = (TestName::new("descriptors"), TestName::new("descriptors-made"));
    let segment = unlocked().create(&made, 4096).unwrap().publish();
    let anonymous = unlocked().create_anonymous(4096).unwrap().publish();
    for pages in [Pages::Base, Pages::Huge2MiBIfAvailable, Pages::Huge1GiBIfAvailable] {
        let options = unlocked().pages(pages);
        let needed = until_descriptors_suffice("create", &name, |free| {
            with_free_descriptors(free, || options.create(&name, 4096)).map(drop)
        });
        assert!(needed > 1, "{needed}");
        let needed = until_descriptors_suffice("create_anonymous", &name, |free| {
            with_free_descriptors(free, || options.create_anonymous(4096)).map(drop)
        });
        assert_eq!(needed, 1);
    }
    let needed = until_descriptors_suffice("attach", &made, |free| {
        with_free_descriptors(free, || unlocked().attach(&made, Duration::ZERO)).map(drop)
    });
    assert_eq!(needed, 2, "the directory and the file");
    let needed = until_descriptors_suffice("attach to none", &name, |free| {
        match with_free_descriptors(free, || unlocked().attach(&name, Duration::ZERO)) {
            Err(Error::Missing) => Ok(()),
            result => result.map(drop),
        }
    });
    assert!(needed > 0, "a name is not missing where nobody could look");
    let needed = until_descriptors_suffice("attach_fd", &name, |free| {
        let descriptor = anonymous.inheritable().unwrap();
        with_free_descriptors(free, || unlocked().attach_fd(descriptor, Duration::ZERO)).map(drop)
    });
    assert_eq!(needed, 0, "it opens nothing");
    let needed = until_descriptors_suffice("inheritable", &name, |free| {
        with_free_descriptors(free, || anonymous.inheritable()).map(drop)
    });
    assert_eq!(needed, 1);
    until_descriptors_suffice("unlink", &made, |free| with_free_descriptors(free, || segment.unlink()));
    assert!(!made.path().exists());
}
