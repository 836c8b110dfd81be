//! Two real processes over one segment.
//!
//! # Safety
//!
//! A descriptor that a child takes over was left open for it by its parent, under the number that it was
//! told. What runs after a `fork` is system calls alone.
#![allow(unsafe_code)]

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::fs::File;
use std::os::fd::FromRawFd;

use common::{Peer, TestName, answer, child as start_child, role, unlocked, wait_until, word};
use ring_core::spsc;
use ring_shm::{Descriptor, Error, Options, Region, Segment};

const LONG: Duration = Duration::from_secs(20);
const WORDS: usize = 1000;
const MESSAGES: u64 = 10_000;

type Message = [u64; 7];

fn message(number: u64) -> Message {
    [number, !number, 1, 2, 3, 4, number ^ 5]
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    match &*role {
        "push" => return push(&argument),
        "truncate" => return truncate(&argument),
        "punch" => return punch(&argument),
        _ => {}
    }
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
        wait_until(|| word(&segment, index).load(Ordering::Acquire) == index as u64 + 1);
        word(&segment, index).store(1_000_000 + index as u64, Ordering::Release);
    }
    answer("done");
}

/// Each word goes to the child and comes back changed.
fn exchange(segment: &Segment, peer: Peer) {
    for index in 0..WORDS {
        let cell = word(segment, index);
        cell.store(index as u64 + 1, Ordering::Release);
        wait_until(|| cell.load(Ordering::Acquire) == 1_000_000 + index as u64);
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

type Ring<'a> = (spsc::Producer<Message, &'a Segment>, spsc::Consumer<Message, &'a Segment>);

/// Hands an anonymous segment with a ring, and one message in it, to a child, and looks at the ring afterwards.
fn after_a_child(role: &str, answers: &[&str], look: impl FnOnce(Ring)) {
    let layout = spsc::Layout::<Message>::new(16).unwrap();
    let new = unlocked().create_anonymous(layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    let segment = new.publish();
    assert!(segment.report().sealed);
    let mut producer = spsc::Producer::attach(&segment).unwrap();
    let consumer = spsc::Consumer::attach(&segment).unwrap();
    producer.try_push(message(0)).unwrap();
    let inheritable = segment.inheritable().unwrap();
    let peer = Peer::start(start_child(role, &inheritable.raw().to_string()));
    assert_eq!(peer.finish(), answers);
    look((producer, consumer));
}

fn take_over(number: &str) -> File {
    // SAFETY: the parent left it open for this process, which takes it over once.
    unsafe { File::from_raw_fd(number.parse().unwrap()) }
}

#[test]
fn whoever_is_handed_an_anonymous_segment_cannot_change_its_length() {
    after_a_child("truncate", &["refused"], |(mut producer, mut consumer)| {
        assert_eq!(consumer.try_pop(), Ok(message(0)));
        for number in 1..100 {
            producer.try_push(message(number)).unwrap();
            assert_eq!(consumer.try_pop(), Ok(message(number)));
        }
    });
}

fn truncate(number: &str) {
    let inherited = take_over(number);
    let path = format!("/proc/self/fd/{number}");
    let opened_anew = File::options().read(true).write(true).open(path).unwrap();
    for file in [inherited, opened_anew] {
        for bytes in [0, 1, 1 << 20] {
            let error = file.set_len(bytes).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{bytes} bytes");
        }
    }
    answer("refused");
}

/// No seal forbids this; the memory is zero, and there.
#[test]
fn whoever_punches_a_hole_spoils_the_ring_and_kills_nobody() {
    after_a_child("punch", &["punched"], |(mut producer, mut consumer)| {
        assert_ne!(consumer.try_pop(), Ok(message(0)), "it was there");
        let pushed = (1..100).filter(|number| producer.try_push(message(*number)).is_ok()).count();
        assert!(pushed < 16, "nobody pops, and one was pushed before");
        let popped = (1..100).filter(|_| consumer.try_pop().is_ok()).count();
        assert!(popped <= 16, "no more than there are slots");
    });
}

fn punch(number: &str) {
    common::punch_hole(&take_over(number), 0, 1 << 20);
    answer("punched");
}

#[test]
fn a_ring_in_a_segment_carries_messages() {
    let name = TestName::new("ring");
    let layout = spsc::Layout::<Message>::new(16).unwrap();
    let new = Options::new().create(&name, layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    let segment = new.publish();
    let peer = Peer::start(start_child("push", &name));
    let mut consumer = spsc::Consumer::<Message, _>::attach(&segment).unwrap();
    for expected in 0..MESSAGES {
        let mut found = Err(spsc::PopError::Empty);
        wait_until(|| {
            found = consumer.try_pop();
            !matches!(found, Err(spsc::PopError::Empty))
        });
        assert_eq!(found, Ok(message(expected)));
    }
    peer.finish();
    assert!(matches!(consumer.try_pop(), Err(spsc::PopError::Closed)));
}

fn push(name: &str) {
    let segment = Options::new().attach(name, LONG).unwrap();
    let mut producer = spsc::Producer::<Message, _>::attach(&segment).unwrap();
    for number in 0..MESSAGES {
        wait_until(|| match producer.try_push(message(number)) {
            Err(spsc::PushError::Full(_)) => false,
            result => result.is_ok() || panic!("{result:?}"),
        });
    }
    producer.close();
}

#[test]
fn a_ring_of_another_type_is_the_rings_own_error() {
    let attach = || -> Result<(), Error> {
        let layout = spsc::Layout::<Message>::new(16)?;
        let new = Options::new().create_anonymous(layout.bytes())?;
        layout.init(&new)?;
        spsc::Consumer::<u64, _>::attach(&new.publish())?;
        Ok(())
    };
    let expected = ring_core::Error::WrongElementSize { found: 56, expected: 8 };
    assert_eq!(attach(), Err(Error::Ring(expected)));
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
