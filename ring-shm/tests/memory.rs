//! What the kernel is told about the memory of a segment.
//!
//! # Safety
//!
//! A forked child touches one word and ends.
#![allow(unsafe_code)]

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;

use common::{TestName, smaps_field, unlocked, word};
use ring_shm::{Options, Segment};

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
        assert_eq!(is_left_out(&options.attach(&name, Duration::ZERO).unwrap()), expected, "attached");
        assert_eq!(is_left_out(&options.create_anonymous(10_000).unwrap().publish()), expected, "anonymous");
    }
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
