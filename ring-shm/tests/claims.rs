//! Roles that are claimed by locks: who has them, who sees it, and what becomes of them.
//!
//! # Safety
//!
//! What runs in a forked child is system calls and drops of what is the child's own, before it ends without cleaning up.
//! Descriptors that a child takes over were left open for it, under the number that it was told.
#![allow(unsafe_code)]

mod common;

use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use common::{
    OtherUser, Peer, TestName, answer, child as start_child, descriptors_of, in_namespace, is_root, role,
    skip, unlocked,
};
use ring_core::{Role, broadcast, bytes, mpmc, spsc};
use ring_shm::{Claim, Error, Options, Presence, Segment};

const LONG: Duration = Duration::from_secs(20);
/// Until a kill is known: 5 ms were seen at most, on an idle machine.
const SOON: Duration = Duration::from_secs(2);

type Producer = spsc::Producer<u64, Claim>;
type Consumer = spsc::Consumer<u64, Claim>;

fn layout() -> spsc::Layout<u64> {
    spsc::Layout::new(8).unwrap()
}

fn anonymous() -> Producer {
    unlocked().create_anonymous_ring(&layout()).unwrap()
}

fn taken<T>(result: Result<T, Error>) -> u32 {
    match result {
        Err(Error::RoleTaken { process, .. }) => process,
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("the role was free"),
    }
}

fn inheritable(segment: &Segment) -> OwnedFd {
    segment.inheritable().unwrap().into()
}

/// With the segment on standard input where the argument is "-".
fn attach<S: ring_shm::Side>(argument: &str, timeout: Duration) -> Result<S, Error> {
    match argument {
        "-" => unlocked().attach_ring_fd(std::io::stdin().as_fd().try_clone_to_owned().unwrap(), timeout),
        name => unlocked().attach_ring(name, timeout),
    }
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::sleep(LONG);
    }
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    match &*role {
        "produce" => {
            let mut producer: Producer = attach(&argument, LONG).unwrap();
            producer.try_push(1).unwrap();
            answer(&std::process::id().to_string());
            wait_for_ever();
        }
        "try to produce" => match attach::<Producer>(&argument, Duration::ZERO) {
            Ok(_) => answer("taken"),
            Err(error) => answer(&format!("{error:?}")),
        },
        "consume two" => {
            let mut consumer: Consumer = attach(&argument, LONG).unwrap();
            assert_eq!((consumer.try_pop(), consumer.try_pop()), (Ok(1), Ok(2)));
            answer("done");
        }
        "participate" => {
            let mut producer: mpmc::Producer<u64, Claim> = attach(&argument, LONG).unwrap();
            producer.try_push(1).unwrap();
            core::mem::forget(producer.try_reserve().unwrap());
            answer("stuck");
            wait_for_ever();
        }
        "fork" => {
            let producer: Producer = attach(&argument, LONG).unwrap();
            // SAFETY: the child makes system calls alone.
            match unsafe { libc::fork() } {
                0 => {
                    // Should nobody be left to kill it: it must not keep what it inherited for ever, a terminal say.
                    // SAFETY: no conditions.
                    unsafe { libc::alarm(60) };
                    loop {
                        // SAFETY: no conditions.
                        unsafe { libc::pause() };
                    }
                }
                child => answer(&child.to_string()),
            }
            core::hint::black_box(&producer);
            wait_for_ever();
        }
        other => panic!("no such role: {other}"),
    }
}

