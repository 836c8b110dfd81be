//! Named segments, which lie on a mount.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ring_shm::{Errno, Error, unlink};

use crate::common::{
    OtherUser, Peer, TestName, can_bind, in_namespace, is_root, skip, smaps_field, unlocked,
    with_free_descriptors, word,
};
use crate::pools::{Pools, SIZES, Size};
use crate::{MIB, assert_on_node_0};

/// A directory to mount on, which goes when the test ends.
struct MountPoint(PathBuf);

impl MountPoint {
    fn new(tag: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{tag} {}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

const NO_MOUNTS: &str = "umount -t hugetlbfs -a 2>/dev/null || :; mount -t tmpfs tmpfs /dev/shm";

fn mount(options: &str, point: &Path) -> String {
    format!("mount -t hugetlbfs -o {options} none '{}'", point.display())
}

#[test]
fn a_named_segment_lies_on_a_mount() {
    let pools = Pools::take();
    if !is_root() {
        return skip("a hugetlbfs mount", "only root can mount one");
    }
    for size in &SIZES {
        if !pools.has_free(size) {
            skip(&format!("a mount with {}", size.text), "the pool is empty and cannot be enlarged");
            continue;
        }
        // A space in the path: the mount table escapes it.
        let point = MountPoint::new("ring-shm test");
        let options = format!("pagesize={}", size.mount_option);
        let setup = format!("{NO_MOUNTS}; {}", mount(&options, &point.0));
        let argument = format!("{} {}", size.mount_option, point.0.display());
        assert_eq!(Peer::start(in_namespace("use a mount", &argument, &setup)).finish(), ["done"]);
    }
}

pub(crate) fn use_a_mount(size: &Size, mount: &Path) {
    let name = TestName::new("mount");
    let path = mount.join(&*name);
    let free_pages = size.count("free_hugepages");
    let options = if can_bind() { size.required().numa_node(0) } else { size.required() };

    let segment = options.create(&name, size.data_bytes).unwrap().publish();
    let report = segment.report();
    assert_eq!((report.page_bytes, report.mapped_bytes), (size.bytes as u64, size.mapped_bytes()));
    assert_eq!(smaps_field(report.address, "KernelPageSize"), format!("{} kB", size.bytes >> 10));
    assert!(path.exists() && !name.path().exists());
    if can_bind() {
        assert_on_node_0(&report, size.pages());
    }

    // Whoever attaches neither knows nor says where it is.
    let attached = unlocked().attach(&name, Duration::ZERO).unwrap();
    assert_eq!(attached.report().page_bytes, size.bytes as u64);
    assert_eq!(attached.report().reserved_bytes, size.mapped_bytes());
    let last = size.data_bytes / 8 - 1;
    word(&segment, last).store(9, Ordering::Relaxed);
    assert_eq!(word(&attached, last).load(Ordering::Relaxed), 9);

    // A name is taken in both places or in none.
    assert_eq!(options.create(&name, MIB).unwrap_err(), Error::Exists);
    assert_eq!(unlocked().create(&name, MIB).unwrap_err(), Error::Exists);
    assert!(path.exists() && !name.path().exists());
    attached.unlink().unwrap();
    assert!(!path.exists());
    let small = unlocked().create(&name, MIB).unwrap().publish();
    assert_eq!(options.create(&name, MIB).unwrap_err(), Error::Exists);
    assert!(!path.exists() && name.path().exists());
    assert_eq!(segment.unlink(), Err(Error::Replaced));
    small.unlink().unwrap();

    // What fails or is dropped leaves nothing.
    drop((segment, attached));
    drop(options.create(&name, MIB).unwrap());
    assert!(!path.exists());
    let nowhere = options.numa_node(1_000_000).create(&name, MIB).unwrap_err();
    assert!(matches!(nowhere, Error::NoSuchNode { .. } | Error::CannotBind { .. }), "{nowhere:?}");
    assert!(!path.exists());
    let error = options.create(&name, size.more_than_all()).unwrap_err();
    assert!(matches!(error, Error::NoHugePages { .. }), "{error:?}");
    assert!(!path.exists());
    drop(options.create(&name, MIB).unwrap().publish());
    unlink(&name).unwrap();
    assert!(!path.exists());
    assert_eq!(size.count("free_hugepages"), free_pages, "all given back");
}

/// One that is read-only, one that is there twice, and one with pages of the other size.
#[test]
fn of_many_mounts_the_first_that_can_be_written_is_taken_and_all_are_looked_at() {
    let pools = Pools::take();
    if !is_root() {
        return skip("many hugetlbfs mounts", "only root can mount one");
    }
    if !pools.has_free(&SIZES[0]) {
        return skip("many hugetlbfs mounts", "the pool is empty and cannot be enlarged");
    }
    let point = MountPoint::new("ring-shm many");
    let at = |name: &str| point.0.join(name);
    let setup = [
        NO_MOUNTS.to_owned(),
        // So that the directories go with the namespace.
        format!("mount -t tmpfs tmpfs '{0}'; cd '{0}'; mkdir closed open twice large", point.0.display()),
        mount("pagesize=2M,ro", &at("closed")),
        mount("pagesize=2M", &at("open")),
        "mount --bind open twice".to_owned(),
        mount("pagesize=1G", &at("large")),
    ];
    let argument = format!("2M {}", point.0.display());
    let peer = Peer::start(in_namespace("use many mounts", &argument, &setup.join("; ")));
    assert_eq!(peer.finish(), ["done"]);
}

pub(crate) fn use_many_mounts(directory: &Path) {
    let name = TestName::new("mounts");
    let paths = ["closed", "open", "large"].map(|mount| directory.join(mount).join(&*name));
    let present = || paths.each_ref().map(|path| path.exists());
    let options = SIZES[0].required();

    let rest = directory.join("open/.ring-shm-0-0");
    File::create(&rest).unwrap();
    let segment = options.create(&name, MIB).unwrap().publish();
    assert!(!rest.exists(), "of a creator that was killed");
    assert_eq!(present(), [false, true, false]);
    assert!(directory.join("twice").join(&*name).exists());
    assert_eq!(unlocked().attach(&name, Duration::ZERO).unwrap().report().page_bytes, 2 * MIB as u64);
    assert_eq!(unlocked().create(&name, MIB).unwrap_err(), Error::Exists);

    // Nobody says "missing" who had no descriptors for the mount table, the mount and the file.
    for free in 0..3 {
        let attached = with_free_descriptors(free, || unlocked().attach(&name, Duration::ZERO).map(drop));
        let removed = if free < 2 { with_free_descriptors(free, || unlink(&name)) } else { attached };
        for result in [attached, removed] {
            assert!(matches!(result, Err(Error::Os { source: Errno::MFILE, .. })), "{free}: {result:?}");
        }
    }
    with_free_descriptors(3, || unlocked().attach(&name, Duration::ZERO)).unwrap();

    assert_eq!(segment.unlink(), Ok(()));
    assert_eq!(segment.unlink(), Err(Error::Missing));

    // Another program has pages of 1 GiB.
    File::create(&paths[2]).unwrap();
    assert!(matches!(unlocked().attach(&name, Duration::ZERO), Err(Error::TooSmall { .. })));
    assert_eq!(options.create(&name, MIB).unwrap_err(), Error::Exists);
    assert_eq!(segment.unlink(), Err(Error::Replaced));
    assert_eq!(unlink(&name), Err(Error::WrongMagic { found: 0 }));
    assert_eq!(present(), [false, false, true]);
    std::fs::remove_file(&paths[2]).unwrap();
    assert_eq!(unlink(&name), Err(Error::Missing));
}

#[test]
fn a_named_segment_without_a_mount_is_an_error_or_a_fall_back() {
    let _pools = Pools::take();
    if !is_root() {
        return skip("no hugetlbfs mount", "only root can take mounts away");
    }
    for size in &SIZES {
        let argument = format!("{} ", size.mount_option);
        let peer = Peer::start(in_namespace("do without a mount", &argument, NO_MOUNTS));
        assert_eq!(peer.finish(), ["done"]);
    }
}

#[test]
fn a_mount_that_others_keep_for_themselves_is_no_mount() {
    let _pools = Pools::take();
    if !is_root() {
        return skip("a closed hugetlbfs mount", "only root can mount one");
    }
    let point = MountPoint::new("ring-shm-closed");
    let setup = format!("{NO_MOUNTS}; {}", mount("pagesize=2M,mode=0700", &point.0));
    let user = OtherUser::new();
    let peer = Peer::start(user.in_namespace("do with a mount of others", "2M ", &setup));
    assert_eq!(peer.finish(), ["done"]);
}

pub(crate) fn do_without_a_mount(size: &Size, source: Errno) {
    let name = TestName::new("no-mount");
    assert_eq!(unlocked().attach(&name, Duration::ZERO).unwrap_err(), Error::Missing);
    assert_eq!(unlink(&name), Err(Error::Missing));
    let error = size.required().create(&name, MIB).unwrap_err();
    assert_eq!(error, Error::NoHugePages { bytes: MIB as u64, page_bytes: size.bytes as u64, source });
    assert!(
        error.to_string().contains(&format!("hugetlbfs mount with pagesize={}", size.mount_option)),
        "{error}"
    );
    assert!(!name.path().exists());
    let segment = size.if_available().create(&name, MIB).unwrap().publish();
    assert_eq!((segment.report().page_bytes, size.reason(&segment.report())), (4096, Some(source)));
    assert!(name.path().exists());
}
