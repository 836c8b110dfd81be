use super::*;
use crate::bench::arms::Change;
use crate::bench::suites::Suite;

const SCALE: Scale = Scale { rounds: 1, quick: true, compare: false, at_most: None };

fn cases(suite: Suite, pair: bool) -> Vec<String> {
    suite.plan(SCALE, pair).cases.into_iter().map(|case| case.name).collect()
}

#[test]
fn the_cases_of_pingpong() {
    assert_eq!(
        cases(Suite::Pingpong, true),
        [
            "floor",
            "floor/8",
            "floor/32",
            "floor/1024",
            "same-line",
            "spsc",
            "spsc/8",
            "spsc/32",
            "spsc/1024",
            "shm-spsc",
            "shm-spsc/1024",
            "bytes",
            "mpmc",
            "broadcast",
            "pipe",
            "unix",
            "eventfd"
        ]
    );
    assert_eq!(cases(Suite::Pingpong, false), ["pipe", "unix", "eventfd"]);
}

#[test]
fn the_cases_of_stream() {
    let mut expected = Vec::new();
    for ring in ["spsc", "index"] {
        for reader in ["", "/fast", "/slow"] {
            expected.extend([8, 16, 32, 1024].map(|depth| format!("{ring}/{depth}{reader}")));
        }
    }
    expected.extend(["shm-spsc/16", "shm-spsc/1024"].map(String::from));
    expected.extend(["notify/1024", "notify-plain/1024"].map(String::from));
    expected.extend(["bytes/1KiB", "memcpy/1KiB"].map(String::from));
    for threads in ["1-1", "2-2"] {
        expected.extend(["", "/16"].map(|depth| format!("mpmc/{threads}{depth}")));
    }
    expected.push("broadcast/1-1".into());
    assert_eq!(cases(Suite::Stream, true), expected);
    let plan = Suite::Stream.plan(SCALE, false);
    assert!(plan.cases.is_empty());
    assert_eq!(plan.missing.len(), expected.len());
}

#[test]
fn the_cases_of_notify() {
    let mut expected = Vec::new();
    for strategy in ["doorbell", "futex", "eventfd", "adaptive", "bare-futex", "pipe", "unix"] {
        expected
            .extend(["0us", "1us", "10us", "100us", "1ms", "10ms"].map(|gap| format!("{strategy}/{gap}")));
    }
    assert_eq!(cases(Suite::Notify, true), expected);
    assert_eq!(Suite::Notify.plan(SCALE, false).missing.len(), expected.len(), "the sender spins");
}

#[test]
fn messages_are_due_at_the_gap_that_the_name_tells() {
    let plan = Suite::Notify.plan(SCALE, true);
    let pace_of = |name: &str| {
        let case = plan.cases.iter().find(|case| case.name == name).unwrap();
        let series = plan.series[case.source.series()[0]];
        assert_eq!(series.closely, None);
        let (Some(Slice::Paced { pace, .. }), Some(Slice::Paced { pace: counted, .. })) =
            (series.afterwards, case.counted)
        else {
            panic!("{name} has no pace")
        };
        assert_eq!(pace, counted);
        pace
    };
    assert_eq!(pace_of("futex/0us"), Pace::BackToBack);
    assert_eq!(pace_of("pipe/1us"), Pace::Every { ns: 1_000 });
    assert_eq!(pace_of("adaptive/10ms"), Pace::Every { ns: 10_000_000 });
}

#[test]
fn system_calls_are_counted_where_somebody_may_be_woken() {
    let plan = Suite::Stream.plan(SCALE, true);
    let counted: Vec<&str> =
        plan.cases.iter().filter(|case| case.counted.is_some()).map(|case| case.name.as_str()).collect();
    assert_eq!(counted, ["notify/1024", "notify-plain/1024"]);
}

#[test]
fn the_cases_of_breakdown() {
    let found = cases(Suite::Breakdown, true);
    for case in [
        "push-alone",
        "handover",
        "spsc",
        "spsc+seqcst",
        "spsc+prefetch",
        "slot/128",
        "pages/4KiB",
        "pages/2MiB",
        "fence-per-message",
        "eventfd-per-message",
        "syscall",
    ] {
        assert!(found.iter().any(|found| found == case), "{case} is missing");
    }
    assert_eq!(cases(Suite::Breakdown, false), ["push-alone", "syscall"]);
}

#[test]
fn a_ring_is_compared_with_as_many_lines_as_it_has_slots() {
    let plan = Suite::Pingpong.plan(SCALE, true);
    let floor_of = |name: &str| {
        let case = plan.cases.iter().find(|case| case.name == name).unwrap();
        let series = case.floor.as_ref().unwrap().series();
        series.iter().map(|&series| plan.specs[plan.series[series].arm]).collect::<Vec<_>>()
    };
    let kind = Kind::Usual;
    let floor = |lines| [1, lines].map(|lines| Spec::Rotating { kind, lines });
    assert_eq!(floor_of("spsc/8"), floor(8));
    assert_eq!(floor_of("spsc"), floor(16));
    assert_eq!(floor_of("spsc/1024"), floor(1024));
    assert_eq!(floor_of("shm-spsc"), floor(16));
    assert_eq!(floor_of("shm-spsc/1024"), floor(1024));
    assert_eq!(floor_of("pipe"), floor(16));
    assert_eq!(floor_of("floor/1024"), floor(16));
}