/// Waits for what a kill brings.
fn soon(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < SOON, "not within {SOON:?}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Claims a role that has been given back. Programs that other tests are starting just then share the lock until their
/// descriptors are closed.
fn claim_soon(segment: &Arc<Segment>, role: Role) -> Claim {
    soon(|| segment.presence(role) != Ok(Presence::Alive));
    segment.claim(role).unwrap()
}

#[test]
fn a_role_is_claimed_once_and_the_error_names_who_has_it() {
    let name = TestName::new("claimed-once");
    let producer: Producer = unlocked().create_ring(&name, &layout()).unwrap();
    let own = std::process::id();
    assert_eq!(taken(unlocked().attach_ring::<Producer>(&name, Duration::ZERO)), own);
    assert_eq!(taken(producer.region().segment().claim(Role::Producer)), own);
    let error = unlocked().attach_ring::<Producer>(&name, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains(&format!("process {own}")), "{error}");
    let said = Peer::start(start_child("try to produce", &name)).finish().concat();
    assert_eq!(said, format!("RoleTaken {{ role: Producer, process: {own} }}"));

    let before = producer.region().owner(Role::Producer).unwrap().incarnation;
    let segment = Arc::clone(producer.region().segment());
    drop(producer);
    soon(|| segment.presence(Role::Producer) == Ok(Presence::Gone));
    assert_eq!(Peer::start(start_child("try to produce", &name)).finish(), ["taken"]);
    let producer: Producer = unlocked().attach_ring(&name, SOON).unwrap();
    assert_eq!(producer.region().owner(Role::Producer).unwrap().incarnation, before + 2);
}

/// Whoever has claimed a role and not attached has not said who it is, and the one before is not to be blamed.
#[test]
fn the_error_does_not_name_who_had_the_role_before() {
    let name = TestName::new("had-before");
    let producer: Producer = unlocked().create_ring(&name, &layout()).unwrap();
    let segment = Arc::clone(producer.region().segment());
    drop(producer);
    let _claim = claim_soon(&segment, Role::Producer);
    assert_eq!(segment.owner(Role::Producer).unwrap().process, std::process::id());
    assert_eq!(taken(segment.claim(Role::Producer)), 0);
    assert_eq!(taken(unlocked().attach_ring::<Producer>(&name, Duration::ZERO)), 0);
}

#[test]
fn a_killed_owner_is_gone_and_its_successor_goes_on() {
    let name = TestName::new("killed-owner");
    let mut consumer: Consumer = unlocked().create_ring(&name, &layout()).unwrap();
    let presence = |consumer: &Consumer| consumer.region().presence(Role::Producer).unwrap();
    assert_eq!(presence(&consumer), Presence::NeverCame);
    for incarnation in 1..=3 {
        let mut peer = Peer::start(start_child("produce", &name));
        let process: u32 = peer.hear().parse().unwrap();
        assert_eq!(presence(&consumer), Presence::Alive);
        let owner = consumer.peer();
        assert_eq!((owner.incarnation, owner.held, owner.process), (2 * incarnation - 1, true, process));
        assert_eq!(consumer.try_pop(), Ok(1));
        peer.kill();
        soon(|| presence(&consumer) == Presence::Gone);
        assert!(consumer.peer().held, "it was killed");
        let mut successor: Producer = unlocked().attach_ring(&name, SOON).unwrap();
        successor.try_push(2).unwrap();
        assert_eq!(consumer.try_pop(), Ok(2));
        drop(successor);
        soon(|| presence(&consumer) == Presence::Gone);
        assert!(!consumer.peer().held, "it has left");
    }
}

#[test]
fn attaching_waits_for_a_role_as_long_as_it_is_told() {
    let name = TestName::new("role-wait");
    let producer: Producer = unlocked().create_ring(&name, &layout()).unwrap();
    let start = Instant::now();
    taken(unlocked().attach_ring::<Producer>(&name, Duration::from_millis(30)));
    assert!(start.elapsed() >= Duration::from_millis(30));
    let waiting = std::thread::spawn({
        let name = name.to_string();
        move || unlocked().attach_ring::<Producer>(&name, LONG).map(drop)
    });
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished());
    drop(producer);
    waiting.join().unwrap().unwrap();
}

