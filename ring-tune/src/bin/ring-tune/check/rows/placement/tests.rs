use super::*;
use crate::check::Target;
use crate::check::finding::Verdict;
use crate::laid_out::LaidOut;

/// Two packages of two cores with two threads each; a last-level cache for each package.
const FILES: &str = "
=== sys/devices/system/cpu/online
0-7
=== sys/devices/system/cpu/smt/active
1
=== sys/devices/system/cpu/smt/control
on
=== sys/devices/system/cpu/cpu{0-3}/topology/physical_package_id
0
=== sys/devices/system/cpu/cpu{4-7}/topology/physical_package_id
1
=== sys/devices/system/cpu/cpu{0-1}/topology/thread_siblings_list
0-1
=== sys/devices/system/cpu/cpu{2-3}/topology/thread_siblings_list
2-3
=== sys/devices/system/cpu/cpu{4-5}/topology/thread_siblings_list
4-5
=== sys/devices/system/cpu/cpu{6-7}/topology/thread_siblings_list
6-7
=== sys/devices/system/cpu/cpu{0-7}/cache/index3/level
3
=== sys/devices/system/cpu/cpu{0-7}/cache/index3/type
Unified
=== sys/devices/system/cpu/cpu{0-3}/cache/index3/shared_cpu_list
0-3
=== sys/devices/system/cpu/cpu{4-7}/cache/index3/shared_cpu_list
4-7
";

fn host(files: &LaidOut, cpus: &str) -> Host {
    let (profile, root) = (Profile::Spin, Some(files.path().into()));
    Host::look(&Target { profile, cpus: Some(cpus.parse().unwrap()), root }).unwrap()
}

#[test]
fn a_sibling_is_idle_where_it_is_isolated_and_not_pinned() {
    let files = LaidOut::of(FILES);
    let judged = smt(&host(&files, "2,4")).unwrap();
    assert_eq!((judged.verdict, judged.actual.as_str()), (Verdict::Fail, "CPUs 3,5"));
    assert_eq!(judged.changes.len(), 1);

    files.write("sys/devices/system/cpu/isolated", "2-5\n");
    let judged = smt(&host(&files, "2,4")).unwrap();
    assert_eq!((judged.verdict, judged.actual.as_str()), (Verdict::Ok, "CPUs 3,5, isolated"));
    let judged = smt(&host(&files, "2-4")).unwrap();
    assert_eq!((judged.verdict, judged.actual.as_str()), (Verdict::Fail, "CPUs 2-3"));
}

#[test]
fn smt_is_not_switched_off_under_a_pinned_thread() {
    let files = LaidOut::of(FILES);
    assert!(smt(&host(&files, "3,4")).unwrap().changes.is_empty(), "CPU 3 would go");
    files.write("sys/devices/system/cpu/smt/control", "forceoff");
    assert!(smt(&host(&files, "2,4")).unwrap().changes.is_empty());
}

#[test]
fn the_farthest_two_decide() {
    let files = LaidOut::of(FILES);
    let found = |cpus: &str| {
        let judged = shared_cache(&host(&files, cpus)).unwrap();
        (judged.verdict, judged.actual)
    };
    assert_eq!(found("0,2"), (Verdict::Ok, "CPUs 0,2: cores that share the L3 cache".into()));
    assert_eq!(found("0-1"), (Verdict::Fail, "CPUs 0-1 are threads of one core".into()));
    assert_eq!(found("0,2,4"), (Verdict::Fail, "CPUs 0 and 4: two packages".into()));
    assert_eq!(found("5").0, Verdict::Skip);
}

#[test]
fn what_the_topology_could_not_read_is_unknown_and_no_machine_without_it() {
    let files = LaidOut::of(FILES);
    let verdicts = |cpus: &str| {
        let host = host(&files, cpus);
        [smt(&host), shared_cache(&host)].map(|judged| judged.map(|judged| judged.verdict))
    };
    files.write("sys/devices/system/cpu/cpu6/topology/thread_siblings_list", "6;7");
    let [threads, caches] = verdicts("4,6");
    assert!(matches!(threads, Err(Unread::Strange { .. })), "{threads:?}");
    assert!(matches!(caches, Err(Unread::Strange { .. })), "{caches:?}");
    assert_eq!(verdicts("0,2"), [Ok(Verdict::Fail), Ok(Verdict::Ok)], "it is not about CPU 6");
    files.write("sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list", "0-");
    let [threads, caches] = verdicts("0,2");
    assert_eq!(threads, Ok(Verdict::Fail));
    assert!(matches!(caches, Err(Unread::Strange { .. })), "{caches:?}");
}
