//! What the kernel is told about the memory of a segment.
//!
//! # Safety
//!
//! A forked child touches one word and ends.
#![allow(unsafe_code)]

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;

use common::{TestName, skip, smaps_field, unlocked, word};
use ring_shm::{Locked, Options, Segment};

fn flags(segment: &Segment) -> Vec<String> {
    smaps_field(segment.report().address, "VmFlags").split(' ').map(str::to_owned).collect()
}

/// "dd": not in a dump; "dc": not copied by a fork. See proc(5).
fn is_left_out(segment: &Segment) -> [bool; 2] {
    let flags = flags(segment);
    ["dd", "dc"].map(|flag| flags.iter().any(|found| found == flag))
}

#[test]
fn core_dumps_and_forks_are_as_chosen() {
    let cases: [(Options, [bool; 2]); 3] = [
        (unlocked(), [true, false]),
        (unlocked().in_core_dumps(true), [false, false]),
        (unlocked().across_forks(false), [true, true]),
    ];
    for (options, expected) in cases {
        let name = TestName::new("memory");
        let segment = options.create(&name, 10_000).unwrap().publish();
        assert_eq!(is_left_out(&segment), expected, "{options:?}");
        let report = segment.report();
        assert_eq!([!report.in_core_dumps, !report.across_forks], expected, "{report}");
        assert_eq!(is_left_out(&options.attach(&name, Duration::ZERO).unwrap()), expected, "attached");
        assert_eq!(is_left_out(&options.create_anonymous(10_000).unwrap().publish()), expected, "anonymous");
    }
}

#[test]
fn whoever_does_not_prefault_has_what_it_touches() {
    const BYTES: usize = 1 << 20;
    let name = TestName::new("prefault");
    let segment = unlocked().prefault(false).create(&name, BYTES).unwrap().publish();
    let attach = |options: Options| options.attach(&name, Duration::ZERO).unwrap();
    let present_kib = |segment: &Segment| -> u64 {
        smaps_field(segment.report().address, "Rss").trim_end_matches(" kB").parse().unwrap()
    };
    let all_kib = segment.report().mapped_bytes / 1024;
    assert_eq!(segment.report().reserved_bytes, segment.report().mapped_bytes, "reserved all the same");
    // The header was touched, and the kernel may have mapped up to 64 KiB around it.
    for later in [segment, attach(unlocked().prefault(false)), attach(Options::new().prefault(false))] {
        assert!(present_kib(&later) <= 64, "{} KiB", present_kib(&later));
        assert!(!later.report().prefaulted);
        word(&later, BYTES / 8 - 1).store(1, Ordering::Relaxed);
        assert!((4..=128).contains(&present_kib(&later)));
    }
    let prefaulted = attach(unlocked());
    assert!(prefaulted.report().prefaulted);
    assert_eq!(present_kib(&prefaulted), all_kib);
}

#[test]
fn what_is_locked_without_prefaulting_is_locked_when_it_is_touched() {
    let segment = Options::new().prefault(false).create_anonymous(64 << 10).unwrap().publish();
    let report = segment.report();
    if report.locked != Locked::Yes {
        return skip("locking what is touched", "the limit on locked memory forbids it");
    }
    assert!(report.to_string().contains("locked    yes, each page from its first touch on\n"), "{report}");
    // See proc(5): locked, and "on fault" has no flag of its own.
    assert!(flags(&segment).iter().any(|flag| flag == "lo"));
    let locked_kib =
        || -> u64 { smaps_field(report.address, "Locked").trim_end_matches(" kB").parse().unwrap() };
    let before = locked_kib();
    word(&segment, (60 << 10) / 8).store(1, Ordering::Relaxed);
    assert!(before < locked_kib() && locked_kib() < 64, "{before} {}", locked_kib());
}

/// The signal that ends a forked child which reads a word of the segment, 0 for none.
fn signal_of_a_child(segment: &Segment) -> i32 {
    // SAFETY: the child reads a word and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Whoever handles the signal in this process, a sanitizer say, is not asked.
        // SAFETY: the default action ends the child.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        let read = word(segment, 0).load(Ordering::Relaxed);
        // SAFETY: no conditions.
        unsafe { libc::_exit(i32::from(read != 7)) }
    }
    let mut status = 0;
    // SAFETY: a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFSIGNALED(status) || libc::WEXITSTATUS(status) == 0);
    if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 }
}

#[test]
fn a_forked_child_has_the_segment_unless_it_is_not_to() {
    for (across, signal) in [(true, 0), (false, libc::SIGSEGV)] {
        let segment = unlocked().across_forks(across).create_anonymous(4096).unwrap().publish();
        word(&segment, 0).store(7, Ordering::Relaxed);
        assert_eq!(signal_of_a_child(&segment), signal);
    }
}