#[test]
fn whoever_shares_a_description_does_not_share_its_roles() {
    let producer = anonymous();
    let own = std::process::id();
    // Duplicated.
    let duplicate = producer.region().descriptor().as_fd().try_clone_to_owned().unwrap();
    assert_eq!(taken(unlocked().attach_ring_fd::<Producer>(duplicate, Duration::ZERO)), own);
    // Inherited.
    let mut command = start_child("try to produce", "-");
    command.stdin(inheritable(producer.region()));
    let said = Peer::start(command).finish().concat();
    assert_eq!(said, format!("RoleTaken {{ role: Producer, process: {own} }}"));
    // Opened again by hand.
    let path = format!("/proc/self/fd/{}", producer.region().descriptor().raw());
    let again = std::fs::File::options().read(true).write(true).open(path).unwrap();
    assert_eq!(taken(unlocked().attach_ring_fd::<Producer>(OwnedFd::from(again), Duration::ZERO)), own);
    // Forked: the child is another process and does not have what its parent has.
    let segment = Arc::clone(producer.region().segment());
    // SAFETY: the child makes system calls, and drops nothing of its parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_right = matches!(segment.claim(Role::Producer), Err(Error::RoleTaken { .. }))
            && segment.claim(Role::Consumer).is_ok()
            && producer.region().presence(Role::Producer) == Ok(Presence::Alive);
        // SAFETY: no conditions.
        unsafe { libc::_exit(i32::from(!is_right)) };
    }
    assert_eq!(status_of(child), 0, "in the forked child");
    // And what the child did takes nothing from the parent.
    assert_eq!(taken(segment.claim(Role::Producer)), own);
    drop(producer);
    claim_soon(&segment, Role::Producer);
}

fn status_of(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: a child of this process; the status is written to the integer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

#[test]
fn a_descriptor_that_cannot_be_written_is_refused() {
    let producer = anonymous();
    let path = format!("/proc/self/fd/{}", producer.region().descriptor().raw());
    let read_only = std::fs::File::open(path).unwrap();
    let error = unlocked().attach_ring_fd::<Consumer>(OwnedFd::from(read_only), Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::NoPermission { .. }), "{error:?}");
    assert_eq!(producer.region().presence(Role::Consumer), Ok(Presence::NeverCame));
}

#[test]
fn a_forked_child_keeps_no_role_alive() {
    let name = TestName::new("forked-child");
    let consumer: Consumer = unlocked().create_ring(&name, &layout()).unwrap();
    let mut parent = Peer::start(start_child("fork", &name));
    let child: libc::pid_t = parent.hear().parse().unwrap();
    assert_eq!(consumer.region().presence(Role::Producer), Ok(Presence::Alive));
    parent.kill();
    soon(|| consumer.region().presence(Role::Producer) == Ok(Presence::Gone));
    // SAFETY: asks only whether the child is there: it outlives its parent.
    assert_eq!(unsafe { libc::kill(child, 0) }, 0);
    unlocked().attach_ring::<Producer>(&name, Duration::ZERO).unwrap();
    // SAFETY: it is the grandchild that was told.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

#[test]
fn a_forked_child_that_drops_its_copies_takes_nothing_from_its_parent() {
    let name = TestName::new("forked-drop");
    let producer: Producer = unlocked().create_ring(&name, &layout()).unwrap();
    let consumer: Consumer = unlocked().attach_ring(&name, Duration::ZERO).unwrap();
    let open = || descriptors_of(&name.path());
    let before = open();
    // SAFETY: the child drops its copies, and makes system calls.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Its number may be another file's by now.
        let other = std::fs::File::open("/dev/null").unwrap();
        let number = other.as_raw_fd();
        drop(producer);
        // SAFETY: no conditions.
        let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
        // SAFETY: no conditions.
        unsafe { libc::_exit(i32::from(!is_open)) };
    }
    assert_eq!(status_of(child), 0, "the child closed a descriptor of another file");
    assert_eq!(open(), before);
    assert!(name.path().exists());
    assert_eq!(consumer.region().presence(Role::Producer), Ok(Presence::Alive));
    taken(unlocked().attach_ring::<Producer>(&name, Duration::ZERO));
    drop(producer);
    assert_eq!(open(), before - 2, "the segment's and the claim's");
}

