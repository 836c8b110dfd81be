use super::rt_throttling;
use crate::check::finding::Change;
use crate::check::finding::{Judged, Verdict};
use crate::check::{Host, Profile, Target};
use crate::laid_out::LaidOut;

/// What the row says of CPUs 2 and 3 of a machine with that kernel, limit, and further files.
fn judged(release: &str, runtime_us: i64, files: &str) -> Judged {
    let laid_out = LaidOut::of(files);
    laid_out.write("sys/devices/system/cpu/online", "0-3");
    laid_out.write("proc/sys/kernel/osrelease", release);
    laid_out.write("proc/sys/kernel/sched_rt_runtime_us", format!("{runtime_us}\n"));
    laid_out.write("proc/sys/kernel/sched_rt_period_us", "1000000\n");
    let target = Target {
        profile: Profile::Spin,
        cpus: Some("2-3".parse().unwrap()),
        root: Some(laid_out.path().into()),
    };
    rt_throttling(&Host::look(&target).unwrap()).unwrap()
}

#[test]
fn kernels_before_fair_servers_throttle_below_the_period() {
    for release in ["6.11.9-generic", "5.14.0-427.el9.x86_64", "4.18"] {
        assert_eq!(judged(release, 950_000, "").verdict, Verdict::Warn, "{release}");
        assert_eq!(judged(release, 1_000_000, "").verdict, Verdict::Ok, "{release}");
        assert_eq!(judged(release, -1, "").verdict, Verdict::Ok, "{release}");
    }
}

#[test]
fn the_limit_is_lifted_on_isolated_cpus_alone() {
    assert_eq!(judged("5.14.0", 950_000, "").changes, []);
    let isolated = judged("5.14.0", 950_000, "=== sys/devices/system/cpu/isolated\n2-3\n");
    let change = Change { path: "proc/sys/kernel/sched_rt_runtime_us".into(), value: "-1".into() };
    assert_eq!(isolated.changes, [change]);
}

#[test]
fn later_kernels_throttle_only_with_groups_of_real_time_threads() {
    let groups = "=== sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us\n950000\n";
    assert_eq!(judged("6.12.0", 950_000, "").verdict, Verdict::Info);
    assert_eq!(judged("7.0.1", 950_000, "").verdict, Verdict::Info);
    assert_eq!(judged("6.12.0", 950_000, groups).verdict, Verdict::Warn);
    assert_eq!(judged("6.12.0", -1, groups).verdict, Verdict::Ok);
}

#[test]
fn fair_servers_are_told_by_the_cpus_that_have_them() {
    let servers = |second: &str| {
        format!(
            "=== sys/kernel/debug/sched/fair_server/cpu{{0-3}}/period\n1000000000\n\
             === sys/kernel/debug/sched/fair_server/cpu2/runtime\n0\n\
             === sys/kernel/debug/sched/fair_server/cpu3/runtime\n{second}\n"
        )
    };
    let one = judged("6.12.0", 950_000, &servers("50000000"));
    assert_eq!(one.actual, "no limit, but fair servers: 50000 of 1000000 µs on 3");
    assert_eq!(judged("6.12.0", 950_000, &servers("0")).verdict, Verdict::Ok);
}
