//! A process is killed after each instruction of an operation, or before and after each of its system calls, by SIGKILL,
//! and who survives goes on.
//!
//! # Safety
//!
//! A role is taken over only after its owner was killed and waited for. What runs in the forked child calls nothing but the
//! ring and its segment: see `stepper`.
#![allow(unsafe_code)]
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/stepper.rs"]
mod stepper;

mod broadcast;
mod bytes;
mod claims;
mod create;
mod mpmc;
mod spsc;

use core::time::Duration;
use std::time::Instant;

use common::unlocked;
use ring_core::{AssumeGone, Role};
use ring_shm::Segment;
use stepper::{Killed, Pace, Victim, killed_at_each};

/// Seven words that are all alike, so that half of a message shows.
type Message = [u64; 7];

/// In which whoever survives goes on.
const SOON: Duration = Duration::from_millis(100);

fn message(number: u64) -> Message {
    [number.wrapping_mul(0x9e37_79b9_7f4a_7c15); 7]
}

/// What the role's owner, who was killed, may have left is cleared up.
fn gone(role: Role) -> AssumeGone {
    // SAFETY: the child that had the role was waited for.
    unsafe { AssumeGone::of(role) }
}

/// The same after each instruction of an operation on a ring in `segment`, made anew each time.
fn killed_at_each_instruction<'a, S>(
    segment: &'a Segment,
    prepare: impl Fn(&'a Segment) -> S,
    victim: impl Fn(&'a Segment, &dyn Fn()),
    check: impl Fn(&'a Segment, S, bool),
) {
    killed_at_each(
        Pace::Instruction,
        || prepare(segment),
        |_, mark| victim(segment, mark),
        |survivor, killed| check(segment, survivor, killed.is_through),
    );
}

/// Does what must not take long.
fn in_time<T>(act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = act();
    assert!(start.elapsed() < SOON, "it took {:?}", start.elapsed());
    done
}

fn new_segment() -> Segment {
    unlocked().create_anonymous(1 << 16).unwrap().publish()
}

/// Makes a ring anew, whoever was killed in the last one.
fn anyone() -> AssumeGone {
    // SAFETY: each child was waited for, and each handle of this process was dropped.
    unsafe { AssumeGone::all() }
}