#[test]
fn a_dropped_claim_is_free_at_once_while_children_are_forked() {
    let producer = anonymous();
    let segment = Arc::clone(producer.region().segment());
    drop(producer);
    let is_done = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(core::sync::atomic::Ordering::Relaxed) {
                // SAFETY: the child ends at once.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: no conditions.
                    unsafe { libc::_exit(0) };
                }
                assert_eq!(status_of(child), 0);
            }
        });
        let failed = (0..5000).filter(|_| segment.claim(Role::Producer).is_err()).count();
        is_done.store(true, core::sync::atomic::Ordering::Relaxed);
        assert_eq!(failed, 0);
    });
}

#[test]
fn a_role_without_a_claim_is_nobodys_to_judge() {
    let name = TestName::new("bare");
    let layout = layout();
    let new = unlocked().create(&name, layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    let segment = Arc::new(new.publish());
    let bare = spsc::Producer::<u64, _>::attach(&segment).unwrap();
    assert_eq!(segment.presence(Role::Producer), Ok(Presence::Unknown));
    let error = unlocked().attach_ring::<Producer>(&name, Duration::ZERO).unwrap_err();
    assert_eq!(error, Error::Ring(ring_core::Error::Taken { role: Role::Producer }));
    drop(bare);
    soon(|| segment.presence(Role::Producer) == Ok(Presence::Gone));

    // A handle of another role through a claim's region is as bare.
    let producer: Producer = unlocked().attach_ring(&name, Duration::ZERO).unwrap();
    let bare = spsc::Consumer::<u64, _>::attach(producer.region()).unwrap();
    assert_eq!(segment.presence(Role::Consumer), Ok(Presence::Unknown));
    taken_in_ring(unlocked().attach_ring::<Consumer>(&name, Duration::ZERO));
    drop(bare);
    // And a second handle of the same role is not the claim's former owner.
    let liveness = producer.region().liveness();
    let error = spsc::Producer::<u64, _>::take_over(producer.region(), &liveness).err();
    assert_eq!(error, Some(ring_core::Error::Taken { role: Role::Producer }));
}

#[test]
fn the_locks_of_one_segment_say_nothing_of_a_ring_in_another() {
    let name = TestName::new("others");
    let layout = layout();
    let producer: Producer = unlocked().create_ring(&name, &layout).unwrap();
    let consumer: Consumer = unlocked().attach_ring(&name, Duration::ZERO).unwrap();
    let ring = producer.region().segment();

    // Nobody has a role there, and both had many owners.
    let others: Producer = anonymous();
    let other = Arc::clone(others.region().segment());
    drop(others);
    for _ in 0..5 {
        for role in [Role::Producer, Role::Consumer] {
            let claim = other.claim(role).unwrap();
            match role {
                Role::Producer => drop(spsc::Producer::<u64, _>::attach(claim).unwrap()),
                _ => drop(spsc::Consumer::<u64, _>::attach(claim).unwrap()),
            }
        }
    }
    let [as_producer, as_consumer] =
        [Role::Producer, Role::Consumer].map(|role| other.claim(role).unwrap().liveness());
    for liveness in [other.liveness(), as_producer, as_consumer] {
        taken_in_ring(spsc::Producer::<u64, _>::take_over(ring, &liveness).map_err(Error::from));
        taken_in_ring(spsc::Consumer::<u64, _>::take_over(ring, &liveness).map_err(Error::from));
        taken_in_ring(layout.init_over(ring, &liveness).map_err(Error::from));
    }
    drop((producer, consumer));

    let layout = mpmc::Layout::<u64>::new(8).unwrap().participants(1).unwrap();
    let producer: mpmc::Producer<u64, Claim> = unlocked().create_anonymous_ring(&layout).unwrap();
    let new = unlocked().create_anonymous(layout.bytes()).unwrap();
    layout.init(&new).unwrap();
    let other = Arc::new(new.publish());
    for liveness in [other.liveness(), other.claim(Role::Participant(1)).unwrap().liveness()] {
        let segment = producer.region().segment();
        taken_in_ring(mpmc::Producer::<u64, _>::take_over(segment, 1, &liveness).map_err(Error::from));
        let error = mpmc::Consumer::<u64, _>::attach_with(segment, &liveness).err();
        assert_eq!(error, Some(ring_core::Error::TooManyParticipants { participants: 1 }));
        producer.recover(&liveness).unwrap();
        taken_in_ring(layout.init_over(segment, &liveness).map_err(Error::from));
    }
    assert!(producer.participant(1).unwrap().held);
}

fn taken_in_ring<T>(result: Result<T, Error>) {
    match result {
        Err(Error::Ring(ring_core::Error::Taken { .. })) => {}
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("the role was free"),
    }
}

#[test]
fn a_ring_without_the_role_says_so() {
    let layout = broadcast::Layout::<u64>::new(8).unwrap();
    let producer: broadcast::Producer<u64, Claim> = unlocked().create_anonymous_ring(&layout).unwrap();
    for role in [Role::Consumer, Role::Participant(1)] {
        assert_eq!(producer.region().presence(role), Err(Error::NoSuchRole { role }));
        assert_eq!(producer.region().segment().claim(role).err(), Some(Error::NoSuchRole { role }));
    }
    let segment = Arc::new(unlocked().create_anonymous(4096).unwrap().publish());
    let error = segment.claim(Role::Producer).unwrap_err();
    assert_eq!(error, Error::Ring(ring_core::Error::NotReady), "no ring");
}

#[test]
fn several_participants_of_one_process_are_told_apart() {
    let layout = mpmc::Layout::<u64>::new(8).unwrap().participants(3).unwrap();
    let name = TestName::new("participants");
    let mut consumer: mpmc::Consumer<u64, Claim> = unlocked().create_ring(&name, &layout).unwrap();
    let mut producer: mpmc::Producer<u64, Claim> = unlocked().attach_ring(&name, Duration::ZERO).unwrap();
    assert_eq!(consumer.region().role(), Role::Participant(1));
    assert_eq!(producer.region().role(), Role::Participant(2));
    let mut peer = Peer::start(start_child("participate", &name));
    assert_eq!(peer.hear(), "stuck");
    let error = unlocked().attach_ring::<mpmc::Producer<u64, Claim>>(&name, Duration::ZERO).unwrap_err();
    assert_eq!(error, Error::Ring(ring_core::Error::TooManyParticipants { participants: 3 }));
    assert_eq!(consumer.try_pop(), Ok(1));
    producer.try_push(2).unwrap();
    // The one who lives and holds a slot is not judged by anybody.
    let liveness = consumer.region().liveness();
    assert_eq!(consumer.recover(&liveness), Ok(0));
    peer.kill();
    soon(|| consumer.region().presence(Role::Participant(3)) == Ok(Presence::Gone));
    assert_eq!(producer.recover(&producer.region().liveness()), Ok(1));
    assert_eq!(consumer.try_pop(), Ok(2));
    let _third: mpmc::Producer<u64, Claim> = unlocked().attach_ring(&name, SOON).unwrap();
}

#[test]
fn every_ring_has_both_its_sides_named_and_inherited() {
    let options = unlocked();
    let timeout = Duration::ZERO;
    let name = TestName::new("every-ring");

    let layout = bytes::Layout::new(1024).unwrap();
    let mut producer: bytes::Producer<Claim> = options.create_ring(&name, &layout).unwrap();
    let mut consumer: bytes::Consumer<Claim> = options.attach_ring(&name, timeout).unwrap();
    producer.try_push(b"hello").unwrap();
    let mut buffer = [0; 16];
    let length = consumer.try_pop(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"hello");
    consumer.region().unlink().unwrap();

    let layout = broadcast::Layout::<u64>::new(8).unwrap();
    let mut producer: broadcast::Producer<u64, Claim> = options.create_ring(&name, &layout).unwrap();
    let mut one: broadcast::Consumer<u64, Arc<Segment>> = options.attach_ring(&name, timeout).unwrap();
    let mut other: broadcast::Consumer<u64, _> = options.attach_ring(&name, timeout).unwrap();
    producer.push(&7);
    assert_eq!((one.try_pop(), other.try_pop()), (Ok(7), Ok(7)));
    one.region().unlink().unwrap();

    let layout = mpmc::Layout::<u64>::new(8).unwrap();
    let mut consumer: mpmc::Consumer<u64, Claim> = options.create_anonymous_ring(&layout).unwrap();
    let descriptor = inheritable(consumer.region());
    let mut producer: mpmc::Producer<u64, _> = options.attach_ring_fd(descriptor, timeout).unwrap();
    producer.try_push(8).unwrap();
    assert_eq!(consumer.try_pop(), Ok(8));

    let mut producer = anonymous();
    let mut command = start_child("consume two", "-");
    command.stdin(inheritable(producer.region()));
    producer.try_push(1).unwrap();
    producer.try_push(2).unwrap();
    assert_eq!(Peer::start(command).finish(), ["done"]);
}

#[test]
fn either_side_may_come_first_and_again() {
    let name = TestName::new("open-ring");
    let starts: Vec<_> = (0..2)
        .map(|_| {
            let name = name.to_string();
            std::thread::spawn(move || {
                for _ in 0..50 {
                    let mut producer: Producer = unlocked().open_ring(&name, &layout(), LONG).unwrap();
                    let _ = producer.try_push(1);
                    drop(producer);
                    let mut consumer: Consumer = unlocked().open_ring(&name, &layout(), LONG).unwrap();
                    let _ = consumer.try_pop();
                    let _ = consumer.region().unlink();
                }
            })
        })
        .collect();
    for start in starts {
        start.join().unwrap();
    }
    let _: Producer = unlocked().open_ring(&name, &layout(), SOON).unwrap();
    let other = bytes::Layout::new(64).unwrap();
    let error = unlocked().open_ring::<bytes::Producer<Claim>>(&name, &other, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Ring(ring_core::Error::WrongKind { .. })), "{error:?}");
}

