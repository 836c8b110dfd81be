use ring_tune::Unread;

use super::periodic::{MCE_POLL, SKEW_TICK, STAT_INTERVAL, TIMER_MIGRATION};
use super::watchdog::WATCHDOG;
use crate::check::finding::Change;
use crate::check::finding::{Judged, Verdict};
use crate::check::row::Row;
use crate::check::{Host, Profile, Target};
use crate::laid_out::LaidOut;

/// What a row says of CPUs 2 and 3 of a machine with eight and these files.
fn judged(row: &Row, files: &str) -> Result<Judged, Unread> {
    let laid_out = LaidOut::of(files);
    laid_out.write("sys/devices/system/cpu/online", "0-7");
    let cpus = Some("2-3".parse().unwrap());
    let target = Target { profile: Profile::Spin, cpus, root: Some(laid_out.path().into()) };
    (row.judge)(&Host::look(&target).unwrap())
}

fn verdict(row: &Row, files: &str) -> Verdict {
    judged(row, files).unwrap().verdict
}

const ISOLATED: &str = "=== sys/devices/system/cpu/isolated\n2-7\n";
const TICKLESS: &str = "=== sys/devices/system/cpu/nohz_full\n2-3\n";
const NONE_TICKLESS: &str = "=== sys/devices/system/cpu/nohz_full\n (null)\n";
const HALF_ISOLATED: &str = "=== sys/devices/system/cpu/isolated\n3\n";

#[test]
fn statistics_leave_isolated_cpus_alone_since_6_5() {
    let files = |version: &str, rest: &str| {
        format!("=== proc/sys/vm/stat_interval\n1\n=== proc/sys/kernel/osrelease\n{version}\n{rest}")
    };
    for alone in [ISOLATED, TICKLESS] {
        assert_eq!(verdict(&STAT_INTERVAL, &files("6.5.0", alone)), Verdict::Ok);
        assert_eq!(verdict(&STAT_INTERVAL, &files("6.4.16-300.fc39", alone)), Verdict::Warn);
    }
    for shared in ["", NONE_TICKLESS, HALF_ISOLATED] {
        assert_eq!(verdict(&STAT_INTERVAL, &files("6.5.0", shared)), Verdict::Warn, "{shared}");
    }
    assert!(matches!(judged(&STAT_INTERVAL, &files("nonsense", "")), Err(Unread::Strange { .. })));
}

#[test]
fn timers_of_others_do_not_reach_cpus_that_the_kernel_spares() {
    let judged = |version: &str, value: &str, rest: &str| {
        let files = format!(
            "=== proc/sys/kernel/osrelease\n{version}\n=== proc/sys/kernel/timer_migration\n{value}\n{rest}"
        );
        judged(&TIMER_MIGRATION, &files).unwrap()
    };
    for (version, isolation_is_enough, zero_is_enough) in
        [("6.8.12", true, true), ("6.9.0-rc1", false, false), ("6.18.3", false, false), ("6.19", true, false)]
    {
        let verdict = |value: &str, rest: &str| judged(version, value, rest).verdict;
        let ok_if = |is_ok: bool| if is_ok { Verdict::Ok } else { Verdict::Warn };
        for value in ["0", "1"] {
            assert_eq!(verdict(value, TICKLESS), Verdict::Ok, "{version}");
            let is_ok = isolation_is_enough || (zero_is_enough && value == "0");
            assert_eq!(verdict(value, ISOLATED), ok_if(is_ok), "{version} {value}");
        }
        for rest in ["", NONE_TICKLESS, HALF_ISOLATED] {
            assert_eq!(verdict("1", rest), Verdict::Warn, "{version} {rest}");
            assert_eq!(verdict("0", rest), ok_if(zero_is_enough), "{version} {rest}");
        }
        // What is 0 already cannot be mended by writing 0.
        assert_eq!(judged(version, "1", "").changes.len(), 1, "{version}");
        assert_eq!(judged(version, "0", "").changes.len(), 0, "{version}");
    }
}

#[test]
fn cpus_without_a_tick_have_none_to_skew() {
    let line = "=== proc/cmdline\nquiet skew_tick=0\n";
    let tickless = judged(&SKEW_TICK, &format!("{line}{TICKLESS}")).unwrap();
    assert_eq!(
        (tickless.verdict, tickless.actual.as_str()),
        (Verdict::Skip, "the CPUs do not tick (nohz_full)")
    );
}

#[test]
fn watchdogs_are_moved_to_the_other_cpus_or_end() {
    let files_of = |hard: u8, mask: &str| {
        format!(
            "=== proc/sys/kernel/watchdog\n1\n=== proc/sys/kernel/nmi_watchdog\n{hard}\n\
             === proc/sys/kernel/soft_watchdog\n1\n=== proc/sys/kernel/watchdog_cpumask\n{mask}\n"
        )
    };
    let files = |mask: &str| files_of(0, mask);
    let change =
        |name: &str, value: &str| Change { path: format!("proc/sys/kernel/{name}"), value: value.into() };
    // The mask may hold CPUs that are not online.
    let judged_of = |mask: &str| judged(&WATCHDOG, &files(mask)).unwrap();
    assert_eq!(judged_of("0-15").changes, [change("watchdog_cpumask", "0-1,4-7")]);
    assert_eq!(judged_of("2").changes, [change("soft_watchdog", "0")]);
    let both = judged(&WATCHDOG, &files_of(1, "2")).unwrap();
    assert_eq!(both.changes, [change("nmi_watchdog", "0"), change("soft_watchdog", "0")]);
    assert_eq!(judged_of("2").actual, "soft on 2");
    assert_eq!(judged_of("0-1,4-15").verdict, Verdict::Ok);
    assert!(matches!(judged(&WATCHDOG, &files("x")), Err(Unread::Strange { .. })));
}

#[test]
fn an_interval_in_either_notation_is_told_from_none() {
    let files = |interval: &str| {
        let folder = "sys/devices/system/machinecheck/machinecheck0";
        format!("=== {folder}/ignore_ce\n0\n=== {folder}/check_interval\n{interval}\n")
    };
    for none in ["0", "0x0"] {
        assert_eq!(verdict(&MCE_POLL, &files(none)), Verdict::Ok, "{none}");
    }
    for some in ["300", "12c", "0x12c", "10"] {
        assert_eq!(verdict(&MCE_POLL, &files(some)), Verdict::Warn, "{some}");
    }
    for strange in ["", "never", "-1", "0x"] {
        assert!(matches!(judged(&MCE_POLL, &files(strange)), Err(Unread::Strange { .. })), "{strange}");
    }
}
