//! Pages of 2 MiB: obtained, refused, or replaced, and always reported.

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use common::{
    OtherUser, Peer, TestName, answer, in_namespace, is_root, lock_file, role, skip, smaps_field, unlocked,
    word,
};
use ring_shm::{Errno, Error, Options, Pages, Region, unlink};

const MIB: usize = 1 << 20;
const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    match &*role {
        "use a mount" => use_a_mount(Path::new(&argument)),
        "do without a mount" => do_without_a_mount(Errno::NODEV),
        "do with a mount of others" => do_without_a_mount(Errno::ACCES),
        other => panic!("no such role: {other}"),
    }
    answer("done");
}

fn huge_or_nothing() -> Options {
    unlocked().pages(Pages::Huge2MiBRequired)
}

fn huge_or_base() -> Options {
    unlocked().pages(Pages::Huge2MiBIfAvailable)
}

fn pool_count(file: &str) -> u64 {
    let path = Path::new(POOL).join(file);
    fs::read_to_string(path).map_or(0, |text| text.trim().parse().unwrap())
}

/// The pool, for one test at a time; put back as it was found.
struct Pool {
    found_pages: u64,
    _lock: File,
}

impl Pool {
    fn take() -> Self {
        // Something that every test process can open and nobody else locks.
        let lock = File::open("/dev/shm").unwrap();
        lock_file(&lock);
        Self { found_pages: pool_count("nr_hugepages"), _lock: lock }
    }

    /// Whether at least so many pages are free, after making them if need be.
    fn has_free(&self, pages: u64) -> bool {
        let free = || pool_count("free_hugepages").saturating_sub(pool_count("resv_hugepages"));
        if free() < pages {
            let wanted = self.found_pages + pages - free();
            let _ = fs::write(Path::new(POOL).join("nr_hugepages"), wanted.to_string());
        }
        free() >= pages
    }

    /// Bytes that need more pages than there can be.
    fn more_than_all(&self) -> usize {
        let pages = pool_count("nr_hugepages") + pool_count("nr_overcommit_hugepages") + 1;
        usize::try_from(pages).unwrap() * 2 * MIB - 128
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if pool_count("nr_hugepages") != self.found_pages {
            let _ = fs::write(Path::new(POOL).join("nr_hugepages"), self.found_pages.to_string());
        }
    }
}

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

#[test]
fn an_anonymous_segment_gets_them() {
    let pool = Pool::take();
    if !pool.has_free(2) {
        return skip("huge pages obtained", "the pool is empty and cannot be enlarged");
    }
    let free_pages = pool_count("free_hugepages");
    for options in [huge_or_nothing(), huge_or_base()] {
        let segment = options.create_anonymous(3 * MIB).unwrap().publish();
        let report = segment.report();
        assert_eq!((report.page_bytes, report.fall_back), (2 * MIB as u64, None));
        assert_eq!((report.mapped_bytes, report.reserved_bytes), (4 * MIB as u64, 4 * MIB as u64));
        assert!(report.to_string().contains("pages     2 MiB\n"), "{report}");
        assert_eq!(smaps_field(report.address, "KernelPageSize"), "2048 kB");
        assert_eq!(smaps_field(report.address, "Shared_Hugetlb"), "0 kB");
        assert_eq!(smaps_field(report.address, "Private_Hugetlb"), "4096 kB");
        assert!(report.sealed);
        let path = format!("/proc/self/fd/{}", segment.descriptor().raw());
        let file = File::options().read(true).write(true).open(path).unwrap();
        for bytes in [0, 2 * MIB, 6 * MIB] {
            let error = file.set_len(bytes as u64).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::PERM.0), "{bytes} bytes");
        }
        word(&segment, 3 * MIB / 8 - 1).store(1, Ordering::Relaxed);
    }
    assert_eq!(pool_count("free_hugepages"), free_pages, "all given back");
}

#[test]
fn an_empty_pool_is_an_error_or_a_fall_back() {
    let pool = Pool::take();
    let bytes = pool.more_than_all();
    let error = huge_or_nothing().create_anonymous(bytes).unwrap_err();
    assert!(matches!(error, Error::NoHugePages { source: Errno::NOSPC | Errno::NOMEM, .. }), "{error:?}");
    assert!(error.to_string().contains("vm.nr_hugepages"), "{error}");
    if bytes > 256 * MIB {
        return skip("fall-back from an empty pool", "the pool is so large that its double may not fit");
    }
    let segment = huge_or_base().create_anonymous(bytes).unwrap().publish();
    let report = segment.report();
    assert_eq!(report.page_bytes, 4096);
    assert!(matches!(report.fall_back, Some(Errno::NOSPC | Errno::NOMEM)), "{report:?}");
    assert!(report.to_string().contains("4 KiB instead of 2 MiB: "), "{report}");
    assert_eq!(smaps_field(report.address, "KernelPageSize"), "4 kB");
    assert_eq!(segment.bytes(), bytes);
}

