use super::*;

#[test]
fn cpus_are_named_in_pairs_of_allowed_ones() {
    let set = |list: &str| list.parse::<CpuSet>().unwrap();
    assert_eq!(parse("0,3", &set("0-1,3")).unwrap(), [0, 3]);
    assert_eq!(parse("1, 1", &set("0-1")).unwrap(), [1, 1]);
    for bad in ["", "0", "0,1,2", "a,b", "0;1", "-1,0"] {
        assert!(parse(bad, &set("0-2")).unwrap_err().to_string().contains("name two CPUs"), "{bad}");
    }
    assert!(parse("0,2", &set("0-1")).unwrap_err().to_string().contains("CPU 2"));
}

#[test]
fn steal_is_read_of_the_cpu_meant() {
    let stat = "cpu  1 2 3 4 5 6 7 99 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu10 1 2 3 4 5 6 7 70 9 10";
    assert_eq!((steal_ticks(stat, 1), steal_ticks(stat, 10), steal_ticks(stat, 2)), (8, 70, 0));
}

#[test]
fn grades_follow_the_host_and_the_run() {
    let mut host = Host {
        cpu: "a processor".into(),
        cpus: [2, 3],
        share: "two cores".into(),
        is_virtual: false,
        tsc_hz: None,
        clocksource: None,
        page_bytes: 4096,
        locked: false,
        grade: Grade::B,
        kernel: None,
        locked_text: "no".into(),
        is_isolated: true,
    };
    let mut grade = |is_virtual, is_isolated, pre_emptions, steal_ticks| {
        (host.is_virtual, host.is_isolated) = (is_virtual, is_isolated);
        host.judge(Disturbance { pre_emptions, steal_ticks });
        host.grade
    };
    assert_eq!(grade(false, true, 0, 0), Grade::A);
    assert_eq!(grade(false, true, 1, 0), Grade::B);
    assert_eq!(grade(false, false, 0, 0), Grade::B);
    assert_eq!(grade(false, true, 0, 1), Grade::C);
    assert_eq!(grade(true, true, 0, 0), Grade::C);
}
