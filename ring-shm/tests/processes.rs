//! Two real processes over one segment.
//!
//! # Safety
//!
//! A descriptor that a child takes over was left open for it by its parent, under the number that it was told. What
//! runs after a `fork` is system calls alone.
#![allow(unsafe_code)]

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;

use common::{Peer, TestName, answer, child as start_child, role, unlocked, word};
use ring_shm::{Descriptor, Region, Segment};

const LONG: Duration = Duration::from_secs(20);
const WORDS: usize = 1000;

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    let (address, argument) = argument.split_once(' ').unwrap();
    let attach = || match &*role {
        "named" => unlocked().attach(argument, LONG).unwrap(),
        "inherited" => {
            // SAFETY: the parent left it open for this process, which takes it over once.
            let descriptor = unsafe { Descriptor::from_raw(argument.parse().unwrap()) };
            unlocked().attach_fd(descriptor, LONG).unwrap()
        }
        #[cfg(feature = "std")]
        "standard input" => {
            use std::os::fd::AsFd;
            let descriptor = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            unlocked().attach_fd(descriptor, LONG).unwrap()
        }
        other => panic!("no such role: {other}"),
    };
    // Keeps the parent's address busy, should it happen to be free here.
    let blocker = unlocked().create_anonymous(64 * 1024).unwrap();
    let segment = attach();
    drop(blocker);
    assert_ne!(segment.base().as_ptr().addr().to_string(), address, "two addresses");
    for index in 0..WORDS {
        // Wait for the parent's word, then answer in the same place.
        while word(&segment, index).load(Ordering::Acquire) != index as u64 + 1 {
            std::thread::yield_now();
        }
        word(&segment, index).store(1_000_000 + index as u64, Ordering::Release);
    }
    answer("done");
}

/// Each word goes to the child and comes back changed.
fn exchange(segment: &Segment, peer: Peer) {
    for index in 0..WORDS {
        let cell = word(segment, index);
        cell.store(index as u64 + 1, Ordering::Release);
        while cell.load(Ordering::Acquire) != 1_000_000 + index as u64 {
            std::thread::yield_now();
        }
    }
    assert_eq!(peer.finish(), ["done"]);
}

fn argument(segment: &Segment, rest: &str) -> String {
    format!("{} {rest}", segment.base().as_ptr().addr())
}

#[test]
fn a_named_segment_carries_words_both_ways() {
    let name = TestName::new("named");
    let segment = unlocked().create(&name, WORDS * 8).unwrap().publish();
    let peer = Peer::start(start_child("named", &argument(&segment, &name)));
    exchange(&segment, peer);
}

#[test]
fn an_inherited_segment_carries_words_both_ways() {
    let segment = unlocked().create_anonymous(WORDS * 8).unwrap().publish();
    let inheritable = segment.inheritable().unwrap();
    let command = start_child("inherited", &argument(&segment, &inheritable.raw().to_string()));
    let peer = Peer::start(command);
    drop(inheritable);
    exchange(&segment, peer);
}

#[cfg(feature = "std")]
#[test]
fn a_segment_as_standard_input_carries_words_both_ways() {
    use std::os::fd::OwnedFd;
    let segment = unlocked().create_anonymous(WORDS * 8).unwrap().publish();
    let mut command = start_child("standard input", &argument(&segment, "-"));
    command.stdin(OwnedFd::from(segment.inheritable().unwrap()));
    let peer = Peer::start(command);
    exchange(&segment, peer);
}

#[test]
fn a_forked_child_removes_nothing() {
    let name = TestName::new("forked");
    let new = unlocked().create(&name, 4096).unwrap();
    // SAFETY: the child makes system calls alone, then ends.
    let process = unsafe { libc::fork() };
    if process == 0 {
        word(&new, 0).store(5, Ordering::Relaxed);
        drop(new);
        // SAFETY: the call has no conditions.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status can be written.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    assert_eq!(status, 0);
    assert_eq!(word(&new, 0).load(Ordering::Relaxed), 5, "the child has the mapping");
    assert!(name.path().exists(), "the name is the parent's");
    let _segment = new.publish();
}