#[test]
fn each_ring_through_ring_shm_has_a_bare_one_beside_it() {
    for suite in [Suite::Pingpong, Suite::Stream] {
        let plan = suite.plan(SCALE, true);
        let series_of = |name: &str| {
            let case = plan.cases.iter().find(|case| case.name == name).unwrap();
            plan.series[case.source.series()[0]]
        };
        let through_shm: Vec<&str> = plan
            .cases
            .iter()
            .map(|case| case.name.as_str())
            .filter(|name| name.starts_with("shm-"))
            .collect();
        assert_eq!(through_shm.len(), 2);
        for name in through_shm {
            let (shm, bare) = (series_of(name), series_of(&name[4..]));
            assert_eq!((shm.closely, shm.afterwards), (bare.closely, bare.afterwards));
            let Spec::Shm { depth } = plan.specs[shm.arm] else { panic!("{name} is another arm") };
            let same = Spec::Spsc { kind: Kind::Usual, depth, change: Change::None };
            assert_eq!(plan.specs[bare.arm], same, "{name}");
        }
    }
}

#[test]
fn pages_are_compared_with_lines_in_pages_of_the_same_kind() {
    let plan = Suite::Breakdown.plan(SCALE, true);
    for (name, kind) in [("pages/4KiB", Kind::Base), ("pages/2MiB", Kind::Huge)] {
        let case = plan.cases.iter().find(|case| case.name == name).unwrap();
        let series = case.source.series().iter().chain(case.floor.as_ref().unwrap().series());
        for &series in series {
            assert_eq!(plan.specs[plan.series[series].arm].kind(), kind);
        }
    }
}

#[test]
fn one_series_serves_all_who_need_it() {
    let plan = Suite::Pingpong.plan(SCALE, true);
    // 1, 8, 16, 32 and 1,024 lines in turn, one for both ways, nine rings, three channels of the kernel.
    assert_eq!((plan.series.len(), plan.specs.len()), (18, 18));
    // A ring is one arm, whatever its reader does.
    assert_eq!(Suite::Stream.plan(SCALE, true).specs.len(), 5 + 8 + 2 + 2 + 7);
}

#[test]
fn other_crates_are_compared_with_ours_and_with_a_floor_in_threads() {
    let scale = Scale { compare: true, ..SCALE };
    let plan = Suite::Pingpong.plan(scale, true);
    for name in ["spsc-threads", "rtrb", "crossbeam", "ringbuf", "iceoryx2", "disruptor"] {
        let case = plan.cases.iter().find(|case| case.name == name).unwrap();
        for &series in case.source.series().iter().chain(case.floor.as_ref().unwrap().series()) {
            assert!(matches!(plan.specs[plan.series[series].arm], Spec::Threads(_)), "{name}");
        }
    }
    let names: Vec<String> =
        Suite::Stream.plan(scale, true).cases.into_iter().map(|case| case.name).collect();
    for name in ["spsc-threads/16", "rtrb/1024", "mpmc-threads/1-1", "crossbeam/2-2"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing");
    }
}

#[test]
fn what_the_host_lacks_is_taken_out_and_named() {
    let mut plan = Suite::Breakdown.plan(SCALE, true);
    let before = plan.cases.len();
    plan.forget(Kind::Huge, "no free pages of 2 MiB");
    assert_eq!(plan.cases.len(), before - 1);
    assert_eq!(plan.missing, [("pages/2MiB".into(), "no free pages of 2 MiB".into())]);
}

#[test]
fn a_full_run_has_samples_for_every_percentile() {
    let full = Scale { rounds: 25, quick: false, compare: false, at_most: None };
    let plan = Suite::Pingpong.plan(full, true);
    let ring = plan.cases.iter().find(|case| case.name == "spsc").unwrap();
    let [series] = ring.source.series() else { panic!("a ring is one series") };
    let Some(Slice::RoundTrips { singles, .. }) = plan.series[*series].afterwards else {
        panic!("a closed loop")
    };
    assert!(singles * 25 >= 1_000_000);

    for series in &Suite::Stream.plan(full, true).series {
        if let Some(Slice::Stream { messages, .. }) = series.closely {
            assert!(messages * 25 >= 1_000_000 && messages % (10 * measure::STREAM_BLOCK) == 0);
        }
    }
}

#[test]
fn of_a_floor_that_is_no_case_nobody_measures_the_tails() {
    let has_tails = |suite: Suite| {
        let plan = suite.plan(SCALE, true);
        let floors =
            plan.series.iter().filter(|series| matches!(plan.specs[series.arm], Spec::Rotating { .. }));
        floors.map(|series| series.afterwards.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(has_tails(Suite::Pingpong), [true; 5]);
    assert_eq!(has_tails(Suite::Stream), [false; 5]);
}