#[test]
fn without_proc_a_named_role_can_be_claimed_and_an_anonymous_one_cannot() {
    if !is_root() {
        return skip("without_proc_a_named_role_can_be_claimed_and_an_anonymous_one_cannot", "not root");
    }
    let name = TestName::new("no-proc");
    let consumer: Consumer = unlocked().create_ring(&name, &layout()).unwrap();
    let hide = "mount -t tmpfs none /proc";
    assert_eq!(Peer::start(in_namespace("try to produce", &name, hide)).finish(), ["taken"]);
    assert_eq!(consumer.region().owner(Role::Producer).unwrap().incarnation, 1);
    let anonymous: Consumer = unlocked().create_anonymous_ring(&layout()).unwrap();
    let mut command = in_namespace("try to produce", "-", hide);
    command.stdin(inheritable(anonymous.region()));
    let said = Peer::start(command).finish().concat();
    assert_eq!(said, "NoProc { source: Errno(2) }");
}

#[test]
fn another_user_claims_what_the_mode_lets_him_open() {
    if !is_root() {
        return skip("another_user_claims_what_the_mode_lets_him_open", "not root");
    }
    let program = OtherUser::new();
    let outcome = |mode: u32, is_named: bool| {
        let name = TestName::new("other-user");
        let options = unlocked().mode(mode);
        let consumer: Consumer = match is_named {
            true => options.create_ring(&name, &layout()).unwrap(),
            false => options.create_anonymous_ring(&layout()).unwrap(),
        };
        let mut command = program.child("try to produce", if is_named { &name } else { "-" }, ":");
        command.stdin(inheritable(consumer.region()));
        Peer::start(command).finish().concat()
    };
    for is_named in [true, false] {
        assert_eq!(outcome(0o666, is_named), "taken");
        let refused = outcome(0o600, is_named);
        assert!(refused.starts_with("NoPermission"), "{refused}");
    }
}

#[test]
fn options_are_the_callers() {
    let producer: Producer = Options::new().in_core_dumps(true).create_anonymous_ring(&layout()).unwrap();
    let report = producer.region().report();
    assert!(report.in_core_dumps && report.sealed, "{report}");
}
