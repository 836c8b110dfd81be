use super::{pool, shmem_thp, thp};
use crate::check::finding::Change;
use crate::check::finding::{Judged, Verdict};
use crate::check::{Host, Profile, Target};
use crate::laid_out::LaidOut;
use ring_tune::Unread;

/// What a row says of a machine with one CPU, one node and these files.
fn judged(judge: fn(&Host) -> Result<Judged, Unread>, files: &str) -> Result<Judged, Unread> {
    let laid_out = LaidOut::of(files);
    laid_out.write("sys/devices/system/cpu/online", "0");
    laid_out.write("sys/devices/system/node/node0/cpulist", "0");
    let root = Some(laid_out.path().into());
    judge(&Host::look(&Target { profile: Profile::Spin, cpus: None, root }).unwrap())
}

const SHARED: &str = "=== sys/kernel/mm/transparent_hugepage/shmem_enabled\n";

fn change(file: &str) -> Change {
    Change { path: format!("sys/kernel/mm/transparent_hugepage/{file}"), value: "never".into() }
}

#[test]
fn each_file_that_switches_a_size_on_is_switched_off() {
    let files = "\
=== sys/kernel/mm/transparent_hugepage/enabled
always [madvise] never
=== sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled
[always] inherit madvise never
=== sys/kernel/mm/transparent_hugepage/hugepages-128kB/enabled
always inherit madvise [never]
=== sys/kernel/mm/transparent_hugepage/hugepages-1024kB/enabled
always [inherit] madvise never
=== sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled
always [inherit] madvise never
";
    let judged = judged(thp, files).unwrap();
    assert_eq!(judged.verdict, Verdict::Fail);
    assert_eq!(judged.actual, "always for 64kB; madvise for 1024kB, 2048kB");
    assert_eq!(judged.changes, [change("enabled"), change("hugepages-64kB/enabled")]);
}

#[test]
fn a_switch_that_nothing_inherits_is_left_alone() {
    let files = "\
=== sys/kernel/mm/transparent_hugepage/enabled
[always] madvise never
=== sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled
always inherit madvise [never]
";
    let judged = judged(thp, files).unwrap();
    assert_eq!((judged.verdict, judged.actual.as_str()), (Verdict::Ok, "never"));
}

#[test]
fn a_word_that_is_unknown_is_no_verdict() {
    for text in ["", "always madvise never", "[", "]never[", "always [sometimes] never"] {
        let files = format!("=== sys/kernel/mm/transparent_hugepage/enabled\n{text}\n");
        assert!(matches!(judged(thp, &files), Err(Unread::Strange { .. })), "{text:?}");
    }
}

#[test]
fn a_mount_may_say_otherwise_than_the_switch() {
    let mount = |options: &str| {
        format!(
            "{SHARED}always within_size advise [never] deny force\n=== proc/self/mountinfo\n\
             26 23 0:22 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,{options}\n"
        )
    };
    let judged_of = |options: &str| judged(shmem_thp, &mount(options)).unwrap();
    let huge = judged_of("size=1024k,huge=within_size,inode64");
    assert_eq!(huge.verdict, Verdict::Warn);
    assert_eq!(huge.actual, "never, and huge=within_size for /dev/shm");
    assert_eq!(huge.commands, ["mount -o remount,huge=never /dev/shm"]);
    assert_eq!(huge.changes, [], "no file mends a mount");
    assert_eq!(judged_of("huge=advise").verdict, Verdict::Ok);
    assert_eq!(judged_of("inode64").verdict, Verdict::Ok);
}

#[test]
fn deny_and_force_rule_over_sizes_and_mounts() {
    let files = |mode: &str| {
        format!(
            "{SHARED}always within_size advise never {mode}\n\
             === sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled\n\
             always inherit within_size advise [never]\n\
             === proc/self/mountinfo\n26 23 0:22 / /dev/shm rw - tmpfs tmpfs rw,huge=always\n"
        )
    };
    assert_eq!(judged(shmem_thp, &files("[deny] force")).unwrap().verdict, Verdict::Ok);
    let forced = judged(shmem_thp, &files("deny [force]")).unwrap();
    assert_eq!((forced.verdict, forced.changes), (Verdict::Warn, vec![change("shmem_enabled")]));
}

#[test]
fn pools_without_nodes_are_those_of_the_machine() {
    let laid_out = "\
=== sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
8
=== sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages
3
";
    let judged = judged(pool, laid_out).unwrap();
    assert_eq!((judged.verdict, judged.actual.as_str()), (Verdict::Ok, "3 of 8 free of 2048kB"));
}