#[test]
fn a_named_segment_lies_on_a_mount() {
    let pool = Pool::take();
    if !is_root() {
        return skip("a hugetlbfs mount", "only root can mount one");
    }
    if !pool.has_free(4) {
        return skip("a hugetlbfs mount", "the pool is empty and cannot be enlarged");
    }
    // A space in the path: the mount table escapes it.
    let mount = MountPoint::new("ring-shm test");
    let setup = format!(
        "umount -t hugetlbfs -a 2>/dev/null || :; mount -t tmpfs tmpfs /dev/shm; \
         mount -t hugetlbfs -o pagesize=2M none '{}'",
        mount.0.display()
    );
    let peer = Peer::start(in_namespace("use a mount", mount.0.to_str().unwrap(), &setup));
    assert_eq!(peer.finish(), ["done"]);
}

fn use_a_mount(mount: &Path) {
    let name = TestName::new("mount");
    let path = mount.join(&*name);
    let free_pages = pool_count("free_hugepages");
    let options = huge_or_nothing();

    let segment = options.create(&name, 3 * MIB).unwrap().publish();
    let report = segment.report();
    assert_eq!((report.page_bytes, report.mapped_bytes), (2 * MIB as u64, 4 * MIB as u64));
    assert_eq!(smaps_field(report.address, "KernelPageSize"), "2048 kB");
    assert!(path.exists() && !name.path().exists());

    // Whoever attaches neither knows nor says where it is.
    let attached = unlocked().attach(&name, Duration::ZERO).unwrap();
    assert_eq!(attached.report().page_bytes, 2 * MIB as u64);
    assert_eq!(attached.report().reserved_bytes, 4 * MIB as u64);
    word(&segment, 3 * MIB / 8 - 1).store(9, Ordering::Relaxed);
    assert_eq!(word(&attached, 3 * MIB / 8 - 1).load(Ordering::Relaxed), 9);

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
    let bytes = (usize::try_from(pool_count("nr_hugepages")).unwrap() + 1) * 2 * MIB;
    let error = options.create(&name, bytes).unwrap_err();
    assert!(matches!(error, Error::NoHugePages { .. }), "{error:?}");
    assert!(!path.exists());
    drop(options.create(&name, MIB).unwrap().publish());
    unlink(&name).unwrap();
    assert!(!path.exists());
    assert_eq!(pool_count("free_hugepages"), free_pages, "all given back");
}

#[test]
fn a_named_segment_without_a_mount_is_an_error_or_a_fall_back() {
    let _pool = Pool::take();
    if !is_root() {
        return skip("no hugetlbfs mount", "only root can take mounts away");
    }
    let setup = "umount -t hugetlbfs -a 2>/dev/null || :";
    assert_eq!(Peer::start(in_namespace("do without a mount", "", setup)).finish(), ["done"]);
}

#[test]
fn a_mount_that_others_keep_for_themselves_is_no_mount() {
    let _pool = Pool::take();
    if !is_root() {
        return skip("a closed hugetlbfs mount", "only root can mount one");
    }
    let mount = MountPoint::new("ring-shm-closed");
    let setup = format!(
        "umount -t hugetlbfs -a 2>/dev/null || :; mount -t hugetlbfs -o pagesize=2M,mode=0700 none '{}'",
        mount.0.display()
    );
    let user = OtherUser::new();
    let peer = Peer::start(user.in_namespace("do with a mount of others", "", &setup));
    assert_eq!(peer.finish(), ["done"]);
}

fn do_without_a_mount(source: Errno) {
    let name = TestName::new("no-mount");
    assert_eq!(unlocked().attach(&name, Duration::ZERO).unwrap_err(), Error::Missing);
    assert_eq!(unlink(&name), Err(Error::Missing));
    let error = huge_or_nothing().create(&name, MIB).unwrap_err();
    assert_eq!(error, Error::NoHugePages { bytes: MIB as u64, source });
    assert!(error.to_string().contains("hugetlbfs mount"), "{error}");
    assert!(!name.path().exists());
    let segment = huge_or_base().create(&name, MIB).unwrap().publish();
    assert_eq!((segment.report().page_bytes, segment.report().fall_back), (4096, Some(source)));
    assert!(name.path().exists());
}
